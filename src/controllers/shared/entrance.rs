//! Who may enter the machines of an Instance. The OAuth2 proxy of an Instance and the web terminal ask here, so that both let
//! in the same people; the SSH keys of the same people are in its machines.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::instance::Instance;
use crate::api::template::Template;
use crate::api::tenant::{Role, Tenant, TenantKind};
use crate::api::text::Text;
use crate::runtime::store::{Store, index};

index! {
    /// Tenants by the Workspaces that they manage. Their labels say the same, but a user may patch the labels of the own
    /// Tenant; the webhook guards `spec.workspaces`.
    pub struct ByManagedWorkspace of TenantKind by Text;
    |tenant| {
        let entries = tenant.spec.workspaces.iter();
        let managed: BTreeSet<&str> =
            entries.filter(|entry| entry.role == Role::Manager).map(|entry| &*entry.name).collect();
        managed.into_iter().map(Text::interned).collect()
    }
}

index! {
    /// Tenants by their personal namespace, as the daemon has reported it: users may not write the status of a Tenant.
    pub struct ByPersonalNamespace of TenantKind by Text;
    |tenant| {
        let namespace = &tenant.status.personal_namespace;
        if namespace.created { vec![Text::interned(&namespace.name)] } else { Vec::new() }
    }
}

/// The managers of the Workspace of a Template, in the order of their names.
pub fn managers(tenants: &Store<TenantKind>, template: &Template) -> Vec<Arc<Tenant>> {
    tenants.by::<ByManagedWorkspace>(template.spec.workspace_ref.name.as_str())
}

/// The names of the Tenants that an Instance belongs to: those of its namespace, which is one. Only in a namespace that is no
/// Tenant's it is the one that the Instance names: users write that name.
pub fn owners(tenants: &Store<TenantKind>, instance: &Instance) -> Vec<String> {
    let owners = tenants.by::<ByPersonalNamespace>(instance.namespace());
    if owners.is_empty() {
        vec![instance.spec.tenant_ref.name.clone()]
    } else {
        owners.iter().map(|owner| owner.name().to_owned()).collect()
    }
}

/// Who may enter the machines of an Instance that belongs to these Tenants, of a Template whose Workspace has these managers.
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

    fn tenant(name: &str, namespace: Option<&str>, workspaces: &[(&str, &str)]) -> Tenant {
        let workspaces: Vec<_> =
            workspaces.iter().map(|(name, role)| json!({"name": name, "role": role})).collect();
        let namespace = json!({"created": namespace.is_some(), "name": namespace.unwrap_or_default()});
        // The labels are those of a user who would like to manage everything.
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
    fn the_namespace_says_whose_an_instance_is_and_the_spec_of_a_tenant_what_it_manages() {
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
        assert_eq!(may(instance("tenant-ada", "eve"), "netlab"), ["ada", "bob"], "users write that name");
        assert_eq!(may(instance("exams", "ada"), ""), ["ada"], "a namespace that is nobody's");
    }
}
