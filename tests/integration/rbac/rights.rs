//! The rights that the manifests grant, and the rights whose use does not show in the audit log.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lab::Lab;

/// Rights that the API server checks as part of another request, so that the audit log does not show them.
pub const CHECKED: [&str; 8] = [
    // If a role has rules about Tenants.
    "get crownlabs.polito.it/tenants",
    "update crownlabs.polito.it/tenants",
    // If a child without an owner gets one: an account that may not delete it may not let the garbage
    // collector delete it.
    "delete /secrets",
    "delete /resourcequotas",
    "delete /limitranges",
    "delete apps/deployments",
    "delete kubevirt.io/virtualmachines",
    "delete kubevirt.io/virtualmachineinstances",
];

/// Rights that the API server checks as part of another request: their use shows in the objects that the daemon
/// creates. In the form of [`granted`].
#[derive(Default)]
pub struct Shown(pub BTreeSet<String>);

impl Shown {
    /// Reads the current objects: the roles that bindings name, and the owners whose deletion is blocked by objects.
    pub fn look(&mut self, lab: &Lab) {
        for binding in lab.list("rolebindings,clusterrolebindings", "") {
            let role = binding["roleRef"]["name"].as_str().unwrap_or_default();
            if binding["metadata"]["ownerReferences"].is_array() {
                self.0.insert(format!("bind rbac.authorization.k8s.io/clusterroles {role}"));
            }
        }
        for object in lab.list("namespaces,services,persistentvolumeclaims,jobs,deployments", "") {
            let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            for owner in owners.iter().filter(|owner| owner["blockOwnerDeletion"] == true) {
                let kind = owner["kind"].as_str().unwrap_or_default().to_lowercase();
                let version = owner["apiVersion"].as_str().unwrap_or_default();
                let group = version.split('/').next().unwrap_or_default();
                self.0.insert(format!("update {group}/{kind}s/finalizers"));
            }
        }
    }
}

/// All pairs of two lists.
fn pairs<'a, A, B>(one: &'a [A], other: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    one.iter().flat_map(move |a| other.iter().map(move |b| (a, b)))
}

/// Every right that the manifests grant, as `verb group/resource`, followed by the name of the object if the right is
/// limited to that object.
pub fn granted(lab: &Lab) -> BTreeSet<String> {
    let roles = [
        lab.get("clusterroles", "default", "crownlabs-controller-manager"),
        lab.get("roles", "crownlabs-system", "crownlabs-leader-election"),
        lab.get("roles", "crownlabs-system", "crownlabs-pod-networks"),
    ];
    roles.into_iter().flatten().flat_map(|role| rules(&role)).collect()
}

/// Every right of a role, in the same form.
pub fn rules(role: &Value) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let list = |key: &str| -> Vec<&str> {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let names: Vec<String> = list("resourceNames").iter().map(|name| format!(" {name}")).collect();
        let names = if names.is_empty() { vec![String::new()] } else { names };
        for (group, resource) in pairs(&list("apiGroups"), &list("resources")) {
            for (verb, name) in pairs(&list("verbs"), &names) {
                rights.insert(format!("{verb} {group}/{resource}{name}"));
            }
        }
    }
    rights
}
