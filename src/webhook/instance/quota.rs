//! Checks whether the Tenant may use the Template of an Instance, and whether the quota allows it to start, according
//! to `api::quota`.
//!
//! The `ResourceQuota` of the namespace is the hard limit. This rule reports the exceeded limit before an Instance is
//! stored whose objects could not be created.

use serde::Deserialize as _;

use super::reservations::Admitted;
use crate::api::Instance;
use crate::api::denial::Cause;
use crate::api::quota::{Holder, Quotas, Refusal, Rule, Start};
use crate::config::Layout;
use crate::webhook::decision::{Decision, Denial};
use crate::webhook::review::{Operation, Request, decoded};
use crate::webhook::tenant::SERVICE_TENANT;
use crate::webhook::view::View;

/// The settings of the rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether the rule applies at all (`server.webhook.instanceQuota`).
    pub enabled: bool,
    /// Whether the Tenant must be enrolled (`server.webhook.requireEnrolment`).
    pub require_enrolment: bool,
    /// The user name of this daemon, which is exempt from the rule.
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

/// Decides on a request to create or change an Instance. `pending` are recently admitted Instances that the view may
/// not show yet. The second part of the result is the Instance that this request starts, to be reserved.
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
    let namespace = request.namespace.as_str();
    let tenant = instance.spec.tenant_ref.name.as_str();
    // The Instances of the namespace count, and so do admitted ones that the view does not show yet.
    let instances = view.instances(namespace);
    let is_seen = |admitted: &&Admitted| {
        instances.iter().any(|other| other.name() == admitted.name && admitted.is_running(other))
    };
    let unseen: Vec<&Admitted> =
        pending.iter().filter(|admitted| admitted.namespace == namespace && !is_seen(admitted)).collect();
    let (mut running, mut stopped) = Holder::divide(instances.iter().map(AsRef::as_ref));
    stopped.retain(|holder| unseen.iter().all(|admitted| admitted.name != holder.name));
    running.extend(unseen.iter().map(|admitted| Holder {
        name: &admitted.name,
        template: &admitted.template,
        label: None,
    }));
    let rule = Rule {
        // The Tenant of exams has no Workspaces, and no user acts as this Tenant.
        require_enrolment: settings.require_enrolment && tenant != SERVICE_TENANT,
        personal_workspaces: settings.personal_workspaces,
    };
    let quotas = Quotas { rule, objects: view, namespace, running: &running, stopped: &stopped };
    let mut warnings = Vec::new();
    let start = Start {
        name: request.object_name(),
        tenant,
        template: &instance.spec.template_ref,
        is_new: matches!(request.operation, Operation::Create),
    };
    let result = quotas.may_start(&start, &mut warnings);
    let result = result.map_err(|refusal| denied(&refusal));
    let admitted = result.is_ok().then(|| Admitted {
        review: request.uid.clone(),
        namespace: request.namespace.clone(),
        name: request.object_name().to_owned(),
        uid: instance.uid().to_owned(),
        template: instance.spec.template_ref.clone(),
    });
    let decision = result.map_or_else(Decision::denied, |()| Decision::allowed());
    (warnings.into_iter().fold(decision, Decision::with_warning), admitted)
}

/// Returns the refusal of a start.
fn denied(refusal: &Refusal) -> Denial {
    Denial { causes: Cause::of(refusal), ..Denial::forbidden(refusal.to_string()) }
}

/// Returns the Instance that the request starts, or that is running and gets another Template; `None` in any other
/// case.
pub fn starting(request: &Request) -> Result<Option<Instance>, Denial> {
    let before = match request.operation {
        Operation::Create => None,
        // An invalid Instance does not run.
        Operation::Update => Instance::deserialize(&*request.old_object).ok().filter(|old| old.spec.running),
        Operation::Delete | Operation::Connect => return Ok(None),
    };
    let new: Instance = decoded(&request.object, "Instance")?;
    let template = before.map(|old| old.spec.template_ref);
    let is_start = new.spec.running && template.as_ref() != Some(&new.spec.template_ref);
    Ok(is_start.then_some(new))
}
