//! The gauges about the promises of a loop.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use metrics::gauge;

use crate::api::promise::Promise;
use crate::runtime::ObjectKey;
use crate::runtime::metrics::precise;

/// The deadlines that a loop has promised, and the mails that wait to be accepted, by Instance.
pub struct Deadlines {
    controller: &'static str,
    promises: Mutex<BTreeMap<ObjectKey, (Option<Timestamp>, bool)>>,
}

impl Deadlines {
    /// No promise yet.
    pub fn new(controller: &'static str) -> Self {
        Self { controller, promises: Mutex::default() }
    }

    /// Takes the promise of an Instance, `None` where there is none, and updates the gauges.
    pub fn record(&self, key: &ObjectKey, promise: Option<&Promise>) {
        let mut promises = self.promises.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = promise.and_then(|promise| promise.deadline.as_ref()).map(|deadline| deadline.0);
        let is_waiting = promise.is_some_and(|promise| promise.sending.is_some());
        if deadline.is_some() || is_waiting {
            promises.insert(key.clone(), (deadline, is_waiting));
        } else if promises.remove(key).is_none() {
            return;
        }
        let next = promises.values().filter_map(|(deadline, _)| *deadline).min();
        let next = next.and_then(|next| u32::try_from(next.as_second()).ok()).unwrap_or_default();
        let waiting = promises.values().filter(|(_, is_waiting)| *is_waiting).count();
        gauge!("next_deadline_seconds", "controller" => self.controller).set(f64::from(next));
        gauge!("automation_mails_waiting", "controller" => self.controller).set(precise(waiting));
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
        let deadlines = Deadlines::new("expiration");
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
        deadlines.record(&a, Some(&promise(time(500), None)));
        shows(500, 0);
        deadlines.record(&b, Some(&promise(time(300), time(900))));
        shows(300, 1);
        deadlines.record(&b, Some(&promise(None, time(900))));
        shows(500, 1);
        deadlines.record(&b, None);
        shows(500, 0);
        deadlines.record(&a, Some(&promise(None, None)));
        shows(0, 0);
    }
}
