//! The plan of a Workspace: a pure function of the observed state.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::children::{self, NAMESPACE};
use super::observe::Observed;
use super::reconcile::{Effect, Settings};
use crate::api::names::{check_dns_label, check_label_value};
use crate::api::tenant::{Role, Tenant};
use crate::api::workspace::AutoEnroll;
use crate::api::{labels, reason};
use crate::config::Managers;
use crate::controllers::shared::responsibility::{Standing, release};
use crate::controllers::shared::waits;
use crate::runtime::component::Component;
use crate::runtime::plan::{ObjectPatch, Plan, Precondition, to_value};
use crate::runtime::problem::Problem;

/// The time until the next check of the bindings in personal namespaces. Most changes of these bindings start a reconcile
/// themselves, but a Tenant or a namespace may also be deleted.
const RECHECK: Duration = Duration::from_mins(1);

/// The plan of a Workspace.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
    if observed.standing == Standing::Deselected {
        return release(&observed.workspace, labels::TENANT_FINALIZER);
    }
    if observed.workspace.is_terminating() {
        return deletion(observed, settings);
    }
    let mut plan = Plan::default();
    if let Some(fault) = &observed.workspace.malformed {
        let message = format!("the Workspace cannot be read: {fault}; its existing objects stay unchanged");
        plan.problems.push(Problem::fault(Component::Whole, reason::INVALID_SPEC, message));
        return plan;
    }
    let name = observed.namespace_name();
    if let Err(error) = check_dns_label(&name) {
        let message = format!(
            "nothing can be created for this Workspace, because its name is not valid for a namespace: {error}; delete it \
             and create it under a name without dots, of at most 53 characters"
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
    plan.problems.extend(observed.workspace.spec.quota.faults("spec.quota").into_iter().map(|message| {
        // The Tenants report unreadable amounts themselves, and keep their quota.
        Problem::fault(Component::Whole, reason::INVALID_QUOTA, message)
    }));
    let pretty_name = observed.workspace.spec.pretty_name.clone();
    plan.effects.extend(settings.has_keycloak.then_some(Effect::EnsureRoles { pretty_name }));
    plan.patches.extend(own_patch(observed, settings));
    plan.patches.extend(enrolments(observed));
    managers_of_instances(observed, settings, &mut plan);
    children::tenants_binding(observed).bind(&mut plan);
    if let Some(namespace) = observed.namespace().filter(|namespace| namespace.is_terminating()) {
        waits::of_namespace(namespace, "", NAMESPACE, now).join(&mut plan);
        return plan;
    }
    children::namespace(observed).ensure(&mut plan);
    children::bindings(observed).for_each(|binding| binding.bind(&mut plan));
    plan
}

/// Plans the binding of managers to all Instances, or its removal once they have a binding in each personal namespace of the
/// Workspace's Tenants.
fn managers_of_instances(observed: &Observed, settings: &Settings, plan: &mut Plan<Effect>) {
    let binding = children::instances_binding(observed);
    let has_lost_its_owner =
        binding.existing.is_some_and(|existing| existing.metadata().controller().is_none());
    match settings.managers {
        Managers::Cluster => binding.bind(plan),
        // It is adopted first, and then removed.
        Managers::Course if has_lost_its_owner => {
            binding.bind(plan);
            plan.requeue_after(Duration::ZERO);
        }
        Managers::Course if observed.unbound.is_empty() => binding.remove(plan),
        Managers::Course => plan.requeue_after(binding.is_own().then_some(RECHECK)),
    }
}

/// The patch of the finalizer and the label of the Workspace itself.
fn own_patch(observed: &Observed, settings: &Settings) -> Option<ObjectPatch> {
    let auto_enroll = match &observed.workspace.spec.auto_enroll {
        AutoEnroll::Disabled => "disabled".to_owned(),
        other => other.to_string(),
    };
    // An unknown value may not be a valid label value, and the API server would reject the finalizer together with it.
    let is_label = check_label_value(&auto_enroll).is_ok();
    let wanted = if is_label { json!({labels::AUTO_ENROLL: auto_enroll}) } else { json!({}) };
    settings.responsibility.hold(&observed.workspace, observed.standing, labels::TENANT_FINALIZER, &wanted)
}

/// The patches of candidates. They become users if no approval is needed, and are removed if enrolment is disabled.
fn enrolments(observed: &Observed) -> Vec<ObjectPatch> {
    let name = observed.workspace.name();
    let role = match observed.workspace.spec.auto_enroll {
        // An unknown value removes no candidates.
        AutoEnroll::WithApproval | AutoEnroll::Other(_) => return Vec::new(),
        AutoEnroll::Immediate => Some(Role::User),
        AutoEnroll::Disabled => None,
    };
    let candidates = readable(observed).filter(|tenant| tenant.spec.role_in(name) == Some(&Role::Candidate));
    candidates.filter_map(|tenant| enrolment(tenant, name, role.as_ref())).collect()
}

/// The Tenants whose spec can be read.
fn readable(observed: &Observed) -> impl Iterator<Item = &Tenant> {
    observed.tenants.iter().map(|tenant| &**tenant).filter(|tenant| tenant.malformed.is_none())
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
    plan.patches.extend(readable(observed).filter_map(|tenant| enrolment(tenant, name, None)));
    let cluster = [children::instances_binding(observed), children::tenants_binding(observed)];
    let bindings = cluster.into_iter().chain(children::bindings(observed));
    bindings.for_each(|binding| binding.remove(&mut plan));
    let unchanged = Precondition::object(&*observed.workspace);
    let namespace = children::namespace(observed).removal();
    plan.remove.extend(namespace.map(|removal| removal.with_preconditions([unchanged])));
    plan
}

#[cfg(test)]
mod tests;
