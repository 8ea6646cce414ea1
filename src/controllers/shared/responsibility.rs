//! Which objects this daemon is responsible for: those with the labels of its selector, and those that have left this
//! selection but still have a finalizer of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::labels::{FINALIZED_BY, selector_string};
use crate::api::{Kind, Object};
use crate::config::Config;
use crate::runtime::finalizer;
use crate::runtime::plan::{ObjectPatch, Plan, Requeue};

/// Which objects this daemon is responsible for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Responsibility {
    /// The labels of its Tenants, Workspaces and namespaces, and of the objects that it creates for them.
    pub selector: BTreeMap<String, String>,
    /// The Lease that its replicas hold in turn, `namespace/name`; `None` without an election. Of daemons that use one
    /// Lease, one works at a time: what another has left, with another selector too, is ours.
    pub lease: Option<String>,
}

/// Why an object is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is reconciled: it is selected, or it is being deleted and waits for our finalizer.
    Selected,
    /// It is not selected any more, and has our finalizer: that is removed, and nothing else is done.
    Deselected,
}

/// What the annotation says between the selector and the Lease.
const LEASE: &str = " (lease ";

impl Responsibility {
    /// That of a daemon with this configuration.
    pub fn of(config: &Config) -> Self {
        let election = &config.leader_election;
        let lease = election.enabled.then(|| format!("{}/{}", election.namespace, election.name));
        Self { selector: config.selector.clone(), lease }
    }

    /// Why an object is ours; `None` if it is not. An object that is being deleted after its labels were changed would
    /// otherwise never be deleted, or another daemon would remove the finalizer without deleting what belongs to it.
    pub fn standing<T: Kind>(
        &self,
        object: &Object<T>,
        finalizer: &str,
        is_selected: bool,
    ) -> Option<Standing> {
        if is_selected {
            return Some(Standing::Selected);
        }
        let is_held = finalizer::holds(object, finalizer) && self.has_marked(object);
        let standing = if object.is_terminating() { Standing::Selected } else { Standing::Deselected };
        is_held.then_some(standing)
    }

    /// Whether an object carries the mark of this daemon, or of one that used the same Lease.
    fn has_marked<T: Kind>(&self, object: &Object<T>) -> bool {
        let Some((selector, lease)) = object.annotation(FINALIZED_BY).map(parts) else { return false };
        selector == selector_string(&self.selector) || lease.is_some() && lease == self.lease.as_deref()
    }

    /// The annotations of an object that has our finalizer: which daemon will remove it.
    pub fn mark<T: Kind>(&self, object: &Object<T>) -> Value {
        let has_lease = || object.annotation(FINALIZED_BY).is_some_and(|mark| parts(mark).1.is_some());
        let selector = selector_string(&self.selector);
        let is_current = object.annotation(FINALIZED_BY).is_some_and(|mark| parts(mark).0 == selector);
        if is_current && (self.lease.is_none() || has_lease()) {
            return json!({});
        }
        let mark = match &self.lease {
            None => selector,
            Some(lease) => format!("{selector}{LEASE}{lease})"),
        };
        json!({FINALIZED_BY: mark})
    }

    /// The patch of the labels of an object that adds our finalizer and our mark.
    pub fn hold<T: Kind>(&self, object: &Object<T>, finalizer: &str, labels: &Value) -> Option<ObjectPatch> {
        let mut metadata = json!({"labels": labels, "annotations": self.mark(object)});
        if let Some(finalizers) = finalizer::added(object, finalizer) {
            metadata["finalizers"] = json!(finalizers);
        }
        ObjectPatch::of(object, &json!({"metadata": metadata}))
    }
}

/// The plan for an object that has left: finalizer and mark are removed, so that it can be deleted without us, and
/// another daemon can take it over.
pub fn release<T: Kind, E>(object: &Object<T>, finalizer: &str) -> Plan<E> {
    let mut plan = Plan { requeue: Requeue::OnChange, ..Plan::default() };
    plan.patches.extend(finalizer::removal(object, finalizer).map(|mut patch| {
        patch.patch["metadata"]["annotations"] = json!({FINALIZED_BY: null});
        patch
    }));
    plan
}

/// Selector and Lease of a mark.
fn parts(mark: &str) -> (&str, Option<&str>) {
    match mark.split_once(LEASE) {
        Some((selector, lease)) => (selector, lease.strip_suffix(')')),
        None => (mark, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Namespace, NamespaceKind};

    const FINALIZER: &str = "example.org/finalizer";

    fn daemon(selector: &str, lease: Option<&str>) -> Responsibility {
        let selector = BTreeMap::from([("sel".to_owned(), selector.to_owned())]);
        Responsibility { selector, lease: lease.map(str::to_owned) }
    }

    /// An object that another daemon holds, with these members of the metadata besides.
    fn held(by: &Responsibility, more: &Value) -> Namespace {
        let empty: Namespace = serde_json::from_value(json!({"metadata": {"name": "a"}})).expect("an object");
        let mut object = json!({"metadata": {"name": "a", "uid": "u", "annotations": by.mark(&empty), "finalizers": [FINALIZER]}});
        crate::runtime::merge::apply(&mut object, &json!({"metadata": more}));
        serde_json::from_value(object).expect("an object")
    }

    #[test]
    fn an_object_that_left_the_selection_is_released_by_the_daemon_that_held_it() {
        let (first, second) = (Some("crownlabs/a"), Some("crownlabs/b"));
        for (holder, now, is_ours) in [
            (daemon("x", None), daemon("x", None), true),
            (daemon("x", None), daemon("y", None), false),
            (daemon("x", first), daemon("x", None), true),
            (daemon("x", None), daemon("x", first), true),
            // The selector of the configuration was changed.
            (daemon("x", first), daemon("y", first), true),
            // Another daemon of the cluster.
            (daemon("x", first), daemon("y", second), false),
            (daemon("x", first), daemon("y", None), false),
        ] {
            let case = format!("{holder:?} {now:?}");
            let standing = |object: &Namespace, selected| now.standing(object, FINALIZER, selected);
            let object = held(&holder, &json!({}));
            assert_eq!(standing(&object, false), is_ours.then_some(Standing::Deselected), "{case}");
            assert_eq!(standing(&object, true), Some(Standing::Selected), "{case}");
            let going = held(&holder, &json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
            assert_eq!(standing(&going, false), is_ours.then_some(Standing::Selected), "{case}");
            let free = held(&holder, &json!({"finalizers": ["example.org/other"]}));
            assert_eq!(standing(&free, false), None, "{case}");
        }
    }

    #[test]
    fn a_mark_is_written_once() {
        let (plain, elected) = (daemon("x", None), daemon("x", Some("crownlabs/a")));
        let written = |by: &Responsibility, on: &Namespace| by.mark(on)[FINALIZED_BY].clone();
        let none = held(&plain, &json!({"annotations": null}));
        assert_eq!(written(&plain, &none), "sel=x");
        assert_eq!(written(&elected, &none), "sel=x (lease crownlabs/a)");
        assert_eq!(
            written(&elected, &held(&plain, &json!({}))),
            "sel=x (lease crownlabs/a)",
            "it has none yet"
        );
        assert_eq!(written(&daemon("y", None), &held(&plain, &json!({}))), "sel=y");
        for (by, on) in [(&plain, &plain), (&elected, &elected), (&plain, &elected)] {
            assert_eq!(written(by, &held(on, &json!({}))), Value::Null, "{by:?} {on:?}");
        }
    }

    #[test]
    fn a_release_leaves_the_finalizers_of_others() {
        let finalizers = json!({"finalizers": ["example.org/other", FINALIZER]});
        let plan: Plan = release::<NamespaceKind, ()>(&held(&daemon("x", None), &finalizers), FINALIZER);
        let wanted =
            json!({"metadata": {"finalizers": ["example.org/other"], "annotations": {FINALIZED_BY: null}}});
        assert_eq!(plan.patches[0].patch, wanted);
        assert_eq!((plan.patches.len(), plan.remove.len(), plan.ensure.len()), (1, 0, 0));
    }
}
