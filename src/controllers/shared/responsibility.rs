//! The objects that this daemon is responsible for: objects with the labels of its selector, and objects that have lost
//! these labels but still have its finalizer. If the selector does not match because the configuration was changed, the
//! object stays unchanged until `crownlabs release` releases it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rivals::{Rival, Rivals};
use crate::api::labels::{FINALIZED_BY, selector_labels, selector_string};
use crate::api::{Kind, Object};
use crate::config::{LeaderElection, read};
use crate::controllers::setup::Setup;
use crate::runtime::finalizer;
use crate::runtime::plan::{ObjectPatch, Plan, Requeue};

/// The objects that this daemon is responsible for.
#[derive(Debug, Clone, Default)]
pub struct Responsibility {
    /// The labels of its Tenants, Workspaces and namespaces, and of their child objects.
    pub selector: BTreeMap<String, String>,
    /// The Lease that its replicas share, `namespace/name`; `None` without an election. Only one of the daemons that
    /// share a Lease works at a time, so objects that another one has taken belong to this daemon too, even under
    /// another selector.
    pub lease: Option<String>,
    /// The other installations in the marks of objects.
    pub rivals: Rivals,
}

/// The reason why this daemon is responsible for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The object is reconciled: it is selected, or it is being deleted and waits for the finalizer.
    Selected,
    /// The object is reconciled and its mark is replaced: the installation that took it no longer runs.
    Inherited,
    /// The labels of the object were changed, and it has the finalizer. The finalizer is removed, and nothing else is
    /// done.
    Deselected,
}

/// The annotation of an object with this daemon's finalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark<'a> {
    /// The selector of the daemon that added the finalizer, in the format of [`selector_string`].
    pub selector: &'a str,
    /// The Lease of that daemon, `namespace/name`; `None` if it ran without an election.
    pub lease: Option<&'a str>,
}

/// The daemon that took an object under another selector, if it had another Lease than this daemon.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A daemon with this Lease and selector.
    Elected(Rival),
    /// A daemon without an election, with this selector.
    Unelected(String),
    /// Unknown: the object has the finalizer and no mark, as the objects of Go operators.
    Unmarked,
}

/// The text of a mark between the selector and the Lease.
const LEASE: &str = " (lease ";

impl<'a> Mark<'a> {
    /// The mark of an object.
    pub fn of<T: Kind>(object: &'a Object<T>) -> Option<Self> {
        let text = object.annotation(FINALIZED_BY)?;
        Some(match text.split_once(LEASE) {
            Some((selector, lease)) => Self { selector, lease: lease.strip_suffix(')') },
            None => Self { selector: text, lease: None },
        })
    }
}

/// The name of the Lease in a mark; `None` without an election.
pub fn lease_name(election: &LeaderElection) -> Option<String> {
    election.enabled.then(|| format!("{}/{}", election.namespace, election.name))
}

impl Responsibility {
    /// The responsibility of a daemon with this setup.
    pub fn of(setup: &mut Setup<'_>) -> Self {
        let selector = read!(setup.config, selector).clone();
        let lease = lease_name(read!(setup.config, leader_election));
        Self { selector, lease, rivals: setup.rivals.clone() }
    }

    /// The reason why this daemon is responsible for an object; `None` if it is not. If an object is not selected but
    /// its mark names the current selector, its labels were changed, and this daemon is responsible. If the mark names
    /// another selector, the configuration was changed, and the object stays unchanged. When it is deleted, a daemon
    /// with the Lease in the mark completes the deletion.
    pub fn standing<T: Kind>(
        &self,
        object: &Object<T>,
        finalizer: &str,
        is_selected: bool,
    ) -> Option<Standing> {
        if is_selected {
            let is_inherited = self.other(object).is_some_and(|other| self.rivals.has_gone(&other));
            return Some(if is_inherited { Standing::Inherited } else { Standing::Selected });
        }
        let mark = Mark::of(object).filter(|_| finalizer::holds(object, finalizer))?;
        let is_same = mark.selector == selector_string(&self.selector);
        let has_lease = mark.lease.is_some() && mark.lease == self.lease.as_deref();
        if object.is_terminating() {
            (is_same || has_lease).then_some(Standing::Selected)
        } else {
            is_same.then_some(Standing::Deselected)
        }
    }

    /// The former selector of an object that a daemon with the same Lease took, if the current selector does not match
    /// the object because the configuration was changed.
    pub fn former_selector<'a, T: Kind>(
        &self,
        object: &'a Object<T>,
        finalizer: &str,
        is_selected: bool,
    ) -> Option<&'a str> {
        let mark = Mark::of(object).filter(|_| !is_selected && finalizer::holds(object, finalizer))?;
        let is_former =
            mark.lease == self.lease.as_deref() && mark.selector != selector_string(&self.selector);
        is_former.then_some(mark.selector)
    }

    /// The origin of an object that is not selected and that a daemon with this Lease did not take. Such a daemon may run.
    pub fn origin<T: Kind>(&self, object: &Object<T>, finalizer: &str, is_selected: bool) -> Option<Origin> {
        if is_selected || !finalizer::holds(object, finalizer) {
            return None;
        }
        let Some(mark) = Mark::of(object) else { return Some(Origin::Unmarked) };
        let is_other =
            mark.lease != self.lease.as_deref() && mark.selector != selector_string(&self.selector);
        let selector = mark.selector.to_owned();
        is_other.then(|| match mark.lease {
            Some(lease) => Origin::Elected(Rival { lease: lease.to_owned(), selector }),
            None => Origin::Unelected(selector),
        })
    }

    /// The other installation that has taken an object.
    fn other<T: Kind>(&self, object: &Object<T>) -> Option<Rival> {
        let Mark { selector, lease } = Mark::of(object)?;
        let lease = lease.filter(|lease| Some(*lease) != self.lease.as_deref())?;
        Some(Rival { lease: lease.to_owned(), selector: selector.to_owned() })
    }

    /// The other installation that has taken an object, if the object has the labels of both. An object whose labels
    /// were changed is moving from one installation to the other.
    pub fn rival<T: Kind>(&self, object: &Object<T>) -> Option<Rival> {
        let other = self.other(object)?;
        let is_of_both =
            object.has_labels(&self.selector) && object.has_labels(&selector_labels(&other.selector)?);
        is_of_both.then_some(other)
    }

    /// The annotations of an object with this daemon's finalizer. They name the daemon that will remove it.
    pub fn mark<T: Kind>(&self, object: &Object<T>, standing: Standing) -> Value {
        let selector = selector_string(&self.selector);
        let is_current = Mark::of(object)
            .is_some_and(|mark| mark.selector == selector && (self.lease.is_none() || mark.lease.is_some()));
        if is_current && standing != Standing::Inherited {
            return json!({});
        }
        let mark = match &self.lease {
            None => selector,
            Some(lease) => format!("{selector}{LEASE}{lease})"),
        };
        json!({FINALIZED_BY: mark})
    }

    /// The patch to the labels of an object that adds the finalizer and the mark.
    pub fn hold<T: Kind>(
        &self,
        object: &Object<T>,
        standing: Standing,
        finalizer: &str,
        labels: &Value,
    ) -> Option<ObjectPatch> {
        let mut metadata = json!({"labels": labels, "annotations": self.mark(object, standing)});
        if let Some(finalizers) = finalizer::added(object, finalizer) {
            metadata["finalizers"] = json!(finalizers);
        }
        ObjectPatch::of(object, &json!({"metadata": metadata}))
    }
}

/// The plan for an object whose labels were changed: finalizer and mark are removed, so that the object can be deleted
/// without this daemon, and another daemon can take it over.
pub fn release<T: Kind, E>(object: &Object<T>, finalizer: &str) -> Plan<E> {
    let patches = released(object, finalizer).into_iter().collect();
    Plan { patches, requeue: Requeue::OnChange, ..Plan::default() }
}

/// The patch that removes the finalizer and the mark from an object.
pub fn released<T: Kind>(object: &Object<T>, finalizer: &str) -> Option<ObjectPatch> {
    let mut removal = finalizer::removal(object, finalizer)?;
    removal.patch["metadata"]["annotations"] = json!({FINALIZED_BY: null});
    Some(removal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Namespace, NamespaceKind};

    const FINALIZER: &str = "example.org/finalizer";

    fn daemon(selector: &str, lease: Option<&str>) -> Responsibility {
        let selector = BTreeMap::from([("sel".to_owned(), selector.to_owned())]);
        Responsibility { selector, lease: lease.map(str::to_owned), ..Responsibility::default() }
    }

    /// An object that another daemon holds, with this additional metadata.
    fn held(by: &Responsibility, more: &Value) -> Namespace {
        let empty: Namespace = serde_json::from_value(json!({"metadata": {"name": "a"}})).expect("an object");
        let mut object = json!({"metadata": {"name": "a", "uid": "u", "annotations": by.mark(&empty, Standing::Selected), "finalizers": [FINALIZER]}});
        crate::runtime::merge::apply(&mut object, &json!({"metadata": more}));
        serde_json::from_value(object).expect("an object")
    }

    #[test]
    fn only_an_object_with_changed_labels_is_released() {
        let (first, second) = (Some("crownlabs/a"), Some("crownlabs/b"));
        for (holder, now, is_released, is_deleted) in [
            (daemon("x", None), daemon("x", None), true, true),
            (daemon("x", None), daemon("y", None), false, false),
            (daemon("x", first), daemon("x", None), true, true),
            (daemon("x", None), daemon("x", first), true, true),
            // The configured selector was changed: only a deletion is completed.
            (daemon("x", first), daemon("y", first), false, true),
            // Another daemon of the cluster.
            (daemon("x", first), daemon("y", second), false, false),
            (daemon("x", first), daemon("y", None), false, false),
        ] {
            let case = format!("{holder:?} {now:?}");
            let standing = |object: &Namespace, selected| now.standing(object, FINALIZER, selected);
            let object = held(&holder, &json!({}));
            assert_eq!(standing(&object, false), is_released.then_some(Standing::Deselected), "{case}");
            assert_eq!(standing(&object, true), Some(Standing::Selected), "{case}");
            let going = held(&holder, &json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
            assert_eq!(standing(&going, false), is_deleted.then_some(Standing::Selected), "{case}");
            let free = held(&holder, &json!({"finalizers": ["example.org/other"]}));
            assert_eq!(standing(&free, false), None, "{case}");
        }
    }

    #[test]
    fn an_object_of_a_former_selector_is_counted_unless_another_installation_has_taken_it() {
        let (first, second) = (Some("crownlabs/a"), Some("crownlabs/b"));
        for (holder, now, is_former) in [
            (daemon("x", first), daemon("y", first), true),
            (daemon("x", None), daemon("y", None), true),
            (daemon("x", first), daemon("x", first), false),
            (daemon("x", first), daemon("y", second), false),
            (daemon("x", None), daemon("y", first), false),
        ] {
            let case = format!("{holder:?} {now:?}");
            let former = |object: &Namespace, selected| {
                now.former_selector(object, FINALIZER, selected).map(str::to_owned)
            };
            let object = held(&holder, &json!({}));
            assert_eq!(former(&object, false), is_former.then(|| "sel=x".to_owned()), "{case}");
            assert_eq!(former(&object, true), None, "{case}: it is taken over");
            assert_eq!(former(&held(&holder, &json!({"finalizers": null})), false), None, "{case}");
        }
    }

    #[test]
    fn the_origin_of_an_object_that_is_not_selected_is_another_lease_or_none() {
        let (first, second) = (Some("crownlabs/a"), Some("crownlabs/b"));
        let elected =
            Origin::Elected(Rival { lease: "crownlabs/a".to_owned(), selector: "sel=x".to_owned() });
        let unelected = Origin::Unelected("sel=x".to_owned());
        for (holder, now, origin) in [
            (daemon("x", first), daemon("y", second), Some(&elected)),
            (daemon("x", first), daemon("y", None), Some(&elected)),
            (daemon("x", None), daemon("y", first), Some(&unelected)),
            // This daemon took it, or its labels were changed.
            (daemon("x", first), daemon("y", first), None),
            (daemon("x", None), daemon("y", None), None),
            (daemon("x", first), daemon("x", second), None),
        ] {
            let case = format!("{holder:?} {now:?}");
            let object = held(&holder, &json!({}));
            assert_eq!(now.origin(&object, FINALIZER, false).as_ref(), origin, "{case}");
            assert_eq!(now.origin(&object, FINALIZER, true), None, "{case}: it is taken over");
            let unmarked = held(&holder, &json!({"annotations": null}));
            assert_eq!(now.origin(&unmarked, FINALIZER, false), Some(Origin::Unmarked), "{case}");
            let free = held(&holder, &json!({"finalizers": null}));
            assert_eq!(now.origin(&free, FINALIZER, false), None, "{case}");
        }
    }

    #[test]
    fn a_rival_has_taken_an_object_that_has_the_labels_of_both() {
        let (ours, theirs) = (daemon("x", Some("a/crownlabs")), daemon("x", Some("b/crownlabs")));
        let rival = |holder: &Responsibility, labels: &Value| {
            ours.rival(&held(holder, &json!({"labels": labels}))).map(|rival| (rival.lease, rival.selector))
        };
        let found = Some(("b/crownlabs".to_owned(), "sel=x".to_owned()));
        assert_eq!(rival(&theirs, &json!({"sel": "x"})), found);
        assert_eq!(rival(&ours, &json!({"sel": "x"})), None, "it is ours");
        assert_eq!(rival(&daemon("x", None), &json!({"sel": "x"})), None, "it names no Lease");
        // The label was changed a moment ago, so the object is moving from one to the other.
        let from = daemon("y", Some("b/crownlabs"));
        assert_eq!(rival(&from, &json!({"sel": "x"})), None);
        assert_eq!(rival(&theirs, &json!({"sel": "y"})), None);
        // A selector with more labels overlaps.
        let mut narrow = daemon("x", Some("b/crownlabs"));
        narrow.selector.insert("zone".to_owned(), "north".to_owned());
        let labels = json!({"sel": "x", "zone": "north"});
        assert_eq!(rival(&narrow, &labels), Some(("b/crownlabs".to_owned(), "sel=x,zone=north".to_owned())));
        assert_eq!(rival(&narrow, &json!({"sel": "x"})), None);
    }

    #[test]
    fn the_mark_of_an_installation_that_no_longer_runs_is_replaced() {
        let (ours, theirs) = (daemon("x", Some("a/crownlabs")), daemon("x", Some("b/crownlabs")));
        let object = held(&theirs, &json!({"labels": {"sel": "x"}}));
        assert_eq!(ours.standing(&object, FINALIZER, true), Some(Standing::Selected));
        assert_eq!(ours.mark(&object, Standing::Selected), json!({}), "its Lease may be held");
        ours.rivals.set_gone(&ours.rival(&object).expect("another Lease"));
        assert_eq!(ours.standing(&object, FINALIZER, true), Some(Standing::Inherited));
        assert_eq!(ours.mark(&object, Standing::Inherited)[FINALIZED_BY], "sel=x (lease a/crownlabs)");
    }

    #[test]
    fn a_mark_is_written_once() {
        let (plain, elected) = (daemon("x", None), daemon("x", Some("crownlabs/a")));
        let written =
            |by: &Responsibility, on: &Namespace| by.mark(on, Standing::Selected)[FINALIZED_BY].clone();
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
    fn a_release_keeps_other_finalizers() {
        let finalizers = json!({"finalizers": ["example.org/other", FINALIZER]});
        let plan: Plan = release::<NamespaceKind, ()>(&held(&daemon("x", None), &finalizers), FINALIZER);
        let wanted =
            json!({"metadata": {"finalizers": ["example.org/other"], "annotations": {FINALIZED_BY: null}}});
        assert_eq!(plan.patches[0].patch, wanted);
        assert_eq!((plan.patches.len(), plan.remove.len(), plan.ensure.len()), (1, 0, 0));
    }
}
