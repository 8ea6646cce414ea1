//! Instances that name a Tenant other than the owner of their namespace: [`crate::api::tenancy`] explains why this is
//! refused.

use crate::api::instance::Instance;
use crate::api::reason::TENANT_MISMATCH;
use crate::api::tenancy::{mismatch, tenant_of};
use crate::kinds::Namespace;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The problem of an Instance that names a Tenant other than the owner of its namespace.
pub fn foreign_tenant(instance: &Instance, namespace: &Namespace) -> Option<Problem> {
    let named = &instance.spec.tenant_ref.name;
    let fault = mismatch(named, instance.namespace(), tenant_of(namespace)?)?;
    let message =
        format!("{fault}: no objects are created for this Instance, and existing ones stay unchanged");
    Some(Problem::fault(Component::Whole, TENANT_MISMATCH, message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_namespace_decides_the_owner_of_an_instance() {
        let problem = |labels: serde_json::Value, named: &str| {
            let instance: Instance = serde_json::from_value(json!({
                "metadata": {"name": "box", "namespace": "tenant-ada-rossi"},
                "spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": named}},
            }))
            .expect("an Instance");
            let namespace = json!({"metadata": {"name": "tenant-ada-rossi", "labels": labels}});
            let namespace: Namespace = serde_json::from_value(namespace).expect("a namespace");
            foreign_tenant(&instance, &namespace).map(|problem| problem.reason)
        };
        let ours = json!({"crownlabs.polito.it/name": "ada.rossi"});
        for named in ["bob", "", "ada-rossi", "Ada.rossi"] {
            assert_eq!(problem(ours.clone(), named), Some(TENANT_MISMATCH), "{named:?}");
        }
        assert_eq!(problem(ours, "ada.rossi"), None);
        // Namespaces without an owner, such as the namespace of an exam that an administrator created.
        for labels in [json!({}), json!({"crownlabs.polito.it/name": ""})] {
            assert_eq!(problem(labels, "bob"), None);
        }
    }
}
