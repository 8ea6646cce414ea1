//! The conditions that keep an object from its desired state, as JSON.

use serde_json::{Value, json};

use crate::api::condition::Condition;
use crate::api::names;
use crate::api::reason::Reason;

/// The object that has a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl About<'_> {
    /// The object as `namespace/name`, or as `name` if it is cluster-scoped.
    pub fn place(&self) -> String {
        let Self { namespace, name, .. } = self;
        if namespace.is_empty() { (*name).to_owned() } else { format!("{namespace}/{name}") }
    }
}

/// Returns a condition as JSON, with the object that has it, and the roles that can act. `cause` is the object that the
/// message begins with, such as a pod.
pub fn value(about: &About<'_>, condition: &Condition) -> Value {
    let Condition { type_, status, reason, message, last_transition_time, .. } = condition;
    let cause = cause(message).map(|(kind, name)| json!({"kind": kind, "name": name}));
    json!({
        "kind": about.kind,
        "namespace": (!about.namespace.is_empty()).then_some(about.namespace),
        "name": about.name,
        "cause": cause,
        "condition": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "since": last_transition_time,
        "whoCanAct": Reason::actors(reason),
    })
}

/// Returns the kind and the name of the object that a message begins with: `Pod lab-1: no node is large enough`.
fn cause(message: &str) -> Option<(&str, &str)> {
    let (kind, rest) = message.split_once(' ')?;
    let (name, _) = rest.split_once(": ")?;
    let is_kind = kind.starts_with(char::is_uppercase) && kind.chars().all(char::is_alphanumeric);
    (is_kind && names::check_object_name(name).is_ok()).then_some((kind, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_names_its_object_its_cause_and_the_roles_that_can_act() {
        let condition: Condition = serde_json::from_value(json!({"type": "Ready", "status": "False",
            "reason": "VolumeNotMounted", "message": "Pod lab-1: the server does not answer",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}))
        .expect("a condition");
        let about = About { kind: "Instance", namespace: "tenant-ada", name: "box" };
        let expected = json!({
            "kind": "Instance", "namespace": "tenant-ada", "name": "box",
            "cause": {"kind": "Pod", "name": "lab-1"},
            "condition": "Ready", "status": "False", "reason": "VolumeNotMounted",
            "message": "Pod lab-1: the server does not answer", "since": "2026-01-01T00:00:00Z",
            "whoCanAct": ["administrator"],
        });
        assert_eq!(value(&about, &condition), expected);
        let about = About { kind: "Tenant", namespace: "", name: "ada" };
        assert_eq!(value(&about, &condition)["namespace"], Value::Null);
        assert_eq!([about.place(), About { namespace: "a", ..about }.place()], ["ada", "a/ada"]);
    }

    #[test]
    fn only_a_message_that_begins_with_an_object_has_a_cause() {
        for (message, expected) in [
            ("Pod lab-1: no node: too small", Some(("Pod", "lab-1"))),
            ("PersistentVolumeClaim a.b: unbound", Some(("PersistentVolumeClaim", "a.b"))),
            ("Template workspace-tea/desktop not found", None),
            ("The machine is off: start it", None),
            ("environment a: no class", None),
            ("", None),
        ] {
            assert_eq!(cause(message), expected, "{message}");
        }
    }
}
