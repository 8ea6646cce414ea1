//! The bodies of what is made for a Tenant (05 §5, §8).

use serde_json::{Value, json};

use super::quota::{Share, spelled};
use crate::api::{GROUP, labels};
use crate::kinds::ResourceQuota;

/// The share of a personal namespace.
pub const RESOURCE_QUOTA: &str = "crownlabs-resource-quota";
/// Binding and `ClusterRole`: Instances of one's own.
pub const MANAGE_INSTANCES: &str = "crownlabs-manage-instances";
/// Binding and `ClusterRole`: Templates of one's own.
pub const MANAGE_TEMPLATES: &str = "crownlabs-manage-templates";
/// Nobody from other namespaces may reach the pods …
pub const DENY_INGRESS: &str = "crownlabs-deny-ingress-traffic";
/// … but those that the administrators trust.
pub const ALLOW_TRUSTED_INGRESS: &str = "crownlabs-allow-trusted-ingress-traffic";
/// The rights in a sandbox.
pub const SANDBOX_EDITOR: &str = "sandbox-editor";
/// The share of a sandbox.
pub const SANDBOX_QUOTA: &str = "sandbox-resource-quota";
/// The defaults of a sandbox.
pub const SANDBOX_LIMITS: &str = "sandbox-limit-range";

/// The right of a Tenant to read and edit itself; what may be edited is the webhook's to say.
pub fn own_rules(tenant: &str) -> Value {
    json!({"rules": [{
        "apiGroups": [GROUP],
        "resources": ["tenants"],
        "resourceNames": [tenant],
        "verbs": ["get", "list", "watch", "patch", "update"],
    }]})
}

/// The limits of a personal namespace, in the words of the existing object where they are the same.
pub fn quota(share: &Share, existing: Option<&ResourceQuota>) -> Value {
    json!({"spec": {"hard": spelled(&share.hard(), existing.map(|quota| &quota.spec.hard))}})
}

/// Pods are reached from their own namespace …
pub fn deny_ingress() -> Value {
    json!({"spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}})
}

/// … and from namespaces with a label that administrators set.
pub fn allow_trusted_ingress() -> Value {
    json!({"spec": {"podSelector": {}, "ingress": [{"from": [
        {"namespaceSelector": {"matchLabels": {labels::ALLOW_INSTANCE_ACCESS: "true"}}},
    ]}]}})
}

/// The limits of a sandbox.
pub fn sandbox_quota() -> Value {
    json!({"spec": {"hard": {
        "limits.cpu": "4", "limits.memory": "8G", "requests.cpu": "2", "requests.memory": "8G",
    }}})
}

/// What a container in a sandbox gets that asks for nothing.
pub fn sandbox_limits() -> Value {
    json!({"spec": {"limits": [{
        "type": "Container",
        "defaultRequest": {"cpu": "10m", "memory": "50M"},
        "default": {"cpu": "100m", "memory": "250M"},
    }]}})
}
