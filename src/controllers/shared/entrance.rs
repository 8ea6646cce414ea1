//! The users that may enter the machines of an Instance. The OAuth2 proxy of an Instance and the web terminal both use
//! this module, so they admit the same users. The SSH keys of the same users are installed in the machines.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::instance::Instance;
use crate::api::template::Template;
use crate::api::tenant::{Role, Tenant, TenantKind};
use crate::api::text::Text;
use crate::runtime::store::{Store, index};

index! {
    /// Tenants by the Workspaces that they manage. Their labels have the same content, but users may patch the labels
    /// of their own Tenant, while the webhook guards `spec.workspaces`.
    pub struct ByManagedWorkspace of TenantKind by Text;
    |tenant| {
        let entries = tenant.spec.workspaces.iter();
        let managed: BTreeSet<&str> =
            entries.filter(|entry| entry.role == Role::Manager).map(|entry| &*entry.name).collect();
        managed.into_iter().map(Text::interned).collect()
    }
}

index! {
    /// Tenants by their personal namespace in the status, which users may not write.
    pub struct ByPersonalNamespace of TenantKind by Text;
    |tenant| {
        let namespace = &tenant.status.personal_namespace;
        if namespace.created { vec![Text::interned(&namespace.name)] } else { Vec::new() }
    }
}

/// The managers of a Template's Workspace, sorted by name.
pub fn managers(tenants: &Store<TenantKind>, template: &Template) -> Vec<Arc<Tenant>> {
    tenants.by::<ByManagedWorkspace>(template.spec.workspace_ref.name.as_str())
}

/// The names of the Tenants that own an Instance. In the personal namespace of a Tenant, that Tenant is the only owner.
/// In any other namespace it is the Tenant that the Instance names, although users write that name.
pub fn owners(tenants: &Store<TenantKind>, instance: &Instance) -> Vec<String> {
    let owners = tenants.by::<ByPersonalNamespace>(instance.namespace());
    if owners.is_empty() {
        vec![instance.spec.tenant_ref.name.to_string()]
    } else {
        owners.iter().map(|owner| owner.name().to_owned()).collect()
    }
}

/// The users that may enter the machines of an Instance with these owners and these managers of its Workspace.
pub fn users<'a>(
    owners: impl IntoIterator<Item = &'a str>,
    managers: &'a [Arc<Tenant>],
) -> BTreeSet<&'a str> {
    owners.into_iter().chain(managers.iter().map(|manager| manager.name())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runtime::store::AnyStore;

    fn tenant(name: &str, namespace: Option<&str>, workspaces: &[(&str, &str)]) -> Tenant {
        let workspaces: Vec<_> =
            workspaces.iter().map(|(name, role)| json!({"name": name, "role": role})).collect();
        let namespace = json!({"created": namespace.is_some(), "name": namespace.unwrap_or_default()});
        // Labels of a user who claims to manage the Workspace.
        let labels = json!({"crownlabs.polito.it/workspace-netlab": "manager"});
        let object = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"workspaces": workspaces},
            "status": {"personalNamespace": namespace},
        });
        serde_json::from_value(object).expect("a Tenant")
    }

    fn store(tenants: Vec<Tenant>) -> Store<TenantKind> {
        let store = Store::<TenantKind>::new(true);
        store.index::<ByManagedWorkspace>();
        store.index::<ByPersonalNamespace>();
        store.begin_list();
        for tenant in tenants {
            store.list_object(tenant);
        }
        store.end_list();
        store
    }

    fn instance(namespace: &str, names: &str) -> Instance {
        let spec = json!({"tenant.crownlabs.polito.it/TenantRef": {"name": names}});
        let object = json!({"metadata": {"name": "vm", "namespace": namespace}, "spec": spec});
        serde_json::from_value(object).expect("an Instance")
    }

    #[test]
    fn the_namespace_decides_the_owner_and_the_spec_of_a_tenant_its_workspaces() {
        let tenants = store(vec![
            tenant("ada", Some("tenant-ada"), &[("netlab", "user")]),
            tenant("bob", None, &[("netlab", "manager"), ("other", "user")]),
            tenant("eve", Some("tenant-eve"), &[("other", "manager"), ("netlab", "candidate")]),
        ]);
        let template = |workspace: &str| {
            let spec = json!({"workspace.crownlabs.polito.it/WorkspaceRef": {"name": workspace}});
            serde_json::from_value(json!({"metadata": {"name": "t"}, "spec": spec})).expect("a Template")
        };
        let may = |instance: Instance, workspace: &str| {
            let (owners, managers) = (owners(&tenants, &instance), managers(&tenants, &template(workspace)));
            users(owners.iter().map(String::as_str), &managers)
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(may(instance("tenant-ada", "ada"), "netlab"), ["ada", "bob"]);
        assert_eq!(may(instance("tenant-ada", "ada"), "other"), ["ada", "eve"]);
        assert_eq!(
            may(instance("tenant-ada", "eve"), "netlab"),
            ["ada", "bob"],
            "the Instance names its own Tenant"
        );
        assert_eq!(may(instance("exams", "ada"), ""), ["ada"], "a namespace without an owner");
    }
}
