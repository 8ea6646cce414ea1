//! The uses of machines that the sources have recorded in a time window.

use std::net::IpAddr;

use hashbrown::HashMap;
use jiff::{SignedDuration, Timestamp};

use super::answer::Sample;
use super::error::QueryError;
use crate::api::names::CanonicalName;
use crate::runtime::clock::rfc3339;

/// A machine that may have been used: an Instance, or one of its environments.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The namespace of the Instance.
    pub namespace: &'a str,
    /// The name of the Instance.
    pub instance: &'a str,
    /// The names of its environments. Their Services are `<instance>-<environment>`. It may be empty if the Instance
    /// has one environment, whose Service has the name of the Instance.
    pub environments: &'a [String],
    /// The IP address; empty if the machine has no address yet. If each environment has its own address, query each
    /// of them.
    pub address: &'a str,
}

/// The uses of machines that the sources have recorded in a time window.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The start of the window. Uses in the two steps before it may be included.
    pub since: Timestamp,
    /// The end of the window.
    pub until: Timestamp,
    /// The time when all sources had responded.
    pub answered: Timestamp,
    pub(super) sources: Vec<SourceActivity>,
}

/// The uses that one source has recorded.
#[derive(Debug, Clone)]
pub(super) struct SourceActivity {
    pub name: &'static str,
    pub uses: Uses,
    /// The errors of the source, or of a part of it.
    pub failures: Vec<String>,
    /// The start of the time that the source covers without gaps; `None` if it is not known.
    pub observed_since: Option<Timestamp>,
    /// The sentence for an `observed_since` that is later than the start of the window.
    pub gap: Option<String>,
}

/// The last uses, by the values that identify a machine.
#[derive(Debug, Clone)]
pub(super) struct Uses {
    /// By namespace and name. Times of IP addresses are under the empty namespace.
    times: HashMap<String, HashMap<String, Timestamp>>,
    is_by_address: bool,
}

impl Activity {
    /// The last recorded use of a machine, and the source that recorded it: `ingress`, `ssh`, `webSsh` or `open`.
    /// `None` means that the machine was not used only if [`Activity::is_complete`]. The time of a use is the end of
    /// its step, but not later than [`Activity::until`].
    pub fn last_use(&self, target: &Target<'_>) -> Option<(Timestamp, &'static str)> {
        let uses = self.sources.iter().filter_map(|source| Some((source.uses.of(target)?, source.name)));
        // Of several uses at the same time, the first source is returned.
        let last = uses.reduce(|last, next| if next.0 > last.0 { next } else { last });
        last.map(|(time, source)| (time.min(self.until), source))
    }

    /// Merges this activity with an earlier one after `begin`. Older uses are dropped. If a source fails now, its
    /// earlier uses are kept.
    #[must_use]
    pub fn after(mut self, earlier: &Self, begin: Timestamp) -> Self {
        for source in &mut self.sources {
            let Some(before) = earlier.sources.iter().find(|before| before.name == source.name) else {
                continue;
            };
            source.uses.merge(&before.uses, begin);
            // Without a gap between the two, the earlier coverage is still valid.
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

    /// Whether every configured source has responded, exists, and covered the whole window. Otherwise a missing use
    /// does not mean that a machine was unused.
    pub fn is_complete(&self) -> bool {
        !self.sources.is_empty()
            && self.sources.iter().all(|source| source.failures.is_empty() && source.gap.is_none())
    }

    /// The time since which every source has had no longer gap; the start of the window if the sources cover all of
    /// it. `None` while a source is missing or a query fails. An Instance can be considered unused since this time
    /// even if the activity is not complete.
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
    /// An empty activity. `values` is the number of values that identify a machine.
    pub fn new(name: &'static str, values: usize) -> Self {
        let uses = Uses { times: HashMap::new(), is_by_address: values == 1 };
        Self { name, uses, failures: Vec::new(), observed_since: None, gap: None }
    }

    /// Records that the source cannot be read from Prometheus at `url`.
    pub fn fails(&mut self, url: &str, error: &QueryError) {
        self.failures
            .push(format!("the source {} cannot be read from Prometheus at {url}: {error}", self.name));
    }

    /// Records that the availability query of the source has no result above 0.
    pub fn is_missing(&mut self, available: &str) {
        let name = self.name;
        self.failures
            .push(format!("the source {name} is missing in Prometheus: {available} has no result above 0"));
    }

    /// Records warnings that a response may be incomplete.
    pub fn warned(&mut self, warnings: &[String]) {
        let sentence = |warning| format!("Prometheus warns about the source {}: {warning}", self.name);
        self.failures.extend(warnings.iter().map(sentence));
        self.failures.dedup();
    }

    /// Records when the source began to exist. `missing` is the last point without it, in seconds; `None` if it has
    /// existed in the whole window.
    pub fn observed(&mut self, since: Timestamp, missing: Option<f64>, step: i64) {
        let step = SignedDuration::from_secs(step);
        let missing = missing.and_then(|second| SignedDuration::try_from_secs_f64(second).ok());
        let begin = missing.and_then(|missing| Timestamp::from_duration(missing + step).ok());
        let late = begin.filter(|begin| begin.duration_since(since) > step);
        self.observed_since = Some(late.unwrap_or(since));
        let (name, late) = (self.name, late.map(rfc3339));
        self.gap = late.map(|late| format!("the source {name} was missing in Prometheus before {late}"));
    }
}

impl Uses {
    /// Adds the last use of a machine in a part of the window. The labels identify the machine.
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

    /// Adds the uses of `others` since `begin`.
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
        // Labels made from the Instance contain its name. Labels made from Services contain the canonical name.
        let own = [names.get(target.instance), names.get(&*canonical)];
        services.chain(own.into_iter().flatten()).max().copied()
    }
}

#[cfg(test)]
impl Activity {
    /// An activity with uses of these addresses at these times.
    pub fn of_addresses(until: Timestamp, used: &[(&str, Timestamp)]) -> Self {
        let mut ssh = SourceActivity::new("ssh", 1);
        for (address, at) in used {
            ssh.uses.add_at("", normal(address), *at);
        }
        Self { since: Timestamp::UNIX_EPOCH, until, answered: until, sources: vec![ssh] }
    }
}

/// The normalized form of an IP address: IPv6 addresses have several notations.
fn normal(address: &str) -> String {
    address.parse::<IpAddr>().map_or_else(|_| address.to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::clients::http::Answer;
    use crate::clients::prometheus::answer::vector;
    use crate::fixtures::at;

    /// A source with these recorded uses, each as labels and time.
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
    fn the_latest_use_of_all_sources_is_returned() {
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
    fn parts_are_merged_in_any_order() {
        let seen = [10, 30, 20].map(|time| (json!({"ip": "fd00::1"}), time));
        let activity = activity(vec![source("ssh", &["ip"], &seen)]);
        let target = |address| Target { namespace: "a", instance: "x", environments: &[], address };
        assert_eq!(activity.last_use(&target("fd00::1")), Some((at(30), "ssh")));
        assert_eq!(activity.last_use(&target("FD00:0::0001")), Some((at(30), "ssh")), "the same address");
        assert_eq!(activity.last_use(&target("")), None);
    }

    #[test]
    fn adjacent_windows_are_merged() {
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
        // If there is a gap between the windows, only the later window is covered.
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
    fn an_activity_is_complete_if_every_source_is_complete() {
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
        // The first point may be earlier than the first sample of a time that is covered.
        let mut covered = known();
        covered.observed(at(0), Some(0.0), 300);
        assert!(activity(vec![covered]).is_complete());
    }
}
