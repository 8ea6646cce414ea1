//! The plan of a Workspace: a pure function of what is observed.

use serde_json::{Value, json};

use super::observe::Observed;
use super::reconcile::{Effect, Settings};
use crate::api::labels;
use crate::api::names::{check_dns_label, check_label_value};
use crate::api::reason;
use crate::api::tenant::{Role, Tenant};
use crate::api::workspace::AutoEnroll;
use crate::controllers::shared::children::{self, ChildBuilder, ChildMeta, binding, owner};
use crate::controllers::shared::responsibility::release;
use crate::kinds::{ClusterRoleBindingKind, NamespaceKind, RoleBindingKind};
use crate::runtime::component::Component;
use crate::runtime::plan::{ObjectPatch, Plan, Precondition, Removal, to_value};
use crate::runtime::problem::Problem;

/// The component of everything in the namespace.
pub const NAMESPACE: Component = Component::Part("namespace");
/// The component of the `ClusterRoleBinding`s.
pub const CLUSTER: Component = Component::Part("cluster");
/// The `ClusterRoles` that the managers of a Workspace have in the whole cluster.
pub const CLUSTER_ROLES: [&str; 2] = ["crownlabs-manage-instances", "crownlabs-manage-tenants"];
/// The `ClusterRoles` that users and managers have in the namespace of a Workspace.
pub const NAMESPACE_ROLES: [(&str, &str); 3] = [
    ("crownlabs-view-templates", "user"),
    ("crownlabs-manage-templates", "manager"),
    ("crownlabs-manage-sharedvolumes", "manager"),
];

/// The RBAC group of the Tenants with a role in a Workspace.
fn group(workspace: &str, role: &str) -> String {
    format!("kubernetes:workspace-{workspace}:{role}")
}

/// The plan of a Workspace.
pub fn plan(observed: &Observed, settings: &Settings) -> Plan<Effect> {
    if observed.is_deselected {
        return release(&observed.workspace, labels::TENANT_FINALIZER);
    }
    if observed.workspace.is_terminating() {
        return deletion(observed, settings);
    }
    let mut plan = Plan::default();
    if let Some(fault) = &observed.workspace.malformed {
        let message = format!("the Workspace cannot be read: {fault}; what there is of it stays as it is");
        plan.problems.push(Problem::fault(Component::Whole, reason::INVALID_SPEC, message));
        return plan;
    }
    let name = observed.namespace_name();
    if let Err(error) = check_dns_label(&name) {
        let message = format!(
            "nothing can be made for this Workspace, as no namespace can have its name: {error}; delete it and create it \
             under a name without dots, of at most 53 characters"
        );
        plan.problems.push(Problem::fault(NAMESPACE, reason::INVALID_NAME, message));
        return plan;
    }
    if let AutoEnroll::Other(value) = &observed.workspace.spec.auto_enroll {
        let message = format!(
            "spec.autoEnroll is {value:?}; immediate, withApproval or nothing is expected: candidates stay candidates"
        );
        plan.problems.push(Problem::fault(Component::Whole, reason::INVALID_AUTO_ENROLL, message));
    }
    let pretty_name = observed.workspace.spec.pretty_name.clone();
    plan.effects.extend(settings.has_keycloak.then_some(Effect::EnsureRoles { pretty_name }));
    plan.patches.extend(own_patch(observed, settings));
    plan.patches.extend(enrolments(observed));
    let builder = builder(observed);
    for role in CLUSTER_ROLES {
        cluster_binding(observed, &builder, role, &mut plan);
    }
    if observed.namespace.as_ref().is_some_and(|namespace| namespace.is_terminating()) {
        let message = format!("namespace {name} is being deleted; it is made anew when it is gone");
        plan.problems.push(Problem::waiting(NAMESPACE, reason::NAMESPACE_TERMINATING, message));
        return plan;
    }
    let mut namespace = builder.with(&[(labels::TYPE, labels::TYPE_WORKSPACE)]).enforced::<NamespaceKind>(
        observed.namespace.as_deref(),
        ChildMeta { namespace: "", name: &name, component: &NAMESPACE, wave: 0 },
        &json!({}),
    );
    // A namespace that another daemon manages is not adopted.
    namespace.identity.extend(children::exactly(&observed.selector));
    plan.ensure.push(namespace);
    for (role, whose) in NAMESPACE_ROLES {
        let existing = observed.bindings.iter().find(|binding| binding.name() == role);
        let body = binding(role, "Group", &group(observed.workspace.name(), whose));
        let meta = ChildMeta { namespace: &name, name: role, component: &NAMESPACE, wave: 1 };
        builder.bind::<RoleBindingKind, _>(existing.map(AsRef::as_ref), meta, &body, &mut plan);
    }
    plan
}

fn builder(observed: &Observed) -> ChildBuilder {
    let builder = ChildBuilder { owner: owner(&observed.workspace), labels: observed.selector.clone() };
    builder.with(&[(labels::MANAGED_BY, labels::MANAGED_BY_WORKSPACE)])
}

fn cluster_binding(observed: &Observed, builder: &ChildBuilder, role: &str, plan: &mut Plan<Effect>) {
    let workspace = observed.workspace.name();
    let name = format!("{role}-{workspace}");
    let existing = observed.cluster_bindings.iter().find(|binding| binding.name() == name);
    let meta = ChildMeta { namespace: "", name: &name, component: &CLUSTER, wave: 0 };
    let body = binding(role, "Group", &group(workspace, "manager"));
    builder.bind::<ClusterRoleBindingKind, _>(existing.map(AsRef::as_ref), meta, &body, plan);
}

/// The patch of the finalizer and the label of the Workspace itself.
fn own_patch(observed: &Observed, settings: &Settings) -> Option<ObjectPatch> {
    let auto_enroll = match &observed.workspace.spec.auto_enroll {
        AutoEnroll::Disabled => "disabled".to_owned(),
        other => other.to_string(),
    };
    // One that is not known may be no value of a label either: the API server would refuse the finalizer with it.
    let is_label = check_label_value(&auto_enroll).is_ok();
    let wanted = if is_label { json!({labels::AUTO_ENROLL: auto_enroll}) } else { json!({}) };
    settings.responsibility.hold(&observed.workspace, labels::TENANT_FINALIZER, &wanted)
}

/// The patches of candidates: they become users where no approval is needed, and are removed where enrolment
/// is disabled.
fn enrolments(observed: &Observed) -> Vec<ObjectPatch> {
    let name = observed.workspace.name();
    let role = match observed.workspace.spec.auto_enroll {
        // A value that is not known strikes nobody off.
        AutoEnroll::WithApproval | AutoEnroll::Other(_) => return Vec::new(),
        AutoEnroll::Immediate => Some(Role::User),
        AutoEnroll::Disabled => None,
    };
    let candidates = observed
        .tenants
        .iter()
        .filter(|tenant| tenant.spec.role_in(name) == Some(&Role::Candidate) && tenant.malformed.is_none());
    candidates.filter_map(|tenant| enrolment(tenant, name, role.as_ref())).collect()
}

/// The patch of a Tenant that appends the Workspace with this role to its list, or removes the Workspace
/// from it.
fn enrolment(tenant: &Tenant, workspace: &str, role: Option<&Role>) -> Option<ObjectPatch> {
    let others = tenant.spec.workspaces.iter().filter(|entry| entry.name != workspace);
    let mut workspaces: Vec<Value> = others.map(to_value).collect();
    workspaces.extend(role.map(|role| json!({"name": workspace, "role": role})));
    ObjectPatch::of(tenant, &json!({"spec": {"workspaces": workspaces}}))
}

/// The plan for a Workspace that is being deleted: it is removed from all Tenants, and its role bindings and
/// its namespace are deleted.
fn deletion(observed: &Observed, settings: &Settings) -> Plan<Effect> {
    let mut plan = Plan { remove_finalizer: Some(labels::TENANT_FINALIZER), ..Plan::default() };
    plan.effects.extend(settings.has_keycloak.then_some(Effect::RemoveRoles));
    let name = observed.workspace.name();
    plan.patches.extend(
        observed
            .tenants
            .iter()
            .filter(|tenant| tenant.malformed.is_none())
            .filter_map(|tenant| enrolment(tenant, name, None)),
    );
    let ours =
        observed.cluster_bindings.iter().filter(|binding| binding.is_controlled_by(&observed.workspace));
    plan.remove.extend(ours.map(|binding| Removal::of(binding, CLUSTER)));
    let ours = observed.bindings.iter().filter(|binding| binding.is_controlled_by(&observed.workspace));
    plan.remove.extend(ours.map(|binding| Removal::of(binding, NAMESPACE)));
    let namespace =
        observed.namespace.iter().filter(|namespace| namespace.is_controlled_by(&observed.workspace));
    plan.remove.extend(namespace.filter(|namespace| !namespace.is_terminating()).map(|namespace| {
        Removal::of(namespace, NAMESPACE).with_preconditions([Precondition::object(&*observed.workspace)])
    }));
    plan
}

#[cfg(test)]
mod tests;
