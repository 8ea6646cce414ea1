//! The plan of a Tenant: a pure function of the observed state.

use jiff::Timestamp;
use serde_json::json;

use super::children::{Children, MY_DRIVE};
use super::enrolment::{Enrolment, wanted_labels};
use super::lifetime::{Presence, presence};
use super::observe::Observed;
use super::policies::Policies;
use super::quota::tenant_quota;
use super::{Effect, Settings, managers, my_drive};
use crate::api::instance::InstanceKind;
use crate::api::names::check_dns_label;
use crate::api::template::TemplateKind;
use crate::api::{labels, reason};
use crate::config::OnTenantDeletion;
use crate::controllers::shared::children::Child;
use crate::controllers::shared::responsibility::{Standing, release};
use crate::controllers::shared::waits;
use crate::kinds::NamespaceKind;
use crate::runtime::component::Component;
use crate::runtime::plan::{KindInfo, ObjectPatch, Plan, Precondition, Removal};
use crate::runtime::problem::Problem;

/// The plan of a Tenant.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
    if observed.standing == Standing::Deselected {
        return release(&observed.tenant, labels::TENANT_FINALIZER);
    }
    if observed.tenant.is_terminating() {
        return deletion(observed, settings);
    }
    let enrolment = Enrolment::of(observed);
    let mut plan = Plan { problems: enrolment.problem().into_iter().collect(), ..Plan::default() };
    plan.patches.extend(own_patch(observed, &enrolment, settings));
    if let Some(fault) = &observed.tenant.malformed {
        let message = format!("the Tenant cannot be read: {fault}");
        plan.problems.push(Problem::fault(Component::Whole, reason::INVALID_TENANT, message));
        plan.patches.clear();
        return plan;
    }
    let roles = || Effect::SynchronizeAccount { roles: enrolment.roles() };
    plan.effects.extend(settings.has_keycloak.then(roles));
    if let Some(name_owner) = &observed.name_owner {
        let message = format!(
            "the objects of this Tenant would have the same names as those of Tenant {name_owner}, which is older: \
             nothing is created for it; delete it and create it under another name"
        );
        plan.problems.push(Problem::fault(Component::Whole, reason::NAME_CONFLICT, message));
        return plan;
    }
    let presence = presence(observed, settings, now);
    if presence == Presence::Undecided {
        plan.requeue_after(settings.config.verification_poll.get());
        return plan;
    }
    let children = Children { observed, settings };
    children.cluster_role().ensure(&mut plan);
    children.cluster_binding().bind(&mut plan);
    let (quota, problems) = tenant_quota(observed, &enrolment, &settings.config);
    plan.problems.extend(problems);
    match presence {
        Presence::Wanted(left) => {
            plan.requeue_after(left);
            if namespace(children, children.namespace(), now, &mut plan) {
                children.quota(&quota).ensure(&mut plan);
                policies(children.policies(), &mut plan);
                children.instances_binding().bind(&mut plan);
                managers::plan(children, &enrolment, &mut plan);
                own_workspace(children, &mut plan);
                my_drive::plan(children, now, &mut plan);
            }
        }
        _ => plan.remove.extend(end_of_namespace(children)),
    }
    sandbox(children, now, &mut plan);
    plan
}

/// The patch of the finalizer and the labels of the Tenant itself.
fn own_patch(observed: &Observed, enrolment: &Enrolment<'_>, settings: &Settings) -> Option<ObjectPatch> {
    let Settings { responsibility, config, .. } = settings;
    let wanted = wanted_labels(observed, enrolment, &responsibility.selector, &config.base_workspaces);
    responsibility.hold(&observed.tenant, observed.standing, labels::TENANT_FINALIZER, &json!(wanted))
}

/// Plans a namespace, and returns whether objects can be created in it.
fn namespace(children: Children<'_>, child: Child<'_>, now: Timestamp, plan: &mut Plan<Effect>) -> bool {
    let (name, component) = (child.desired.key.name.to_string(), child.desired.component.clone());
    if let Err(error) = check_dns_label(&name) {
        let message = format!(
            "no namespace can be created for this Tenant: {error}; delete it and create it under a shorter name"
        );
        plan.problems.push(Problem::fault(component, reason::INVALID_NAME, message));
        return false;
    }
    let existing = children.observed.children.get::<NamespaceKind>("", &name);
    if let Some(existing) = existing.filter(|existing| existing.is_terminating()) {
        let whose = if child.is_own() { "" } else { ", which is not of this Tenant," };
        waits::of_namespace(existing, whose, component, now).join(plan);
        return false;
    }
    child.ensure(plan);
    true
}

/// Plans the network policies of a namespace, or their removal.
fn policies(policies: Policies<'_>, plan: &mut Plan<Effect>) {
    for (policy, is_wanted) in policies {
        if is_wanted {
            policy.ensure(plan);
        } else {
            policy.remove(plan);
        }
    }
}

/// The removal of the personal namespace, which deletes all objects in it.
fn end_of_namespace(children: Children<'_>) -> Option<Removal> {
    let child = children.namespace();
    let within = |kind| Precondition::NoneWithin(kind, child.desired.key.name.to_string());
    // The user may have logged in and created an object a moment ago.
    let preconditions = [
        Precondition::object(&*children.observed.tenant),
        within(KindInfo::of::<InstanceKind>()),
        within(KindInfo::of::<TemplateKind>()),
    ];
    child.removal().map(|removal| removal.with_preconditions(preconditions))
}

/// Plans the right to write Templates in the personal namespace, or its removal. If personal workspaces are switched
/// off for all Tenants, Tenants that request one keep their right.
fn own_workspace(children: Children<'_>, plan: &mut Plan<Effect>) {
    let Children { observed, settings } = children;
    let binding = children.templates_binding();
    if wants_own_workspace(observed, settings) {
        binding.bind(plan);
    } else if !observed.tenant.spec.has_personal_workspace() {
        binding.remove(plan);
    }
}

/// Whether the Tenant should have a personal workspace.
pub fn wants_own_workspace(observed: &Observed, settings: &Settings) -> bool {
    settings.config.personal_workspace.enabled && observed.tenant.spec.has_personal_workspace()
}

/// Plans the sandbox, or its removal.
fn sandbox(children: Children<'_>, now: Timestamp, plan: &mut Plan<Effect>) {
    let tenant = &children.observed.tenant;
    if !tenant.spec.create_sandbox {
        let unchanged = Precondition::object(&**tenant);
        let removal = children.sandbox().removal();
        plan.remove.extend(removal.map(|removal| removal.with_preconditions([unchanged])));
    } else if namespace(children, children.sandbox(), now, plan) {
        children.sandbox_quota().ensure(plan);
        children.sandbox_limits().ensure(plan);
        policies(children.sandbox_policies(), plan);
        children.sandbox_binding().bind(plan);
    }
}

/// The plan for a Tenant that is being deleted: its namespaces and RBAC are deleted, and its volume if the
/// configuration says so.
fn deletion(observed: &Observed, settings: &Settings) -> Plan<Effect> {
    let mut plan = Plan { remove_finalizer: Some(labels::TENANT_FINALIZER), ..Plan::default() };
    plan.effects.extend(settings.has_keycloak.then_some(Effect::RemoveAccount));
    let children = Children { observed, settings };
    let guarded = |removal: Removal| removal.with_preconditions([Precondition::object(&*observed.tenant)]);
    let namespaces = [children.namespace(), children.sandbox()];
    plan.remove.extend(namespaces.iter().filter_map(Child::removal).map(guarded));
    plan.remove
        .extend([children.cluster_binding(), children.cluster_role()].iter().filter_map(Child::removal));
    let delete = settings.config.my_drive.on_tenant_deletion == OnTenantDeletion::Delete;
    if let Some(claim) = observed.claim().filter(|claim| my_drive::belongs_to(observed, claim)) {
        if delete {
            plan.remove.push(guarded(Removal::of(claim, MY_DRIVE)));
        } else if !claim.metadata.owner_references.is_empty()
            || observed.tenant.has_labels(&settings.responsibility.selector)
        {
            // The Go operator creates claims that are deleted with their Tenant, but this one is kept. A claim without
            // an owner that was created under another selector keeps the labels of that selector.
            plan.ensure.push(children.claim(claim.label(labels::VOLUME_PROVISIONING)).made());
        }
    }
    plan
}

#[cfg(test)]
mod tests;
