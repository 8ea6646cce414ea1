//! The Tenants of namespaces: an Instance in the namespace of a Tenant is for that Tenant.
//!
//! The Tenant of an Instance decides what its machine may do: mount volumes for writing, and let its SSH keys in. Users
//! write the name of the Tenant themselves, so it counts only where the namespace says the same.

use super::{Kind, Object, labels};

/// Whether a namespace is named as that of a Tenant, who writes the Templates in it.
pub fn is_tenant_namespace(namespace: &str) -> bool {
    namespace.starts_with("tenant-")
}

/// The name of the Tenant that a namespace belongs to; `None` for other namespaces. Only administrators and the daemon
/// may write the labels of namespaces.
pub fn tenant_of<T: Kind>(namespace: &Object<T>) -> Option<&str> {
    namespace.label(labels::NAME).filter(|name| !name.is_empty())
}

/// The fault of an Instance that names the Tenant `named` in a namespace of the Tenant `owner`; `None` if they are the same.
pub fn mismatch(named: &str, namespace: &str, owner: &str) -> Option<String> {
    (named != owner).then(|| {
        format!(
            "the namespace {namespace} is that of Tenant {owner}, so spec.\"tenant.crownlabs.polito.it/TenantRef\".name \
             must be {owner}, not {named:?}"
        )
    })
}
