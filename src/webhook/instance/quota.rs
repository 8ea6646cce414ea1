//! Whether the Tenant may use the Template of an Instance, and the quota allows it to start, by the rule of `api::quota`.
//!
//! The `ResourceQuota` of the namespace is the hard limit. This rule tells users which limit is reached
//! before an Instance is stored whose objects could not be created.

use serde::Deserialize as _;

use super::reservations::Admitted;
use crate::api::Instance;
use crate::api::quota::{Quotas, Rule, Running};
use crate::config::Layout;
use crate::webhook::decision::{Decision, Denial};
use crate::webhook::review::{Operation, Request};
use crate::webhook::tenant::SERVICE_TENANT;
use crate::webhook::view::View;

/// The settings of the rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether the rule applies at all (`server.webhook.instanceQuota`).
    pub enabled: bool,
    /// Whether the Tenant must be enrolled (`server.webhook.requireEnrolment`).
    pub require_enrolment: bool,
    /// The user name of this daemon, to which the rule does not apply.
    pub own_user: String,
    /// Whether personal workspaces are enabled.
    pub personal_workspaces: bool,
    /// How the objects of a new Instance are named.
    pub layout: Layout,
}

impl Settings {
    /// Whether this daemon has sent the request.
    pub fn is_exempt(&self, request: &Request) -> bool {
        request.user_info.username == self.own_user
    }
}

/// Decides on a request to create or change an Instance. `pending` are Instances that were admitted
/// recently and that the view may not show yet. The second part of the result is the Instance that this
/// request starts, which is to be reserved.
pub fn validate(
    request: &Request,
    settings: &Settings,
    view: &dyn View,
    pending: &[Admitted],
) -> (Decision, Option<Admitted>) {
    if !settings.enabled || settings.is_exempt(request) {
        return (Decision::allowed(), None);
    }
    let instance = match starting(request) {
        Ok(Some(instance)) => instance,
        Ok(None) => return (Decision::allowed(), None),
        Err(denial) => return (Decision::denied(denial), None),
    };
    let mut warnings = Vec::new();
    let result = check(request, settings, view, pending, &instance, &mut warnings);
    let admitted = result.is_ok().then(|| Admitted {
        review: request.uid.clone(),
        namespace: request.namespace.clone(),
        name: request.object_name().to_owned(),
        uid: instance.uid().to_owned(),
        template: instance.spec.template_ref.clone(),
    });
    (warnings.into_iter().fold(result.into(), Decision::with_warning), admitted)
}

/// The Instance that the request starts, or that runs and gets another Template; `None` if it does neither.
fn starting(request: &Request) -> Result<Option<Instance>, Denial> {
    let before = match request.operation {
        Operation::Create => None,
        // An Instance that cannot be read does not run.
        Operation::Update => Instance::deserialize(&*request.old_object).ok().filter(|old| old.spec.running),
        Operation::Delete | Operation::Connect => return Ok(None),
    };
    let unreadable =
        |fault: &dyn std::fmt::Display| Denial::malformed(format!("the Instance cannot be read: {fault}"));
    let new = Instance::deserialize(&*request.object).map_err(|error| unreadable(&error))?;
    match &new.malformed {
        Some(fault) => Err(unreadable(fault)),
        None => Ok(Some(new).filter(|new| {
            let template = before.map(|old| old.spec.template_ref);
            new.spec.running && template.as_ref() != Some(&new.spec.template_ref)
        })),
    }
}

/// Applies the rule to the Instance that the request starts. Other Instances of the namespace that run count, and those that
/// were admitted and are not seen yet.
fn check(
    request: &Request,
    settings: &Settings,
    view: &dyn View,
    pending: &[Admitted],
    instance: &Instance,
    warnings: &mut Vec<String>,
) -> Result<(), Denial> {
    let namespace = request.namespace.as_str();
    let tenant = instance.spec.tenant_ref.name.as_str();
    let instances = view.instances(namespace);
    let is_seen = |admitted: &&Admitted| {
        instances.iter().any(|other| other.name() == admitted.name && admitted.is_running(other))
    };
    let unseen = pending.iter().filter(|admitted| admitted.namespace == namespace && !is_seen(admitted));
    let unseen =
        unseen.map(|admitted| Running { name: &admitted.name, template: &admitted.template, label: None });
    let running: Vec<Running<'_>> =
        instances.iter().filter_map(|other| Running::of(other)).chain(unseen).collect();
    let rule = Rule {
        // The Tenant of exams has no Workspaces, and no user acts as it.
        require_enrolment: settings.require_enrolment && tenant != SERVICE_TENANT,
        personal_workspaces: settings.personal_workspaces,
    };
    let quotas = Quotas { rule, objects: view, namespace, running: &running };
    let checked = quotas.may_start(request.object_name(), tenant, &instance.spec.template_ref, warnings);
    checked.map_err(|refusal| Denial::forbidden(refusal.to_string()))
}
