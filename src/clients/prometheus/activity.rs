//! The uses that the sources have seen in a window of time.

use std::net::IpAddr;

use hashbrown::HashMap;
use jiff::{SignedDuration, Timestamp};

use super::answer::Sample;
use super::error::QueryError;
use crate::api::names::CanonicalName;
use crate::runtime::clock::rfc3339;

/// A machine that may have been used: an Instance, or one environment of it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The namespace of the Instance.
    pub namespace: &'a str,
    /// The name of the Instance.
    pub instance: &'a str,
    /// The names of its environments; their Services are `<instance>-<environment>`. May be empty where the
    /// Instance has one environment, whose Service has the name of the Instance.
    pub environments: &'a [String],
    /// The IP address; empty if it has none (yet). Where each environment has its own, ask for each.
    pub address: &'a str,
}

/// The uses that the sources have seen in a window of time.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The beginning of the window. Uses in the two steps before it may be reported too.
    pub since: Timestamp,
    /// The end of the window.
    pub until: Timestamp,
    /// When the sources had answered.
    pub answered: Timestamp,
    pub(super) sources: Vec<SourceActivity>,
}

/// The uses that one source has seen.
#[derive(Debug, Clone)]
pub(super) struct SourceActivity {
    pub name: &'static str,
    pub uses: Uses,
    /// Why the source, or a part of it, is not known.
    pub failures: Vec<String>,
    /// Since when it has been there all the time; `None` if that is not known.
    pub observed_since: Option<Timestamp>,
    /// The sentence for `observed_since` being later than the beginning of the window.
    pub gap: Option<String>,
}

/// The last uses by what identifies a machine.
#[derive(Debug, Clone)]
pub(super) struct Uses {
    /// By namespace, then by name; by IP address under the empty namespace.
    times: HashMap<String, HashMap<String, Timestamp>>,
    is_by_address: bool,
}

impl Activity {
    /// The last use of a machine that was found, and the source that saw it: `ingress`, `ssh`, `webSsh` or `open`.
    /// `None` means that the machine was not used only where [`Activity::is_complete`]. A use has the time of
    /// the end of the step in which it happened, at most [`Activity::until`].
    pub fn last_use(&self, target: &Target<'_>) -> Option<(Timestamp, &'static str)> {
        let uses = self.sources.iter().filter_map(|source| Some((source.uses.of(target)?, source.name)));
        // Of several that are equally late, the first source.
        let last = uses.reduce(|last, next| if next.0 > last.0 { next } else { last });
        last.map(|(time, source)| (time.min(self.until), source))
    }

    /// This activity together with an earlier one, as far as that lies after `begin`; older uses are forgotten. A
    /// source that fails now keeps what it has seen before.
    #[must_use]
    pub fn after(mut self, earlier: &Self, begin: Timestamp) -> Self {
        for source in &mut self.sources {
            let Some(before) = earlier.sources.iter().find(|before| before.name == source.name) else {
                continue;
            };
            source.uses.merge(&before.uses, begin);
            // Without a gap between the two, what was known before is still known.
            let is_joined =
                source.gap.is_none() && source.observed_since.is_some() && self.since <= earlier.until;
            if is_joined && source.failures.is_empty() && before.failures.is_empty() {
                source.observed_since = before.observed_since;
                source.gap.clone_from(&before.gap);
            }
        }
        self.since = self.since.min(earlier.since.max(begin));
        self
    }

    /// Whether every configured source has answered, is there, and was there in the whole window. If not,
    /// nothing follows from a use that was not found.
    pub fn is_complete(&self) -> bool {
        !self.sources.is_empty()
            && self.sources.iter().all(|source| source.failures.is_empty() && source.gap.is_none())
    }

    /// The time since which every source has been there without a longer gap; the beginning of the window if
    /// that is the whole window. `None` while a source is missing or a query fails. An Instance can be called
    /// unused from this time on even if the activity is not complete.
    pub fn observed_since(&self) -> Option<Timestamp> {
        let known = |source: &SourceActivity| source.observed_since.filter(|_| source.failures.is_empty());
        let times: Option<Vec<Timestamp>> = self.sources.iter().map(known).collect();
        times?.into_iter().max()
    }

    /// A sentence for each source that is missing, fails or does not cover the window.
    pub fn problems(&self) -> Vec<String> {
        self.sources.iter().flat_map(|source| source.failures.iter().chain(&source.gap)).cloned().collect()
    }
}

impl SourceActivity {
    /// Nothing seen yet. `values` is the number of values that identify a machine.
    pub fn new(name: &'static str, values: usize) -> Self {
        Self { name, uses: Uses::new(values), failures: Vec::new(), observed_since: None, gap: None }
    }

    /// Prometheus at `url` does not tell it.
    pub fn fails(&mut self, url: &str, error: &QueryError) {
        self.failures
            .push(format!("the source {} cannot be read from Prometheus at {url}: {error}", self.name));
    }

    /// Its query of availability has no result above 0.
    pub fn is_missing(&mut self, available: &str) {
        self.failures.push(format!(
            "the source {} is missing in Prometheus: {available} has no result above 0",
            self.name
        ));
    }

    /// An answer may not be complete.
    pub fn warned(&mut self, warnings: &[String]) {
        let sentence = |warning| format!("Prometheus warns about the source {}: {warning}", self.name);
        self.failures.extend(warnings.iter().map(sentence));
        self.failures.dedup();
    }

    /// It has been there since the point after `missing`, in seconds; in the whole window if `None`.
    pub fn observed(&mut self, since: Timestamp, missing: Option<f64>, step: i64) {
        let step = SignedDuration::from_secs(step);
        let missing = missing.and_then(|second| SignedDuration::try_from_secs_f64(second).ok());
        let begin = missing.and_then(|missing| Timestamp::from_duration(missing + step).ok());
        match begin.filter(|begin| begin.duration_since(since) > step) {
            None => self.observed_since = Some(since),
            Some(begin) => {
                self.observed_since = Some(begin);
                self.gap = Some(format!(
                    "the source {} was missing in Prometheus before {}",
                    self.name,
                    rfc3339(begin)
                ));
            }
        }
    }
}

impl Uses {
    /// None yet, by as many values as the query has verbs.
    pub fn new(values: usize) -> Self {
        Self { times: HashMap::new(), is_by_address: values == 1 }
    }

    /// Adds the last use of a machine in a part of the window, whose identity is in these labels.
    pub fn add(&mut self, sample: &Sample<'_>, labels: &[String]) {
        let Some(time) = sample.time() else { return };
        match labels {
            [namespace, name] => self.add_at(sample.label(namespace), sample.label(name).to_owned(), time),
            [address] => self.add_at("", normal(sample.label(address)), time),
            _ => {}
        }
    }

    fn add_at(&mut self, namespace: &str, name: String, time: Timestamp) {
        let known = self.times.entry_ref(namespace).or_default().entry(name).or_insert(time);
        *known = time.max(*known);
    }

    /// Adds what others have from `begin` on.
    fn merge(&mut self, others: &Self, begin: Timestamp) {
        for (namespace, names) in &others.times {
            for (name, time) in names.iter().filter(|(_, time)| **time >= begin) {
                self.add_at(namespace, name.clone(), *time);
            }
        }
    }

    fn of(&self, target: &Target<'_>) -> Option<Timestamp> {
        if self.is_by_address {
            let address = Some(target.address).filter(|address| !address.is_empty())?;
            return self.times.get("")?.get(&normal(address)).copied();
        }
        let names = self.times.get(target.namespace)?;
        let canonical = CanonicalName::of(target.instance);
        let environments = target.environments.iter().map(|name| canonical.environment(name));
        let services = environments.filter_map(|service| names.get(&*service));
        // Labels made from the Instance have its own name, those of Services have the canonical one.
        let own = [names.get(target.instance), names.get(&*canonical)];
        services.chain(own.into_iter().flatten()).max().copied()
    }
}

#[cfg(test)]
impl Activity {
    /// The activity in which these addresses were used at these times.
    pub fn of_addresses(until: Timestamp, used: &[(&str, Timestamp)]) -> Self {
        let mut ssh = SourceActivity::new("ssh", 1);
        for (address, at) in used {
            ssh.uses.add_at("", normal(address), *at);
        }
        Self { since: Timestamp::UNIX_EPOCH, until, answered: until, sources: vec![ssh] }
    }
}

/// The usual form of an IP address: IPv6 has several.
fn normal(address: &str) -> String {
    address.parse::<IpAddr>().map_or_else(|_| address.to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::clients::http::Answer;
    use crate::clients::prometheus::answer::vector;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A source that has seen these uses, each as labels and time.
    fn source(name: &'static str, labels: &[&str], seen: &[(Value, i64)]) -> SourceActivity {
        let sample =
            |(labels, time): &(Value, i64)| json!({"metric": labels, "value": [1, time.to_string()]});
        let result: Vec<Value> = seen.iter().map(sample).collect();
        let body = json!({"status": "success", "data": {"resultType": "vector", "result": result}});
        let body = body.to_string().into_bytes();
        let answer = Answer { status: http::StatusCode::OK, location: None, body };
        let mut source = SourceActivity::new(name, labels.len());
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        for sample in vector(&answer, &mut Vec::new()).unwrap() {
            source.uses.add(&sample, &labels);
        }
        source.observed_since = Some(at(0));
        source
    }

    fn activity(sources: Vec<SourceActivity>) -> Activity {
        Activity { since: at(0), until: at(1_000), answered: at(1_000), sources }
    }

    fn services(seen: &[(&str, &str, i64)]) -> Activity {
        let sample =
            |(namespace, service, time): &(&str, &str, i64)| (json!({"n": namespace, "s": service}), *time);
        activity(vec![source("ingress", &["n", "s"], &seen.iter().map(sample).collect::<Vec<_>>())])
    }

    /// The last use of an Instance in the namespace `a`, in seconds.
    fn of(activity: &Activity, instance: &str, environments: &[&str]) -> Option<i64> {
        let environments: Vec<String> = environments.iter().map(|name| (*name).to_owned()).collect();
        let target = Target { namespace: "a", instance, environments: &environments, address: "" };
        activity.last_use(&target).map(|(time, _)| time.as_second())
    }

    #[test]
    fn services_are_compared_by_their_whole_name() {
        let activity = services(&[
            ("a", "x-1", 10),
            ("a", "x-12", 20),
            ("a", "x-1-web", 30),
            ("b", "x-2", 40),
            ("a", "", 50),
        ]);
        assert_eq!(of(&activity, "x-1", &[]), Some(10));
        assert_eq!(of(&activity, "x-12", &[]), Some(20));
        assert_eq!(of(&activity, "x", &["1"]), Some(10), "the Service of its environment");
        assert_eq!(of(&activity, "x-1", &["web", "db"]), Some(30));
        assert_eq!(of(&activity, "x-1", &["db"]), Some(10));
        assert_eq!(of(&activity, "x", &[]), None);
        assert_eq!(of(&activity, "x-2", &[]), None, "it is in another namespace");
        assert_eq!(of(&activity, "", &[]), Some(50), "no Instance has this name");
    }

    #[test]
    fn dots_become_dashes_in_the_names_of_services() {
        let activity = services(&[("a", "green-tea-6831", 10), ("a", "green-tea-6831-db", 20)]);
        assert_eq!(of(&activity, "green-tea.6831", &[]), Some(10));
        assert_eq!(of(&activity, "green.tea.6831", &["db"]), Some(20));
        // A label with the name of the Instance itself.
        assert_eq!(of(&services(&[("a", "green-tea.6831", 30)]), "green-tea.6831", &[]), Some(30));
    }

    #[test]
    fn the_latest_use_of_all_sources_counts() {
        let ssh = |name, time| source(name, &["ip"], &[(json!({"ip": "10.0.0.1"}), time)]);
        let last = |sources| {
            let target = Target { namespace: "a", instance: "x", environments: &[], address: "10.0.0.1" };
            activity(sources).last_use(&target).map(|(time, source)| (time.as_second(), source))
        };
        assert_eq!(last(vec![ssh("ssh", 10), ssh("webSsh", 20)]), Some((20, "webSsh")));
        assert_eq!(last(vec![ssh("ssh", 20), ssh("webSsh", 10)]), Some((20, "ssh")));
        assert_eq!(last(vec![ssh("ssh", 10), ssh("webSsh", 10)]), Some((10, "ssh")));
        // The last point of the window may be in the future.
        assert_eq!(last(vec![ssh("ssh", 1_100)]), Some((1_000, "ssh")));
        assert_eq!(last(Vec::new()), None);
    }

    #[test]
    fn parts_are_put_together_in_any_order() {
        let seen = [10, 30, 20].map(|time| (json!({"ip": "fd00::1"}), time));
        let activity = activity(vec![source("ssh", &["ip"], &seen)]);
        let target = |address| Target { namespace: "a", instance: "x", environments: &[], address };
        assert_eq!(activity.last_use(&target("fd00::1")), Some((at(30), "ssh")));
        assert_eq!(activity.last_use(&target("FD00:0::0001")), Some((at(30), "ssh")), "the same address");
        assert_eq!(activity.last_use(&target("")), None);
    }

    #[test]
    fn windows_that_meet_are_one() {
        let ssh = |time| source("ssh", &["ip"], &[(json!({"ip": "10.0.0.1"}), time)]);
        let target = Target { namespace: "a", instance: "x", environments: &[], address: "10.0.0.1" };
        let first = activity(vec![ssh(700)]);
        let mut later = ssh(300);
        later.observed_since = Some(at(900));
        let second = Activity { since: at(900), until: at(2_000), answered: at(2_000), sources: vec![later] };
        let both = second.clone().after(&first, at(0));
        assert_eq!(both.last_use(&target), Some((at(700), "ssh")), "the latest use of both");
        assert_eq!((both.since, both.until, both.observed_since()), (at(0), at(2_000), Some(at(0))));
        let short = second.clone().after(&first, at(701));
        assert_eq!((short.last_use(&target), short.since), (Some((at(300), "ssh")), at(701)), "forgotten");
        // With time in between that nobody has looked at, only the later window is known.
        let far = Activity { since: at(1_500), ..second.clone() }.after(&first, at(0));
        assert_eq!(far.observed_since(), Some(at(900)));
        // A source that failed before, or fails now.
        let mut failing = first.clone();
        failing.sources[0].is_missing("count(up)");
        assert_eq!(second.clone().after(&failing, at(0)).observed_since(), Some(at(900)));
        let mut failing = second;
        failing.sources[0].is_missing("count(up)");
        let both = failing.after(&first, at(0));
        assert_eq!((both.observed_since(), both.last_use(&target)), (None, Some((at(700), "ssh"))));
    }

    #[test]
    fn it_is_complete_if_every_source_is() {
        let known = || source("ssh", &["ip"], &[]);
        assert!(activity(vec![known(), known()]).is_complete());
        assert!(!activity(Vec::new()).is_complete());
        let mut failing = known();
        failing.is_missing("count(up)");
        let mut late = known();
        late.observed(at(0), Some(600.0), 300);
        assert_eq!(late.observed_since, Some(at(900)));
        let with_late = activity(vec![known(), late.clone()]);
        assert!(!with_late.is_complete());
        assert_eq!(with_late.observed_since(), Some(at(900)));
        assert_eq!(
            with_late.problems(),
            ["the source ssh was missing in Prometheus before 1970-01-01T00:15:00Z"]
        );
        let with_failing = activity(vec![late, failing]);
        assert_eq!(with_failing.observed_since(), None);
        assert_eq!(
            with_failing.problems()[1],
            "the source ssh is missing in Prometheus: count(up) has no result above 0"
        );
        // The first point may lie before the first sample of a time that is covered.
        let mut covered = known();
        covered.observed(at(0), Some(0.0), 300);
        assert!(activity(vec![covered]).is_complete());
    }
}
