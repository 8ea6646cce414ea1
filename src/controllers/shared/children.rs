//! Children: the objects that a loop creates for one object, which is their owner. The common part of their
//! [`Desired`] values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use ring::digest;
use serde_json::{Map, Value, json};

use crate::api::instance::InstanceKind;
use crate::api::tenant::TenantKind;
use crate::api::{Kind, Object, labels};
use crate::kinds::Binding;
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::merge;
use crate::runtime::plan::{Desired, KindInfo, Manifest, Ownership, Plan, Removal, to_value};

/// The API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The owner reference to `owner`, as its controller: the garbage collector deletes the child with it.
pub fn owner<T: Kind>(owner: &Object<T>) -> OwnerReference {
    OwnerReference {
        api_version: KindInfo::of::<T>().api_version(),
        kind: T::KIND.to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whose an object is that has these labels and this owner, as its labels say it: see [`Desired::identity`].
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

/// The owner of a name that the children of several objects would have, if it is not `object`: the one that
/// has such a child already, otherwise the oldest. `holders` are the uids of the controllers of the existing
/// children.
pub fn name_owner<T: Kind>(
    object: &Object<T>,
    siblings: &[Arc<Object<T>>],
    holders: &BTreeSet<&str>,
) -> Option<String> {
    if siblings.len() < 2 || holders.contains(object.uid()) {
        return None;
    }
    // Creation times are whole seconds, so the one with children counts as the first.
    let holder = siblings.iter().find(|other| holders.contains(other.uid()));
    let age = |other: &Object<T>| (other.metadata.creation_timestamp.clone(), other.name().to_owned());
    let oldest = || siblings.iter().filter(|other| !other.is_terminating()).min_by_key(|other| age(other));
    let name_owner = holder.or_else(oldest)?;
    (name_owner.uid() != object.uid()).then(|| name_owner.name().to_owned())
}

/// The name `base` and `suffix`, shortened to what a label value allows: the name of a Job becomes a label
/// of its pods. A shortened name contains a digest of `base`.
pub fn label_sized(base: &str, suffix: &str) -> String {
    const LIMIT: usize = 63;
    let name = format!("{base}{suffix}");
    if name.len() <= LIMIT {
        return name;
    }
    let digest = digest::digest(&digest::SHA256, base.as_bytes());
    let tag = digest
        .as_ref()
        .first_chunk()
        .map_or_else(String::new, |bytes| format!("{:08x}", u32::from_be_bytes(*bytes)));
    let length = LIMIT - suffix.len() - tag.len() - 1;
    // Names of objects are ASCII, so every index is a character boundary.
    let kept = base.get(..length).unwrap_or_default().trim_end_matches(['-', '.']);
    format!("{kept}-{tag}{suffix}")
}

/// The name of a child, and its component and wave in the plan.
#[derive(Debug, Clone, Copy)]
pub struct ChildMeta<'a> {
    /// Its namespace, empty for none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// See [`Desired::component`].
    pub component: &'a Component,
    /// See [`Desired::wave`].
    pub wave: u8,
}

/// Builds the children of one owner.
#[derive(Debug, Clone)]
pub struct ChildBuilder {
    /// The owner.
    pub owner: OwnerReference,
    /// The labels of each child.
    pub labels: BTreeMap<String, String>,
}

impl ChildBuilder {
    /// The same builder with further labels.
    pub fn with(&self, labels: &[(&str, &str)]) -> Self {
        let further = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let mut builder = self.clone();
        builder.labels.extend(further);
        builder
    }

    /// A child whose members in `body` (`spec`, `subjects`, …) are enforced as far as [`Kind`] reads them:
    /// what others add to them is removed.
    pub fn enforced<T: Kind>(
        &self,
        existing: Option<&Object<T>>,
        meta: ChildMeta<'_>,
        body: &Value,
    ) -> Desired {
        let mut desired = self.created(existing, meta, body);
        match existing {
            Some(existing) => desired.fields = repair(&to_value(existing), body),
            None => desired.members = body.as_object().into_iter().flat_map(Map::keys).cloned().collect(),
        }
        desired
    }

    /// Plans a role binding. The role of a binding cannot be changed: one of ours with another role is
    /// deleted first.
    pub fn bind<T: Kind<Spec = Binding>, E>(
        &self,
        existing: Option<&Object<T>>,
        meta: ChildMeta<'_>,
        body: &Value,
        plan: &mut Plan<E>,
    ) {
        match existing {
            Some(existing)
                if existing.controller_uid() == Some(&self.owner.uid)
                    && existing.spec.role_ref != body["roleRef"]
                    && !existing.is_terminating() =>
            {
                plan.remove.push(Removal::of(existing, meta.component.clone()));
                plan.requeue_after(Duration::ZERO);
            }
            existing => plan.ensure.push(self.enforced(existing, meta, body)),
        }
    }

    /// A child whose `body` is written at its creation only.
    pub fn created<T: Kind>(
        &self,
        existing: Option<&Object<T>>,
        meta: ChildMeta<'_>,
        body: &Value,
    ) -> Desired {
        let kind = KindInfo::of::<T>();
        let metadata = || ObjectMeta {
            name: Some(meta.name.to_owned()),
            namespace: Some(meta.namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
            labels: Some(self.labels.clone()).filter(|labels| !labels.is_empty()),
            owner_references: Some(vec![self.owner.clone()]),
            ..ObjectMeta::default()
        };
        Desired {
            kind,
            key: ObjectKey::new(meta.namespace, meta.name),
            component: meta.component.clone(),
            wave: meta.wave,
            manifest: existing.is_none().then(|| Manifest::new(kind, &metadata(), body)),
            labels: self.labels.clone(),
            annotations: BTreeMap::new(),
            owner: self.owner.clone(),
            ownership: Ownership::Controlled,
            identity: identity(&self.owner, &self.labels),
            known_by: None,
            members: Vec::new(),
            fields: Value::Null,
        }
    }
}

/// The merge patch after which each member of `body` is in `current` exactly what it is in `body`; `Null` if
/// nothing differs.
fn repair(current: &Value, body: &Value) -> Value {
    let members = body.as_object().into_iter().flatten();
    let repairs: Map<String, Value> = members
        .filter_map(|(name, wanted)| {
            let found = current.get(name).unwrap_or(&Value::Null);
            Some((name.clone(), merge::difference(found, wanted)?))
        })
        .collect();
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
        // In the same second the names decide, unless one of them has something.
        let siblings = [born("a-b", first), born("a.b", first)];
        assert_eq!(name_owner(&siblings[0], &siblings, &none), None);
        let holders = BTreeSet::from(["uid-a.b"]);
        assert_eq!(name_owner(&siblings[0], &siblings, &holders).as_deref(), Some("a.b"));
        assert_eq!(name_owner(&siblings[1], &siblings, &holders), None);
        // A child of a third owner decides nothing.
        let holders = BTreeSet::from(["uid-other"]);
        assert_eq!(name_owner(&siblings[1], &siblings, &holders).as_deref(), Some("a-b"));
    }

    #[test]
    fn labels_say_whose_an_object_is() {
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
    fn a_repair_restores_what_is_enforced_and_removes_what_was_added() {
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
