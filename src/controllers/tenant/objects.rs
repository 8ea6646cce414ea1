//! The names and contents of the objects of a Tenant.

use serde_json::{Value, json};

use super::quota::{Quota, spelled};
use crate::api::{GROUP, labels};
use crate::config::CountQuotas;
use crate::kinds::ResourceQuota;

/// The `ResourceQuota` of the personal namespace.
pub const RESOURCE_QUOTA: &str = "crownlabs-resource-quota";
/// The role binding and the `ClusterRole` to manage Instances in the personal namespace.
pub const MANAGE_INSTANCES: &str = "crownlabs-manage-instances";
/// The role binding and the `ClusterRole` to manage Templates in the personal namespace.
pub const MANAGE_TEMPLATES: &str = "crownlabs-manage-templates";
/// The network policy that denies ingress from other namespaces.
pub const DENY_INGRESS: &str = "crownlabs-deny-ingress-traffic";
/// The network policy that allows ingress from namespaces that administrators trust.
pub const ALLOW_TRUSTED_INGRESS: &str = "crownlabs-allow-trusted-ingress-traffic";
/// The role binding in the sandbox.
pub const SANDBOX_EDITOR: &str = "sandbox-editor";
/// The `ResourceQuota` of the sandbox.
pub const SANDBOX_QUOTA: &str = "sandbox-resource-quota";
/// The `LimitRange` of the sandbox.
pub const SANDBOX_LIMITS: &str = "sandbox-limit-range";

/// The rules of the `ClusterRole` by which a Tenant can read and edit itself. The webhook decides which
/// fields it may change.
pub fn own_rules(tenant: &str) -> Value {
    json!({"rules": [{
        "apiGroups": [GROUP],
        "resources": ["tenants"],
        "resourceNames": [tenant],
        "verbs": ["get", "list", "watch", "patch", "update"],
    }]})
}

/// The limits of the personal namespace, spelled as in the existing object where the amounts are equal.
pub fn resource_quota(quota: &Quota, counts: &CountQuotas, existing: Option<&ResourceQuota>) -> Value {
    let mut hard = counts.hard(&counts.personal);
    hard.extend(quota.hard());
    json!({"spec": {"hard": spelled(&hard, existing.map(|existing| &existing.spec.hard))}})
}

/// The pods accept ingress from their own namespace.
pub fn deny_ingress() -> Value {
    json!({"spec": {
        "podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}], "policyTypes": ["Ingress"],
    }})
}

/// The pods accept ingress from namespaces with a label that administrators set.
pub fn allow_trusted_ingress() -> Value {
    json!({"spec": {
        "podSelector": {},
        "ingress": [{"from": [
            {"namespaceSelector": {"matchLabels": {labels::ALLOW_INSTANCE_ACCESS: "true"}}},
        ]}],
        "policyTypes": ["Ingress"],
    }})
}

/// The limits of the sandbox.
pub fn sandbox_quota(counts: &CountQuotas) -> Value {
    let mut quota = json!({"spec": {"hard": {
        "limits.cpu": "4", "limits.memory": "8G", "requests.cpu": "2", "requests.memory": "8G",
    }}});
    for (name, limit) in counts.hard(&counts.sandbox) {
        quota["spec"]["hard"][name] = limit.to_string().into();
    }
    quota
}

/// The default requests and limits of containers in the sandbox.
pub fn sandbox_limits() -> Value {
    json!({"spec": {"limits": [{
        "type": "Container",
        "defaultRequest": {"cpu": "10m", "memory": "50M"},
        "default": {"cpu": "100m", "memory": "250M"},
    }]}})
}
