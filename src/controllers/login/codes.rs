//! The codes that were exchanged. All replicas share them in a `ConfigMap`: the API server rejects a change that is
//! based on an old version, so each code is exchanged once, also if two replicas get it at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::controllers::shared::machine_login::{CODE_FOR, Code, SKEW};
use crate::runtime::error::with_sources;

/// The `ConfigMap`, in the namespace of the daemon. The chart creates it.
pub const CONFIG_MAP: &str = "crownlabs-login-codes";
/// The maximum number of codes that are kept: 40 logins per second. They have about 150 KB.
const MOST: usize = 2_000;
/// The maximum number of codes of a machine that are kept, so that one user does not prevent the logins of others.
const MOST_OF_MACHINE: usize = 20;
/// The number of attempts while other replicas change the `ConfigMap`.
const ATTEMPTS: usize = 8;
/// The time limit of an exchange.
const LIMIT: Duration = Duration::from_secs(10);
/// The time for which a code is kept: at its end, it is not fresh for any replica, and no exchange that began before is
/// running.
const KEPT_FOR: SignedDuration = SignedDuration::from_secs(CODE_FOR.as_secs() + SKEW.as_secs() + 10);

/// The content of the `ConfigMap`: for each code, the time at which it is removed, in seconds since 1970, and the label of
/// its machine.
type Used = BTreeMap<String, String>;

/// Why a code cannot be exchanged.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoExchange {
    /// It was exchanged before.
    #[error("the code was used before")]
    Used,
    /// Too many codes of this machine were exchanged in the last minute.
    #[error("more than {MOST_OF_MACHINE} users log in to this machine at the same time")]
    Crowded,
    /// Too many codes were exchanged in the last minute.
    #[error("more than {MOST} users log in to machines at the same time")]
    Full,
    /// The `ConfigMap` cannot be read or changed.
    #[error("cannot record the code in ConfigMap {CONFIG_MAP}: {0}")]
    Unrecorded(String),
}

/// The codes that were exchanged.
pub struct UsedCodes {
    api: Api<ConfigMap>,
    /// The last known version of the `ConfigMap`, with its content. One request at a time changes it.
    known: Mutex<Option<(String, Used)>>,
}

impl UsedCodes {
    /// Creates them from a client for the namespace of the daemon.
    pub fn new(api: Api<ConfigMap>) -> Self {
        Self { api, known: Mutex::new(None) }
    }

    /// Records that a code is exchanged for the machine whose host has this label.
    ///
    /// # Errors
    /// If the code was exchanged before, or cannot be recorded.
    pub async fn exchange(&self, code: &Code, label: &str, now: Timestamp) -> Result<(), NoExchange> {
        let done = timeout(LIMIT, self.record(code, label, now)).await;
        done.unwrap_or_else(|_| {
            let seconds = LIMIT.as_secs();
            Err(NoExchange::Unrecorded(format!("the API server did not respond within {seconds} s")))
        })
    }

    async fn record(&self, code: &Code, label: &str, now: Timestamp) -> Result<(), NoExchange> {
        let parameters = PatchParams::default();
        let mut known = self.known.lock().await;
        for _ in 0..ATTEMPTS {
            let (version, used) = match known.take() {
                Some(known) => known,
                None => read(requested(self.api.get(CONFIG_MAP)).await?.ok_or_else(changed)?),
            };
            let data = match changes(&used, code, label, now) {
                Ok(data) => data,
                Err(refused) => {
                    *known = Some((version, used));
                    return Err(refused);
                }
            };
            let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "data": data}));
            let patched = self.api.patch(CONFIG_MAP, &parameters, &patch);
            if let Some(object) = requested(patched).await? {
                *known = Some(read(object));
                return Ok(());
            }
        }
        Err(changed())
    }
}

/// Returns the response to a request; `None` if the object has changed since it was read.
async fn requested(
    request: impl Future<Output = kube::Result<ConfigMap>>,
) -> Result<Option<ConfigMap>, NoExchange> {
    match request.await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(NoExchange::Unrecorded(with_sources(&error))),
    }
}

fn changed() -> NoExchange {
    NoExchange::Unrecorded("other replicas change it all the time".to_owned())
}

/// Returns the version and the content of the `ConfigMap`.
fn read(object: ConfigMap) -> (String, Used) {
    (object.metadata.resource_version.unwrap_or_default(), object.data.unwrap_or_default())
}

/// Returns the change of the content that adds a code and removes those that are not kept any more.
fn changes(used: &Used, code: &Code, label: &str, now: Timestamp) -> Result<Map<String, Value>, NoExchange> {
    if used.contains_key(&code.id) {
        return Err(NoExchange::Used);
    }
    let mut changes = Map::new();
    let mut of_machine = 0;
    for (id, value) in used {
        let (until, machine) = value.split_once(' ').unwrap_or((value.as_str(), ""));
        if until.parse::<i64>().is_ok_and(|until| until >= now.as_second()) {
            of_machine += usize::from(machine == label);
        } else {
            changes.insert(id.clone(), Value::Null);
        }
    }
    if of_machine >= MOST_OF_MACHINE {
        return Err(NoExchange::Crowded);
    }
    if used.len() - changes.len() >= MOST {
        return Err(NoExchange::Full);
    }
    let until = code.since.saturating_add(KEPT_FOR.as_secs());
    changes.insert(code.id.clone(), format!("{until} {label}").into());
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::at;

    fn code(id: &str, since: i64) -> Code {
        let text = |text: &str| text.to_owned();
        Code { id: text(id), since, user: text("ada"), session: text("s"), path: text("/") }
    }

    fn used(entries: &[(&str, &str)]) -> Used {
        entries.iter().map(|(id, until)| ((*id).to_owned(), (*until).to_owned())).collect()
    }

    #[test]
    fn a_code_is_added_once_and_old_codes_are_removed() {
        let known = used(&[("old", "1999 a"), ("fresh", "2000 a"), ("broken", "x"), ("other", "2000")]);
        let change = |id: &str| changes(&known, &code(id, 1_990), "a", at(2_000)).map(Value::Object);
        assert_eq!(change("new"), Ok(json!({"old": null, "broken": null, "new": "2040 a"})));
        assert_eq!(change("fresh"), Err(NoExchange::Used));
        assert_eq!(change("old"), Err(NoExchange::Used));
    }

    #[test]
    fn a_code_is_kept_until_no_exchange_that_began_with_it_can_be_running() {
        // The last one begins at a replica whose clock is late, and ends at the time limit.
        let last = CODE_FOR + SKEW + SignedDuration::try_from(LIMIT).expect("short");
        assert_eq!(KEPT_FOR, last);
    }

    #[test]
    fn the_logins_to_one_machine_do_not_prevent_those_to_others() {
        let many: Used = (0..MOST_OF_MACHINE).map(|id| (id.to_string(), "2000 crowded".to_owned())).collect();
        let result =
            |label, now| changes(&many, &code("new", 1_990), label, at(now)).map(|changes| changes.len());
        assert_eq!(result("crowded", 2_000), Err(NoExchange::Crowded));
        assert_eq!(result("other", 2_000), Ok(1));
        assert_eq!(result("crowded", 2_001), Ok(MOST_OF_MACHINE + 1));
    }

    #[test]
    fn too_many_codes_are_rejected_until_some_are_old() {
        let many =
            |number: usize| -> Used { (0..number).map(|id| (id.to_string(), "2000".to_owned())).collect() };
        let result = |number, now| {
            changes(&many(number), &code("new", 1_990), "a", at(now)).map(|changes| changes.len())
        };
        assert_eq!(result(MOST - 1, 2_000), Ok(1));
        assert_eq!(result(MOST, 2_000), Err(NoExchange::Full));
        assert_eq!(result(MOST, 2_001), Ok(MOST + 1));
    }
}
