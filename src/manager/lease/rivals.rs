//! Other installations that manage the same objects: a daemon does not lead while another one does.
//!
//! - The marks of Tenants and Workspaces name the Lease of the installation that manages them. If there is no mark of
//!   another installation, no requests are sent.
//! - Before the election, the Lease of another installation is read until it is free: missing, released or expired,
//!   measured with the local clock.
//! - Two installations that start in a cluster without any mark discover each other's marks later. Then the one with
//!   the younger Lease ends.
//! - A Lease that this account may not read counts as held before the election. Two installations with the same selector
//!   that cannot compare their Leases decide by name: the one whose Lease comes first in alphabetical order leads. It
//!   replaces the marks of the other one. If these are replaced in turn, the other one can read both Leases and has
//!   decided by age, so this one ends.
//! - `leaderElection.ignoredLeases` names Leases that do not prevent this installation from leading.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tracing::{info, warn};

use super::leases::{Leases, Verdict};
use crate::api::labels::selector_string;
use crate::config::{Config, LeaderElection};
use crate::controllers::shared::responsibility::lease_name;
use crate::controllers::shared::rivals::{Rival, Rivals};
use crate::runtime::readiness::Readiness;
use crate::runtime::sighting::Sighting;

/// The name in the readiness.
const NAME: &str = "leader election";

/// Monitors the Leases of other installations.
pub struct Guard {
    client: Client,
    config: LeaderElection,
    /// The selector of this installation.
    selector: String,
    rivals: Rivals,
    readiness: Readiness,
}

/// The error for another installation that precedes this one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Conflict(String);

impl Guard {
    /// `rivals` are the installations that marks name. `client` must not be gated.
    pub fn new(client: Client, config: &Config, rivals: Rivals, readiness: Readiness) -> Self {
        let selector = selector_string(&config.selector);
        Self { client, config: config.leader_election.clone(), selector, rivals, readiness }
    }

    /// Waits until no other installation is running, and reports a running one in the readiness. From then on, the
    /// marks of other installations are replaced.
    pub async fn clear(&self) {
        let (mut leases, mut said) = (Leases::new(self.client.clone(), &self.config), None);
        loop {
            let rivals = self.rivals();
            let mut obstacles = Vec::new();
            let mut is_clear = true;
            for rival in &rivals {
                match leases.look(rival).await {
                    Verdict::Gone => continue,
                    Verdict::Undecided => {}
                    Verdict::Works => obstacles.push(works(rival)),
                    Verdict::Unreadable(why) => obstacles.push(unreadable(rival, &why)),
                }
                is_clear = false;
            }
            if is_clear {
                self.readiness.set_notice(NAME, None);
                if said.is_some() {
                    info!("no other installation manages these objects any more");
                }
                for rival in &rivals {
                    self.rivals.set_gone(rival);
                }
                return;
            }
            if let Some(obstacle) = obstacles.first() {
                self.say(&mut said, format!("this installation does not lead: {obstacle}"));
            }
            tokio::time::sleep(self.period()).await;
        }
    }

    /// Watches for other installations while this one leads with this Lease. Returns when one that precedes this one is
    /// running.
    pub async fn conflict(&self, own: &Lease) -> Conflict {
        let (mut found, mut said) = (self.rivals.found(), None);
        let mut leases = Leases::new(self.client.clone(), &self.config);
        let (created, name) = (Sighting::new(Some(own.clone())).created(), lease_name(&self.config));
        // The installations with unreadable Leases whose marks this one has replaced.
        let mut challenged = BTreeSet::new();
        loop {
            let mut is_decided = true;
            for rival in self.rivals().into_iter().filter(|rival| !self.rivals.has_gone(rival)) {
                match leases.look(&rival).await {
                    Verdict::Gone => {}
                    Verdict::Undecided => {
                        is_decided = false;
                        continue;
                    }
                    Verdict::Works => {
                        if (leases.created(&rival), Some(&rival.lease)) < (created, name.as_ref()) {
                            return Conflict(works(&rival));
                        }
                        warn!("{}; its Lease is younger, so it must end", works(&rival));
                    }
                    // Each of them manages objects that the other one does not.
                    Verdict::Unreadable(why) if rival.selector != self.selector => {
                        self.say(&mut said, unreadable(&rival, &why));
                        continue;
                    }
                    Verdict::Unreadable(why) => {
                        let sentence = unreadable(&rival, &why);
                        let is_first = name.as_ref().is_some_and(|name| *name < rival.lease);
                        if !is_first || !challenged.insert(rival.clone()) {
                            return Conflict(format!("{sentence}. Until then, this installation must end"));
                        }
                        warn!("{sentence}. Until then, the other installation must end");
                    }
                }
                // Its marks are replaced, so that it notices this installation.
                self.rivals.set_gone(&rival);
            }
            if is_decided {
                // The sender lives as long as `self`.
                drop(found.changed().await);
            } else {
                tokio::time::sleep(self.period()).await;
            }
        }
    }

    /// Reports a sentence in the log and the readiness, unless it is the last one that was reported.
    fn say(&self, said: &mut Option<String>, sentence: String) {
        if said.as_ref() != Some(&sentence) {
            warn!("{sentence}");
            self.readiness.set_notice(NAME, Some(sentence.clone()));
            *said = Some(sentence);
        }
    }

    /// The installations that prevent this one from leading.
    fn rivals(&self) -> Vec<Rival> {
        let found = self.rivals.found().borrow().clone();
        found.into_iter().filter(|rival| !self.config.ignored_leases.contains(&rival.lease)).collect()
    }

    fn period(&self) -> Duration {
        self.config.retry_period.into()
    }
}

fn works(rival: &Rival) -> String {
    let Rival { lease, selector } = rival;
    format!(
        "another installation holds Lease {lease} and manages the objects with the labels {selector}; uninstall one of the two, \
         or give it another selector, or name that Lease in leaderElection.ignoredLeases"
    )
}

fn unreadable(rival: &Rival, why: &str) -> String {
    let Rival { lease, selector } = rival;
    format!(
        "objects with the labels {selector} belong to the installation with Lease {lease}, which cannot be read ({why}); \
         grant this account \"get\" on it (rbac.otherLeases of the chart), or name it in leaderElection.ignoredLeases"
    )
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::time::timeout;
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::config::ConfigDuration;

    const MINUTE: Duration = Duration::from_mins(1);

    /// The guard of an installation with Lease `ns/<own>`, the installations that marks name, and the readiness. The
    /// API server answers each read of a Lease with this code.
    fn guard(own: &str, code: u16, retry_period: ConfigDuration) -> (Guard, Rivals, Readiness) {
        let service = service_fn(move |_: Request<Body>| async move {
            let (reason, message) = match code {
                403 => ("Forbidden", "leases is forbidden"),
                _ => ("NotFound", "leases not found"),
            };
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
                "reason": reason, "message": message,
            });
            let answer = Response::builder().status(code).body(Body::from(status.to_string().into_bytes()));
            answer.map_err(BoxError::from)
        });
        let (namespace, name) = ("ns".to_owned(), own.to_owned());
        let leader_election = LeaderElection { namespace, name, retry_period, ..LeaderElection::default() };
        let selector = [("sel".to_owned(), "x".to_owned())].into();
        let config = Config { selector, leader_election, ..Config::default() };
        let (rivals, readiness) = (Rivals::default(), Readiness::default());
        let client = Client::new(service, "default");
        (Guard::new(client, &config, rivals.clone(), readiness.clone()), rivals, readiness)
    }

    fn forbidden(own: &str) -> (Guard, Rivals, Readiness) {
        guard(own, 403, LeaderElection::default().retry_period)
    }

    fn rival(name: &str, selector: &str) -> Rival {
        Rival { lease: format!("ns/{name}"), selector: selector.to_owned() }
    }

    fn lease() -> Lease {
        serde_json::from_value::<Lease>(json!({"metadata": {"name": "own"}})).expect("a Lease")
    }

    #[tokio::test(start_paused = true)]
    async fn before_the_election_an_unreadable_lease_counts_as_held_and_a_missing_one_as_free() {
        let (unread, rivals, readiness) = forbidden("new");
        rivals.add(rival("old", "sel=x"));
        assert!(timeout(MINUTE, unread.clear()).await.is_err(), "it waits");
        let said = readiness.report().1;
        for part in ["does not lead", "Lease ns/old", "leases is forbidden", "rbac.otherLeases of the chart"]
        {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        assert!(!rivals.has_gone(&rival("old", "sel=x")));
        let (read, rivals, _) = guard("new", 404, ConfigDuration::from_secs(0));
        rivals.add(rival("old", "sel=x"));
        timeout(MINUTE, read.clear()).await.expect("it leads");
        assert!(rivals.has_gone(&rival("old", "sel=x")), "its marks are replaced");
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_installations_with_unreadable_leases_the_first_name_leads() {
        for (own, other, has_conflict) in [("a", "b", false), ("b", "a", true)] {
            let (guard, rivals, _) = forbidden(own);
            let (lease, other) = (lease(), rival(other, "sel=x"));
            let mut conflict = pin!(guard.conflict(&lease));
            assert!(timeout(MINUTE, conflict.as_mut()).await.is_err(), "{own} has seen no mark yet");
            rivals.add(other.clone());
            let ended = timeout(MINUTE, conflict).await;
            assert_eq!(ended.is_ok(), has_conflict, "{own}");
            assert_eq!(rivals.has_gone(&other), !has_conflict, "{own} replaces the marks of the other one");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_installation_whose_marks_are_replaced_in_turn_ends() {
        let (guard, rivals, _) = forbidden("a");
        let (lease, other) = (lease(), rival("b", "sel=x"));
        rivals.add(other.clone());
        let mut conflict = pin!(guard.conflict(&lease));
        assert!(timeout(MINUTE, conflict.as_mut()).await.is_err());
        rivals.set_running(&other);
        let ended = timeout(MINUTE, conflict).await.expect("the other one reads both Leases");
        assert!(ended.to_string().contains("Lease ns/b, which cannot be read"), "{ended}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreadable_lease_of_another_selector_is_only_reported() {
        for own in ["a", "c"] {
            let (guard, rivals, readiness) = forbidden(own);
            let (lease, other) = (lease(), rival("b", "sel=x,zone=north"));
            rivals.add(other.clone());
            assert!(timeout(MINUTE, guard.conflict(&lease)).await.is_err(), "{own}");
            assert!(!rivals.has_gone(&other), "{own}");
            assert!(readiness.report().1.contains("Lease ns/b, which cannot be read"), "{own}");
        }
    }
}
