//! The stores of the termination loop, and the Instances that their changes add to the queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::observe::{is_ending, is_watched, was_ready};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::meta::Metadata;
use crate::api::template::{Template, TemplateKind};
use crate::controllers::shared::references::{ByTemplate, template_of};
use crate::kinds::NamespaceKind;
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::store::{Change, Store};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The stores of the termination loop.
pub struct Stores {
    /// The labels of the namespaces whose Instances are reconciled.
    selector: BTreeMap<String, String>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
}

/// Whether an Instance may need work.
fn is_concerned(instance: &Instance) -> bool {
    is_watched(instance) || is_ending(instance)
}

/// Like `is_concerned`, but also true before the instance loop has added the label.
fn is_exam(instance: &Instance) -> bool {
    let is_unlabelled = instance.label(labels::WATCH_FOR_TERMINATION).is_none_or(str::is_empty);
    is_concerned(instance) || is_unlabelled && !instance.spec.effective_status_check_url().is_empty()
}

/// Whether a change of an Instance causes a reconcile: its creation or deletion, a change of its spec or labels, or the
/// first time that its machine is ready. Other changes of its status do not, because each query causes one.
fn is_relevant(change: &Change<InstanceKind>) -> bool {
    if ![&change.old, &change.new].into_iter().flatten().any(|instance| is_concerned(instance)) {
        return false;
    }
    let changed = change.object_if(|instance| {
        let Metadata { uid, generation, labels, deletion_timestamp, .. } = &instance.metadata;
        (uid, generation, labels, deletion_timestamp)
    });
    let is_ready = |instance: &Option<Arc<Instance>>| instance.as_deref().is_some_and(was_ready);
    changed.is_some() || !is_ready(&change.old) && is_ready(&change.new)
}

impl Stores {
    /// Declares the stores. Only Instances in namespaces with the labels of `selector` are reconciled.
    pub fn declare(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>) -> Self {
        let all = Selection::ALL;
        let instances = set.store::<InstanceKind>(&all).requests("patch").index::<ByTemplate>();
        let instances = instances.listed(is_exam).on_foreign_change(|change, queue| {
            if let Some(instance) = change.object().filter(|_| is_relevant(change)) {
                queue.add(ObjectKey::of(&**instance), Priority::Change);
            }
        });
        let instances = instances.get();
        let waiting = Arc::clone(&instances);
        let templates = set.store::<TemplateKind>(&all).on_change(move |change, queue| {
            let changed = change.object_if(|template| (&template.spec, &template.malformed));
            let Some(template) = changed else { return };
            for instance in waiting.by::<ByTemplate>(&ObjectKey::of(&**template)) {
                if is_ending(&instance) {
                    queue.add(ObjectKey::of(&*instance), Priority::Change);
                }
            }
        });
        Self {
            selector: selector.clone(),
            templates: templates.get(),
            namespaces: set.store(&all).wakes_objects_within(&instances, selector).get(),
            instances,
        }
    }

    /// Returns an Instance and its Template; `None` if the Instance does not exist, or its namespace is not selected.
    pub fn show(&self, key: &ObjectKey) -> Option<(Arc<Instance>, Option<Arc<Template>>)> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        self.namespaces.get("", &key.namespace).filter(|namespace| namespace.has_labels(&self.selector))?;
        let template = template_of(&instance, &self.templates);
        Some((instance, template))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::runtime::merge;

    #[test]
    fn creation_spec_labels_and_deletion_count_and_the_status_does_not() {
        let exam = |more: Value| {
            let watch = "crownlabs.polito.it/watch-for-instance-termination";
            let mut instance = json!({
                "metadata": {"name": "exam", "uid": "i1", "generation": 1, "labels": {watch: "true"}},
            });
            merge::apply(&mut instance, &more);
            let instance: Instance = serde_json::from_value(instance).expect("objects are read leniently");
            Some(Arc::new(instance))
        };
        let watched = || exam(json!({}));
        let unwatched =
            |generation: u8| exam(json!({"metadata": {"labels": null, "generation": generation}}));
        let status =
            json!({"status": {"phase": "Starting", "automation": {"lastCheckTime": "2026-01-01T00:00:00Z"}}});
        let ready = || exam(json!({"status": {"phase": "Ready", "initialReadyTime": "1s"}}));
        let cases = [
            ("created", None, watched(), true),
            ("created without label", None, unwatched(1), false),
            ("status", watched(), exam(status), false),
            ("ready for the first time", watched(), ready(), true),
            ("not ready any more", ready(), exam(json!({"status": {"initialReadyTime": "1s"}})), false),
            ("annotation", watched(), exam(json!({"metadata": {"annotations": {"a": "b"}}})), false),
            ("spec", watched(), exam(json!({"metadata": {"generation": 2}})), true),
            ("spec without label", unwatched(1), unwatched(2), false),
            ("label", watched(), exam(json!({"metadata": {"labels": {"a": "b"}}})), true),
            ("label set", unwatched(1), watched(), true),
            ("label removed", watched(), unwatched(1), true),
            ("created anew", watched(), exam(json!({"metadata": {"uid": "i2"}})), true),
            ("deleted", watched(), None, true),
        ];
        for (what, old, new, expected) in cases {
            assert_eq!(is_relevant(&Change { old, new, origin: None }), expected, "{what}");
        }
    }
}
