//! The Tenants of namespaces: an Instance in the namespace of a Tenant belongs to that Tenant.
//!
//! The Tenant of an Instance determines the rights of its machine: which volumes it mounts for writing, and whose SSH
//! keys it accepts. Users write the name of the Tenant themselves, so it is used only if it matches the namespace.

use super::{Kind, Object, labels};

/// Whether a namespace has the name of a Tenant's namespace. Tenants write the Templates in their namespaces.
pub fn is_tenant_namespace(namespace: &str) -> bool {
    namespace.starts_with("tenant-")
}

/// The name of the Tenant that owns a namespace; `None` for other namespaces. Only administrators and the daemon may
/// write the labels of namespaces.
pub fn tenant_of<T: Kind>(namespace: &Object<T>) -> Option<&str> {
    namespace.label(labels::NAME).filter(|name| !name.is_empty())
}

/// The fault that an Instance names the Tenant `named` in a namespace of the Tenant `owner`; `None` if they are the
/// same.
pub fn mismatch(named: &str, namespace: &str, owner: &str) -> Option<String> {
    (named != owner).then(|| {
        format!(
            "the namespace {namespace} belongs to Tenant {owner}, so spec.\"tenant.crownlabs.polito.it/TenantRef\".name \
             must be {owner}, not {named:?}"
        )
    })
}
