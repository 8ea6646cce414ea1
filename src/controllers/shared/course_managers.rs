//! The bindings that give managers their rights on Instances (`controllers.tenant.managers`): one in the whole cluster for
//! each Workspace, or one in each personal namespace for the Workspaces of its Tenant.
//!
//! When the key changes, a former binding is deleted only after the new ones exist, so no manager loses a right in between.
//! The workspace loop writes the former kind and the tenant loop the latter, and each of them reads the bindings of the
//! other.

use std::collections::BTreeSet;

use crate::api::names::managed_workspace;
use crate::kinds::Binding;

/// The `ClusterRole` of the bindings in the whole cluster.
pub const ROLE: &str = "crownlabs-manage-instances";
/// The name of the binding in a personal namespace.
pub const PERSONAL_BINDING: &str = "crownlabs-manage-instances-managers";

/// The name of the binding of a Workspace in the whole cluster.
pub fn cluster_binding(workspace: &str) -> String {
    format!("{ROLE}-{workspace}")
}

/// The Workspaces whose managers have the role of a binding.
pub fn workspaces(binding: &Binding) -> BTreeSet<&str> {
    let subjects = binding.subjects.as_array().into_iter().flatten();
    let groups = subjects.filter(|subject| subject["kind"] == "Group");
    groups.filter_map(|group| managed_workspace(group["name"].as_str()?)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_binding_names_the_workspaces_of_its_manager_groups() {
        let binding = |subjects| Binding { role_ref: json!({}), subjects };
        let of = |kind: &str, name: &str| json!({"kind": kind, "name": name});
        let mixed = binding(json!([
            of("Group", "kubernetes:workspace-tea:manager"),
            of("Group", "kubernetes:workspace-net:user"),
            of("User", "kubernetes:workspace-data:manager"),
            of("Group", "kubernetes:workspace-cpp:manager"),
        ]));
        assert_eq!(workspaces(&mixed), BTreeSet::from(["cpp", "tea"]));
        assert_eq!(workspaces(&binding(json!(null))), BTreeSet::new());
    }
}
