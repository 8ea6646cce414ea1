//! The plan of a Tenant: a pure function of what is observed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use super::enrolment::{Enrolment, wanted_labels};
use super::lifetime::{Presence, presence};
use super::my_drive;
use super::names::Names;
use super::objects::{self, MANAGE_INSTANCES, MANAGE_TEMPLATES};
use super::observe::Observed;
use super::quota::{QUOTA, Quota, tenant_quota};
use super::{Effect, Settings};
use crate::api::instance::InstanceKind;
use crate::api::template::TemplateKind;
use crate::api::{Object, labels, reason};
use crate::config::OnTenantDeletion;
use crate::controllers::shared::children::{self, ChildBuilder, ChildMeta, binding, owner};
use crate::controllers::shared::responsibility::release;
use crate::kinds::{
    ClusterRoleBindingKind, ClusterRoleKind, LimitRangeKind, NamespaceKind, NetworkPolicyKind,
    ResourceQuotaKind, RoleBindingKind,
};
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, KindInfo, ObjectPatch, Plan, Precondition, Removal};
use crate::runtime::problem::Problem;

/// The component of the `ClusterRole` and its binding.
pub const CLUSTER: Component = Component::Part("cluster-resources");
/// The component of the personal namespace and what is in it.
pub const PERSONAL: Component = Component::Part("personal-namespace");
/// The component of the personal workspace: a part of the component of the namespace.
pub const PERSONAL_WORKSPACE: Component = Component::Within("personal-namespace", "personal-workspace");
/// The component of the sandbox.
pub const SANDBOX: Component = Component::Part("sandbox-resources");

/// The plan of a Tenant.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
    if observed.is_deselected {
        return release(&observed.tenant, labels::TENANT_FINALIZER);
    }
    if observed.tenant.is_terminating() {
        return deletion(observed, settings);
    }
    let mut plan = Plan::default();
    let enrolment = Enrolment::of(observed);
    plan.patches.extend(own_patch(observed, &enrolment, settings));
    if let Some(fault) = &observed.tenant.malformed {
        plan.problems.push(Problem::fault(
            Component::Whole,
            reason::INVALID_TENANT,
            format!("the Tenant cannot be read: {fault}"),
        ));
        plan.patches.clear();
        return plan;
    }
    let roles = || Effect::SynchronizeAccount { roles: enrolment.roles() };
    plan.effects.extend(settings.has_keycloak.then(roles));
    if let Some(name_owner) = &observed.name_owner {
        let message = format!(
            "the objects of this Tenant would have the names of those of Tenant {name_owner}, which is older: \
             nothing is made for it; delete it and create it under another name"
        );
        plan.problems.push(Problem::fault(Component::Whole, reason::NAME_CONFLICT, message));
        return plan;
    }
    let presence = presence(observed, settings, now);
    if presence == Presence::Undecided {
        plan.requeue_after(settings.config.verification_poll.into());
        return plan;
    }
    let builder = builder(observed, settings);
    cluster_objects(observed, &builder, &mut plan);
    let (quota, problems) = tenant_quota(observed, &enrolment, &settings.config);
    plan.problems.extend(problems);
    let personal = Personal { observed, settings, builder: &builder, names: observed.names() };
    match presence {
        Presence::Wanted(left) => {
            if let Some(left) = left {
                plan.requeue_after(left);
            }
            if personal.namespace(&mut plan) {
                personal.quota(&quota, &mut plan);
                personal.policies_and_binding(&mut plan);
                personal.own_workspace(&mut plan);
                my_drive::plan(observed, settings, &builder, &mut plan);
            }
        }
        _ => personal.removal(&mut plan),
    }
    sandbox(observed, settings, &mut plan);
    plan
}

/// The builder of the objects of a Tenant, except those in its sandbox.
pub fn builder(observed: &Observed, settings: &Settings) -> ChildBuilder {
    let builder =
        ChildBuilder { owner: owner(&observed.tenant), labels: settings.responsibility.selector.clone() };
    builder.with(&[(labels::MANAGED_BY, labels::MANAGED_BY_TENANT)])
}

/// The patch of the finalizer and the labels of the Tenant itself.
fn own_patch(observed: &Observed, enrolment: &Enrolment<'_>, settings: &Settings) -> Option<ObjectPatch> {
    let Settings { responsibility, config, .. } = settings;
    let wanted = wanted_labels(observed, enrolment, &responsibility.selector, &config.base_workspaces);
    responsibility.hold(&observed.tenant, labels::TENANT_FINALIZER, &json!(wanted))
}

/// Plans the `ClusterRole` by which the Tenant can read and edit itself, and its binding.
fn cluster_objects(observed: &Observed, builder: &ChildBuilder, plan: &mut Plan<Effect>) {
    let tenant = observed.tenant.name();
    let names = observed.names();
    let meta = |wave| ChildMeta { namespace: "", name: &names.cluster_role, component: &CLUSTER, wave };
    plan.ensure.push(builder.enforced::<ClusterRoleKind>(
        observed.children.cluster_role.as_deref(),
        meta(0),
        &objects::own_rules(tenant),
    ));
    let body = binding(&names.cluster_role, "User", tenant);
    builder.bind::<ClusterRoleBindingKind, _>(
        observed.children.cluster_binding.as_deref(),
        meta(1),
        &body,
        plan,
    );
}

/// Plans a namespace, and returns whether objects can be created in it.
fn namespace(
    observed: &Observed,
    existing: Option<&Object<NamespaceKind>>,
    name: &str,
    component: &Component,
    make: impl FnOnce(ChildMeta<'_>) -> Desired,
    plan: &mut Plan<Effect>,
) -> bool {
    if let Err(error) = Names::check(name) {
        let message = format!(
            "no namespace can be made for this Tenant: {error}; delete it and create it under a shorter name"
        );
        plan.problems.push(Problem::fault(component.clone(), reason::INVALID_NAME, message));
        return false;
    }
    if let Some(existing) = existing.filter(|existing| existing.is_terminating()) {
        let whose =
            if existing.is_controlled_by(&observed.tenant) { "" } else { ", which is not of this Tenant," };
        let message = format!("namespace {name}{whose} is being deleted; it is made anew when it is gone");
        plan.problems.push(Problem::waiting(component.clone(), reason::NAMESPACE_TERMINATING, message));
        return false;
    }
    plan.ensure.push(make(ChildMeta { namespace: "", name, component, wave: 0 }));
    true
}

/// Plans the personal namespace and the objects in it.
struct Personal<'a> {
    observed: &'a Observed,
    settings: &'a Settings,
    builder: &'a ChildBuilder,
    names: Names,
}

impl Personal<'_> {
    fn meta<'a>(&'a self, name: &'a str, component: &'a Component) -> ChildMeta<'a> {
        ChildMeta { namespace: &self.names.namespace, name, component, wave: 1 }
    }

    fn namespace(&self, plan: &mut Plan<Effect>) -> bool {
        let existing = self.observed.children.namespace.as_deref();
        let make = |meta: ChildMeta<'_>| {
            let mut builder = self.builder.clone();
            // Those of the loop win.
            let more = self.settings.config.namespace_labels.clone();
            builder.labels = more.into_iter().chain(builder.labels).collect();
            let builder = builder
                .with(&[(labels::TYPE, labels::TYPE_TENANT), (labels::NAME, self.observed.tenant.name())]);
            let mut desired = builder.enforced::<NamespaceKind>(existing, meta, &json!({}));
            // A namespace that another daemon manages is not adopted.
            desired.identity.extend(children::exactly(&self.settings.responsibility.selector));
            desired
        };
        namespace(self.observed, existing, &self.names.namespace, &PERSONAL, make, plan)
    }

    fn quota(&self, quota: &Quota, plan: &mut Plan<Effect>) {
        let existing = self.observed.children.quota.as_deref();
        let body = objects::resource_quota(quota, &self.settings.config.count_quotas, existing);
        let meta = ChildMeta { component: &QUOTA, ..self.meta(objects::RESOURCE_QUOTA, &QUOTA) };
        plan.ensure.push(self.builder.enforced::<ResourceQuotaKind>(existing, meta, &body));
    }

    /// Plans the network policies, and the binding by which the Tenant manages its Instances.
    fn policies_and_binding(&self, plan: &mut Plan<Effect>) {
        let children = &self.observed.children;
        plan.ensure.push(self.builder.enforced::<NetworkPolicyKind>(
            children.deny.as_deref(),
            self.meta(objects::DENY_INGRESS, &PERSONAL),
            &objects::deny_ingress(),
        ));
        plan.ensure.push(self.builder.enforced::<NetworkPolicyKind>(
            children.allow.as_deref(),
            self.meta(objects::ALLOW_TRUSTED_INGRESS, &PERSONAL),
            &objects::allow_trusted_ingress(),
        ));
        // The binding is written last: without quota and network policies no Instance may be started.
        let meta = ChildMeta { wave: 2, ..self.meta(MANAGE_INSTANCES, &PERSONAL) };
        let body = binding(MANAGE_INSTANCES, "User", self.observed.tenant.name());
        self.builder.bind::<RoleBindingKind, _>(children.instances.as_deref(), meta, &body, plan);
    }

    /// Plans the binding by which the Tenant manages its own Templates, or its removal.
    fn own_workspace(&self, plan: &mut Plan<Effect>) {
        let existing = self.observed.children.templates.as_deref();
        if wants_own_workspace(self.observed, self.settings) {
            let meta = ChildMeta { wave: 2, ..self.meta(MANAGE_TEMPLATES, &PERSONAL_WORKSPACE) };
            let body = binding(MANAGE_TEMPLATES, "User", self.observed.tenant.name());
            self.builder.bind::<RoleBindingKind, _>(existing, meta, &body, plan);
        } else {
            let ours = existing.filter(|binding| binding.is_controlled_by(&self.observed.tenant));
            plan.remove.extend(ours.map(|binding| Removal::of(binding, PERSONAL_WORKSPACE)));
        }
    }

    /// Plans the removal of the namespace, which deletes all objects in it.
    fn removal(&self, plan: &mut Plan<Effect>) {
        let existing = self.observed.children.namespace.as_ref();
        if self.observed.usable(existing) {
            let within = |kind| Precondition::Within(kind, self.names.namespace.clone());
            // The user may have logged in and created something a moment ago.
            let mut preconditions =
                vec![Precondition::object(&*self.observed.tenant), within(KindInfo::of::<InstanceKind>())];
            if self.settings.config.personal_workspace.enabled {
                preconditions.push(within(KindInfo::of::<TemplateKind>()));
            }
            let removal =
                existing.map(|namespace| Removal::of(namespace, PERSONAL).with_preconditions(preconditions));
            plan.remove.extend(removal);
        }
    }
}

/// Whether the Tenant should have a personal workspace.
pub fn wants_own_workspace(observed: &Observed, settings: &Settings) -> bool {
    settings.config.personal_workspace.enabled && observed.tenant.spec.personal_workspace.is_some()
}

/// Plans the sandbox, or its removal.
fn sandbox(observed: &Observed, settings: &Settings, plan: &mut Plan<Effect>) {
    let children = &observed.children;
    let existing = children.sandbox.as_ref();
    if !observed.tenant.spec.create_sandbox {
        if observed.usable(existing) {
            let precondition = Precondition::object(&*observed.tenant);
            let removal =
                existing.map(|namespace| Removal::of(namespace, SANDBOX).with_preconditions([precondition]));
            plan.remove.extend(removal);
        }
        return;
    }
    let tenant = observed.tenant.name();
    let with = |labels| {
        ChildBuilder { owner: owner(&observed.tenant), labels }.with(&[
            (labels::MANAGED_BY, labels::MANAGED_BY_TENANT),
            (labels::TYPE, labels::TYPE_SANDBOX),
            (labels::TENANT, tenant),
        ])
    };
    let builder = with(BTreeMap::new());
    let of_namespace = with(settings.config.sandbox_labels.clone());
    let name = observed.names().sandbox;
    let existing = existing.map(AsRef::as_ref);
    let make = |meta: ChildMeta<'_>| of_namespace.enforced::<NamespaceKind>(existing, meta, &json!({}));
    if !namespace(observed, existing, &name, &SANDBOX, make, plan) {
        return;
    }
    let meta =
        |object: &'static str, wave| ChildMeta { namespace: &name, name: object, component: &SANDBOX, wave };
    plan.ensure.push(builder.enforced::<ResourceQuotaKind>(
        children.sandbox_quota.as_deref(),
        meta(objects::SANDBOX_QUOTA, 1),
        &objects::sandbox_quota(&settings.config.count_quotas),
    ));
    plan.ensure.push(builder.enforced::<LimitRangeKind>(
        children.sandbox_limits.as_deref(),
        meta(objects::SANDBOX_LIMITS, 1),
        &objects::sandbox_limits(),
    ));
    let body = binding(&settings.config.sandbox_cluster_role, "User", tenant);
    builder.bind::<RoleBindingKind, _>(
        children.sandbox_binding.as_deref(),
        meta(objects::SANDBOX_EDITOR, 2),
        &body,
        plan,
    );
}

/// The plan for a Tenant that is being deleted: its namespaces and RBAC are deleted, and its volume where
/// that is configured.
fn deletion(observed: &Observed, settings: &Settings) -> Plan<Effect> {
    let mut plan = Plan { remove_finalizer: Some(labels::TENANT_FINALIZER), ..Plan::default() };
    plan.effects.extend(settings.has_keycloak.then_some(Effect::RemoveAccount));
    let children = &observed.children;
    let preconditions = || [Precondition::object(&*observed.tenant)];
    for (namespace, component) in [(&children.namespace, PERSONAL), (&children.sandbox, SANDBOX)] {
        if observed.usable(namespace.as_ref()) {
            let removal = namespace.iter().map(|namespace| {
                Removal::of(namespace, component.clone()).with_preconditions(preconditions())
            });
            plan.remove.extend(removal);
        }
    }
    let binding =
        children.cluster_binding.iter().filter(|binding| binding.is_controlled_by(&observed.tenant));
    plan.remove.extend(binding.map(|binding| Removal::of(binding, CLUSTER)));
    let role = children.cluster_role.iter().filter(|role| role.is_controlled_by(&observed.tenant));
    plan.remove.extend(role.map(|role| Removal::of(role, CLUSTER)));
    let delete = settings.config.my_drive.on_tenant_deletion == OnTenantDeletion::Delete;
    if let Some(claim) = children.claim.as_deref().filter(|claim| my_drive::belongs_to(observed, claim)) {
        if delete {
            plan.remove.push(Removal::of(claim, my_drive::MY_DRIVE).with_preconditions(preconditions()));
        } else {
            // The Go operator makes claims that are deleted with their Tenant; this one is kept.
            plan.ensure.push(my_drive::kept(observed, settings, claim));
        }
    }
    plan
}

#[cfg(test)]
mod tests;
