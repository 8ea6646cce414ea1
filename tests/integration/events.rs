//! The events about the objects of a laboratory.

use serde_json::Value;

use crate::lab::{Lab, PATIENCE, wait_until};

impl Lab {
    /// The events about an object, each as `reason: message`.
    pub fn events(&self, namespace: &str, name: &str) -> Vec<String> {
        let about = |event: &&Value| event["involvedObject"]["name"] == name;
        let line = |event: &Value| {
            let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text("reason"), text("message"))
        };
        self.list("events", namespace).iter().filter(about).map(line).collect()
    }

    /// Waits for an event about an object that begins with this text, and returns it. A patch of the object comes before
    /// its event, and the status does not wait for a slow event.
    pub fn await_event(&self, namespace: &str, name: &str, begin: &str) -> String {
        wait_until(PATIENCE, || {
            let events = self.events(namespace, name);
            let found = events.iter().find(|event| event.starts_with(begin));
            found.cloned().ok_or_else(|| format!("{begin}: {events:?}"))
        })
    }
}
