//! Children: the objects that a loop creates for one object, their owner. Each kind of child is declared once, as a
//! [`Child`] with its name, component, wave and body. The plan follows from the declaration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value, json};

use crate::api::instance::InstanceKind;
use crate::api::meta::Metadata;
use crate::api::parts::other_part;
use crate::api::tenant::TenantKind;
use crate::api::workspace::NameCreated;
use crate::api::{Kind, Object, labels};
use crate::kinds::Namespace;
use crate::runtime::children::Children;
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, KindInfo, Manifest, Ownership, Plan, Removal};
use crate::runtime::store::AnyObject;
use crate::runtime::{ObjectKey, merge};

/// The API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The owner reference to `owner`, as its controller: the garbage collector deletes the child with it.
fn owner<T: Kind>(owner: &Object<T>) -> OwnerReference {
    OwnerReference {
        api_version: KindInfo::of::<T>().api_version(),
        kind: T::KIND.to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The labels that identify the user's object behind a child with this owner and these labels: see
/// [`Desired::identity`].
pub fn identity(
    owner: &OwnerReference,
    own_labels: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let of = |key: &str, kind: &str| {
        let value = own_labels.get(key).or(Some(&owner.name).filter(|_| owner.kind == kind));
        (key.to_owned(), value.cloned())
    };
    BTreeMap::from([
        of(labels::INSTANCE, InstanceKind::KIND),
        of(labels::TENANT, TenantKind::KIND),
        of(labels::NAME, TenantKind::KIND),
    ])
}

/// These labels as a part of [`Desired::identity`].
pub fn exactly(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (String, Option<String>)> {
    labels.iter().map(|(key, value)| (key.clone(), Some(value.clone())))
}

/// The owner of a name that the children of several objects would share, if it is not `object`. The object that already
/// has such a child owns the name, otherwise the oldest one does. `holders` are the uids of the controllers of the
/// existing children.
pub fn name_owner<T: Kind>(
    object: &Object<T>,
    siblings: &[Arc<Object<T>>],
    holders: &BTreeSet<&str>,
) -> Option<String> {
    if siblings.len() < 2 || holders.contains(object.uid()) {
        return None;
    }
    // Creation times have whole seconds, so an object with children counts as the oldest.
    let holder = siblings.iter().find(|other| holders.contains(other.uid()));
    let age = |other: &Object<T>| (other.metadata.creation_timestamp.clone(), other.name().to_owned());
    let oldest = || siblings.iter().filter(|other| !other.is_terminating()).min_by_key(|other| age(other));
    let name_owner = holder.or_else(oldest)?;
    (name_owner.uid() != object.uid()).then(|| name_owner.name().to_owned())
}

/// The status of a namespace of `owner`. It counts as created while it exists and is not being deleted.
pub fn namespace_status<T: Kind>(owner: &Object<T>, namespace: Option<&Namespace>) -> NameCreated {
    let usable = namespace.filter(|found| found.is_controlled_by(owner) && !found.is_terminating());
    usable.map(|found| NameCreated { created: true, name: found.name().to_owned() }).unwrap_or_default()
}

/// The common properties of the children of an object.
#[derive(Debug, Clone)]
pub struct Parent<'a> {
    /// Their owner.
    pub owner: OwnerReference,
    /// Their namespace, if their kind has namespaces.
    pub namespace: String,
    /// The labels of each child.
    pub labels: BTreeMap<String, String>,
    /// The existing children, and other objects with their names.
    pub seen: Option<&'a Children>,
}

impl<'a> Parent<'a> {
    /// A parent with children in the object's namespace and with these labels.
    pub fn new<T: Kind>(object: &Object<T>, labels: BTreeMap<String, String>) -> Self {
        Self { owner: owner(object), namespace: object.namespace().to_owned(), labels, seen: None }
    }

    /// The same parent with these existing children.
    pub fn seeing(self, children: &'a Children) -> Self {
        Self { seen: Some(children), ..self }
    }

    /// The same parent with further labels for its children.
    pub fn with(mut self, labels: &[(&str, &str)]) -> Self {
        self.labels.extend(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        self
    }

    /// The same parent with children in this namespace.
    pub fn within(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Describes a name conflict, for example `Service a belongs to Instance b`, if the name of a child belongs to
    /// another object or to another part of this object.
    pub fn conflict<T: Kind>(&self, name: &str) -> Option<String> {
        let namespace = if T::NAMESPACED { &*self.namespace } else { "" };
        let owner = &self.owner;
        let metadata = &self.seen?.get::<T>(namespace, name)?.metadata;
        let controller = metadata.controller()?;
        let (kind, is_former) = (T::KIND, controller.kind == *owner.kind && controller.name == *owner.name);
        if controller.uid == *owner.uid {
            let label = other_part(&metadata.labels, &self.labels)?;
            return Some(format!(
                "{kind} {name} belongs to another part of {} {} ({label})",
                owner.kind, owner.name
            ));
        }
        (!is_former).then(|| format!("{kind} {name} belongs to {} {}", controller.kind, controller.name))
    }

    /// A child. The members in `body` (`spec`, `subjects`, …) are written when it is created.
    pub fn child<'c, T: Kind>(
        &self,
        name: &str,
        component: &Component,
        wave: u8,
        body: impl FnOnce() -> Value + 'c,
    ) -> Child<'c>
    where
        'a: 'c,
    {
        let namespace = if T::NAMESPACED { &*self.namespace } else { "" };
        let desired = Desired {
            kind: KindInfo::of::<T>(),
            key: ObjectKey::new(namespace, name),
            component: component.clone(),
            wave,
            is_guarded: false,
            manifest: None,
            labels: self.labels.clone(),
            annotations: BTreeMap::new(),
            owner: self.owner.clone(),
            ownership: Ownership::Controlled,
            identity: identity(&self.owner, &self.labels),
            known_by: None,
            members: Vec::new(),
            fields: Value::Null,
        };
        let seen = self.seen.and_then(|seen| seen.get::<T>(namespace, name));
        let existing = seen.map(|object| object as &dyn AnyObject);
        Child { desired, existing, is_enforced: false, initial: json!({}), body: Box::new(body) }
    }
}

/// A child of an object, and the existing object with its name, whatever its owner.
pub struct Child<'a> {
    /// The desired object in the plan, without the manifest.
    pub desired: Desired,
    /// The existing object with its name.
    pub existing: Option<&'a dyn AnyObject>,
    is_enforced: bool,
    /// The part of the manifest that is written only at creation.
    initial: Value,
    body: Box<dyn FnOnce() -> Value + 'a>,
}

impl<'a> Child<'a> {
    /// Sets the existing object with its name.
    pub fn existing<T: Kind>(mut self, object: Option<&'a Object<T>>) -> Self {
        self.existing = object.map(|object| object as &dyn AnyObject);
        self
    }

    /// Enforces the members of the body as far as [`Kind`] reads them, and removes additions by others.
    pub fn enforced(mut self) -> Self {
        self.is_enforced = true;
        self
    }

    /// Adds this JSON merge patch at creation. It is never enforced.
    pub fn initially(mut self, patch: Value) -> Self {
        self.initial = patch;
        self
    }

    /// Enforces these fields, a JSON merge patch.
    pub fn fields(mut self, fields: Value) -> Self {
        self.desired.fields = fields;
        self
    }

    /// Enforces these annotations. An annotation with `None` is removed.
    pub fn annotated(mut self, annotations: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        self.desired.annotations.extend(annotations);
        self
    }

    /// Whether it exists and its owner is its controller.
    pub fn is_own(&self) -> bool {
        self.own().is_some()
    }

    fn own(&self) -> Option<&Metadata> {
        let metadata = self.existing?.metadata();
        metadata.controller().is_some_and(|owner| *owner.uid == *self.desired.owner.uid).then_some(metadata)
    }

    /// The removal of the child, unless it does not exist or is being deleted already.
    pub fn removal(&self) -> Option<Removal> {
        let metadata = self.own().filter(|metadata| metadata.deletion_timestamp.is_none())?;
        Some(Removal::seen(self.desired.kind, metadata, self.desired.component.clone()))
    }

    /// The desired object. The manifest is built only if the object does not exist.
    pub fn made(self) -> Desired {
        let Self { mut desired, existing, is_enforced, initial, body } = self;
        match existing {
            Some(existing) if is_enforced => desired.fields = repair(&existing.json(), &body()),
            Some(_) => {}
            None => {
                let body = body();
                if is_enforced {
                    desired.members = body.as_object().into_iter().flat_map(Map::keys).cloned().collect();
                }
                let manifest = Manifest::new(desired.kind, &metadata(&desired), &body);
                desired.manifest = Some(manifest.merged(&initial));
            }
        }
        desired
    }

    /// Plans that the child exists and is up to date.
    pub fn ensure<E>(self, plan: &mut Plan<E>) {
        plan.ensure.push(self.made());
    }

    /// Plans that the child is up to date if it exists.
    pub fn keep<E>(self, plan: &mut Plan<E>) {
        if self.is_own() {
            self.ensure(plan);
        }
    }

    /// Plans that the child is deleted if it exists.
    pub fn remove<E>(&self, plan: &mut Plan<E>) {
        plan.remove.extend(self.removal());
    }

    /// Plans a role binding. The role of a binding is immutable, so an own binding with another role is deleted first.
    pub fn bind<E>(self, plan: &mut Plan<E>) {
        let (removal, body) = (self.removal(), (self.body)());
        let has_other_role =
            self.existing.is_some_and(|existing| existing.json()["roleRef"] != body["roleRef"]);
        match removal.filter(|_| has_other_role) {
            Some(removal) => {
                plan.remove.push(removal);
                plan.requeue_after(Duration::ZERO);
            }
            None => Child { body: Box::new(|| body), is_enforced: true, ..self }.ensure(plan),
        }
    }
}

/// The metadata of a new child.
fn metadata(desired: &Desired) -> ObjectMeta {
    let annotations =
        desired.annotations.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
    let annotations: BTreeMap<String, String> = annotations.collect();
    ObjectMeta {
        name: Some(desired.key.name.to_string()),
        namespace: Some(desired.key.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
        labels: Some(desired.labels.clone()).filter(|labels| !labels.is_empty()),
        annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
        owner_references: (desired.ownership == Ownership::Controlled).then(|| vec![desired.owner.clone()]),
        ..ObjectMeta::default()
    }
}

/// The merge patch that sets each member of `body` in `current` to its exact value; `Null` if nothing differs.
fn repair(current: &Value, body: &Value) -> Value {
    let members = body.as_object().into_iter().flatten();
    let repairs = members.filter_map(|(name, wanted)| {
        let found = current.get(name).unwrap_or(&Value::Null);
        Some((name.clone(), merge::difference(found, wanted)?))
    });
    let repairs: Map<String, Value> = repairs.collect();
    if repairs.is_empty() { Value::Null } else { Value::Object(repairs) }
}

/// The members of a binding of the `ClusterRole` `role` to a `User` or a `Group`.
pub fn binding(role: &str, subject_kind: &str, subject: &str) -> Value {
    json!({
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": subject_kind, "name": subject}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_with_children_owns_the_name() {
        let born = |name: &str, created: &str| {
            let mut object = Object::<crate::kinds::NamespaceKind>::new(None, name, crate::kinds::Unread {});
            object.metadata.uid = format!("uid-{name}").into();
            object.metadata.creation_timestamp = serde_json::from_value(created.into()).expect("a time");
            Arc::new(object)
        };
        let (first, second) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        let none = BTreeSet::new();
        let siblings = [born("a-b", second), born("a.b", first)];
        assert_eq!(name_owner(&siblings[0], &siblings, &none).as_deref(), Some("a.b"));
        assert_eq!(name_owner(&siblings[1], &siblings, &none), None);
        assert_eq!(name_owner(&siblings[0], &siblings[..1], &none), None);
        // Objects with the same creation time are ordered by name, unless one of them has children.
        let siblings = [born("a-b", first), born("a.b", first)];
        assert_eq!(name_owner(&siblings[0], &siblings, &none), None);
        let holders = BTreeSet::from(["uid-a.b"]);
        assert_eq!(name_owner(&siblings[0], &siblings, &holders).as_deref(), Some("a.b"));
        assert_eq!(name_owner(&siblings[1], &siblings, &holders), None);
        // A child of a third owner does not matter.
        let holders = BTreeSet::from(["uid-other"]);
        assert_eq!(name_owner(&siblings[1], &siblings, &holders).as_deref(), Some("a-b"));
    }

    #[test]
    fn the_identity_of_an_object_comes_from_its_labels_and_owner() {
        let owner = |kind: &str| OwnerReference {
            kind: kind.to_owned(),
            name: "a".into(),
            ..OwnerReference::default()
        };
        let labels = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let of = |kind: &str, pairs: &[(&str, &str)]| {
            let identity = identity(&owner(kind), &labels(pairs));
            [labels::INSTANCE, labels::TENANT, labels::NAME]
                .map(|key| identity[key].clone().unwrap_or_default())
        };
        assert_eq!(of("Tenant", &[]), ["", "a", "a"]);
        assert_eq!(of("Workspace", &[]), ["", "", ""]);
        assert_eq!(of("Instance", &[(labels::INSTANCE, "a"), (labels::TENANT, "t")]), ["a", "t", ""]);
    }

    #[test]
    fn a_repair_restores_enforced_members_and_removes_additions() {
        let wanted = json!({"spec": {"podSelector": {}, "ingress": [1]}});
        let current = json!({"spec": {"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [1]}});
        let patch = repair(&current, &wanted);
        assert_eq!(patch, json!({"spec": {"podSelector": {"matchLabels": null}}}));
        let mut repaired = current;
        merge::apply(&mut repaired, &patch);
        assert_eq!(repaired, wanted);
        assert_eq!(repair(&repaired, &wanted), Value::Null);
    }
}
