//! The gauges about the promises of a loop.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use metrics::gauge;
use parking_lot::Mutex;

use crate::api::promise::Promise;
use crate::runtime::ObjectKey;
use crate::runtime::metrics::precise;

/// The known values of [`Promise::witness`], as label values. Any other value counts as `other`.
const WITNESSES: [&str; 8] = ["ingress", "ssh", "webSsh", "open", "kept", "start", "annotation", "other"];

/// The promises of a loop, and the sources of the last uses, by Instance.
pub struct Promises {
    controller: &'static str,
    counts: Mutex<Counts>,
}

/// The entry of one Instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The stored deadline; the Instance never ends before it.
    deadline: Option<Timestamp>,
    /// Whether a mail has not been accepted yet.
    is_waiting: bool,
    /// Whether the mail server permanently rejects its mails.
    is_undeliverable: bool,
    witness: Option<&'static str>,
}

/// The entries, and the sums that the gauges show, so that the cost of a change does not depend on the number of
/// entries.
#[derive(Default)]
struct Counts {
    entries: BTreeMap<ObjectKey, Entry>,
    deadlines: BTreeSet<(Timestamp, ObjectKey)>,
    waiting: usize,
    undeliverable: usize,
    witnesses: BTreeMap<&'static str, usize>,
}

impl Counts {
    /// Replaces the entry of an Instance. Returns whether it has changed.
    fn replace(&mut self, key: &ObjectKey, new: Option<Entry>) -> bool {
        if self.entries.get(key) == new.as_ref() {
            return false;
        }
        if let Some(old) = self.entries.remove(key) {
            self.count(&old, |sum, one| *sum -= one);
            if let Some(deadline) = old.deadline {
                self.deadlines.remove(&(deadline, key.clone()));
            }
        }
        if let Some(new) = new {
            self.count(&new, |sum, one| *sum += one);
            self.deadlines.extend(new.deadline.map(|deadline| (deadline, key.clone())));
            self.entries.insert(key.clone(), new);
        }
        true
    }

    /// Adds an entry to the sums, or subtracts it.
    fn count(&mut self, entry: &Entry, change: impl Fn(&mut usize, usize)) {
        change(&mut self.waiting, entry.is_waiting.into());
        change(&mut self.undeliverable, entry.is_undeliverable.into());
        if let Some(witness) = entry.witness {
            change(self.witnesses.entry(witness).or_default(), 1);
        }
    }
}

impl Promises {
    /// Returns an empty set of promises.
    pub fn new(controller: &'static str) -> Self {
        Self { controller, counts: Mutex::default() }
    }

    /// Records the promise of an Instance, if any, and the source of its last known use. Updates the gauges.
    pub fn record(&self, key: &ObjectKey, promise: Option<&Promise>, witness: Option<&str>) {
        let is_undeliverable = promise.is_some_and(|promise| promise.undeliverable.is_some());
        let is_waiting = !is_undeliverable && promise.is_some_and(|promise| promise.sending.is_some());
        // While warnings do not reach the Tenant, the deadline of earlier warnings moves.
        let ends = |promise: &&Promise| !(is_undeliverable && promise.next_warning.is_some());
        let deadline = promise.filter(ends).and_then(|promise| promise.deadline.as_ref());
        let deadline = deadline.map(|deadline| deadline.0);
        let known = |witness| WITNESSES.into_iter().find(|known| *known == witness).unwrap_or("other");
        let entry = Entry { deadline, is_waiting, is_undeliverable, witness: witness.map(known) };
        let counts = &mut *self.counts.lock();
        let is_empty = deadline.is_none() && !is_waiting && !is_undeliverable && witness.is_none();
        if !counts.replace(key, (!is_empty).then_some(entry)) {
            return;
        }
        let next = counts.deadlines.first().map(|(deadline, _)| deadline.as_second());
        let next = next.and_then(|next| u32::try_from(next).ok()).unwrap_or_default();
        gauge!("next_deadline_seconds", "controller" => self.controller).set(f64::from(next));
        gauge!("automation_mails_waiting", "controller" => self.controller).set(precise(counts.waiting));
        gauge!("automation_mails_undeliverable", "controller" => self.controller)
            .set(precise(counts.undeliverable));
        for (witness, count) in &counts.witnesses {
            gauge!("automation_instances", "controller" => self.controller, "witness" => *witness)
                .set(precise(*count));
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn the_gauges_show_the_next_deadline_and_the_mails_that_wait() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let _guard = metrics::set_default_local_recorder(&recorder);
        let promises = Promises::new("expiration");
        let shows = |next: u32, waiting: u32| {
            let text = handle.render();
            for (name, value) in [("next_deadline_seconds", next), ("automation_mails_waiting", waiting)] {
                let line = format!("{name}{{controller=\"expiration\"}} {value}");
                assert!(text.lines().any(|shown| shown == line), "{line} not in:\n{text}");
            }
        };
        let time = |seconds| Timestamp::from_second(seconds).ok().map(Time);
        let promise = |deadline, sending| Promise { sending, deadline, ..Promise::default() };
        let (a, b) = (ObjectKey::new("ns", "a"), ObjectKey::new("ns", "b"));
        promises.record(&a, Some(&promise(time(500), None)), None);
        shows(500, 0);
        promises.record(&b, Some(&promise(time(300), time(900))), None);
        shows(300, 1);
        promises.record(&b, Some(&promise(None, time(900))), None);
        shows(500, 1);
        promises.record(&b, None, None);
        shows(500, 0);
        promises.record(&a, Some(&promise(None, None)), None);
        shows(0, 0);
    }

    #[test]
    fn the_gauges_show_the_sources_of_the_last_uses() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let _guard = metrics::set_default_local_recorder(&recorder);
        let promises = Promises::new("inactivity");
        let shows = |witness: &str, count: u32| {
            let line =
                format!("automation_instances{{controller=\"inactivity\",witness=\"{witness}\"}} {count}");
            let text = handle.render();
            assert!(text.lines().any(|shown| shown == line), "{line} not in:\n{text}");
        };
        let (a, b) = (ObjectKey::new("ns", "a"), ObjectKey::new("ns", "b"));
        promises.record(&a, None, Some("start"));
        promises.record(&b, None, Some("start"));
        shows("start", 2);
        promises.record(&a, None, Some("ssh"));
        shows("start", 1);
        shows("ssh", 1);
        // Unknown texts do not become labels.
        promises.record(&b, None, Some("evil"));
        shows("start", 0);
        shows("other", 1);
        promises.record(&b, None, None);
        shows("other", 0);
    }
}
