//! Whether an Instance may start: its Template says which Workspace lends the resources, the other
//! Instances of the namespace say how much of them is in use.
//!
//! The `ResourceQuota` of the namespace is the hard limit; this rule is the one that tells users,
//! before anything is made, which share is used up.

use std::sync::Arc;

use serde::Deserialize as _;

use super::amounts::{Limits, Usage};
use super::reservations::Admitted;
use crate::api::names::CanonicalName;
use crate::api::template::TemplateSpec;
use crate::api::{GenericRef, Instance, Template, Tenant, labels};
use crate::webhook::decision::{Decision, Denial};
use crate::webhook::review::{Operation, Request};
use crate::webhook::view::View;

/// The name by which Templates refer to the Workspace of the Tenant that uses them.
pub const PERSONAL: &str = "personal";
/// What the namespaces of Tenants begin with.
const TENANT_NAMESPACES: &str = "tenant-";

/// What the rule depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether the rule is applied at all.
    pub enabled: bool,
    /// The account that this daemon runs as, which is not held to the rule.
    pub own_user: String,
    /// Whether Tenants may have a Workspace of their own.
    pub personal_workspaces: bool,
}

/// Judges a request to create or change an Instance. `pending` are Instances that were admitted a
/// moment ago and that the view may not show yet. The second half is what this request adds to them.
#[must_use]
pub fn judge(
    request: &Request,
    settings: &Settings,
    view: &dyn View,
    pending: &[Admitted],
) -> (Decision, Option<Admitted>) {
    if !settings.enabled || request.user_info.username == settings.own_user {
        return (Decision::allowed(), None);
    }
    let instance = match starting(request) {
        Ok(Some(instance)) => instance,
        Ok(None) => return (Decision::allowed(), None),
        Err(denial) => return (Decision::denied(denial), None),
    };
    let mut warnings = Vec::new();
    let result = Judgement { request, settings, view, pending }.judge(&instance, &mut warnings);
    let admitted = result.is_ok().then(|| Admitted {
        namespace: request.namespace.clone(),
        name: request.object_name().to_owned(),
        uid: instance.uid().to_owned(),
        template: instance.spec.template_ref.clone(),
    });
    (warnings.into_iter().fold(result.into(), Decision::with_warning), admitted)
}

/// The Instance that the request would start; `None` when it starts none.
fn starting(request: &Request) -> Result<Option<Instance>, Denial> {
    let was_running = match request.operation {
        Operation::Create => false,
        // One that cannot be read does not run.
        Operation::Update => Instance::deserialize(&request.old_object).is_ok_and(|old| old.spec.running),
        Operation::Delete | Operation::Connect => return Ok(None),
    };
    let unreadable =
        |fault: &dyn std::fmt::Display| Denial::malformed(format!("the Instance cannot be read: {fault}"));
    let new = Instance::deserialize(&request.object).map_err(|error| unreadable(&error))?;
    match &new.malformed {
        Some(fault) => Err(unreadable(fault)),
        None => Ok(Some(new).filter(|new| new.spec.running && !was_running)),
    }
}

/// Who lends the resources of an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lender {
    Workspace(String),
    /// The Tenant's own Workspace.
    Personal,
}

struct Judgement<'a> {
    request: &'a Request,
    settings: &'a Settings,
    view: &'a dyn View,
    pending: &'a [Admitted],
}

impl Judgement<'_> {
    fn judge(&self, instance: &Instance, warnings: &mut Vec<String>) -> Result<(), Denial> {
        let reference = &instance.spec.template_ref;
        let template = self.view.template(&reference.namespace, &reference.name).ok_or_else(|| {
            Denial::forbidden(format!("the Template {reference} does not exist, so no quota is known"))
        })?;
        let Some(lender) = self.lender(reference, &template) else {
            warnings.push(format!("the Template {reference} names no Workspace: no quota is checked"));
            return Ok(());
        };
        let usage = self.usage(&lender, &template.spec, warnings);
        let exceeded = self.exceeded(&lender, &instance.spec.tenant_ref.name, &usage)?;
        if exceeded.is_empty() {
            return Ok(());
        }
        Err(Denial::forbidden(format!("quota exceeded: {}", exceeded.join(", "))))
    }

    /// Templates in a Tenant's namespace are that Tenant's own, whatever Workspace they name: users
    /// write them.
    fn lender(&self, reference: &GenericRef, template: &Template) -> Option<Lender> {
        let workspace = &template.spec.workspace_ref.name;
        let is_own = reference.namespace.starts_with(TENANT_NAMESPACES) || workspace == PERSONAL;
        if is_own && self.settings.personal_workspaces {
            return Some(Lender::Personal);
        }
        (!workspace.is_empty()).then(|| Lender::Workspace(workspace.clone()))
    }

    /// What the Tenant would use of the lender with this Instance. All Instances of the namespace
    /// count, whichever Tenant they name: users write them.
    fn usage(&self, lender: &Lender, own: &TemplateSpec, warnings: &mut Vec<String>) -> Usage {
        let namespace = self.request.namespace.as_str();
        let name = self.request.object_name();
        let mut usage = Usage::default();
        usage.add(Some(own));
        let instances = self.view.instances(namespace);
        for other in instances.iter().filter(|other| other.spec.running && other.name() != name) {
            let label = other.label(labels::WORKSPACE);
            self.count(&mut usage, lender, other.name(), &other.spec.template_ref, label, warnings);
        }
        let is_seen = |admitted: &Admitted| {
            instances.iter().any(|other| other.spec.running && other.name() == admitted.name)
        };
        for admitted in self.pending {
            if admitted.namespace == namespace && admitted.name != name && !is_seen(admitted) {
                self.count(&mut usage, lender, &admitted.name, &admitted.template, None, warnings);
            }
        }
        usage
    }

    /// Counts an Instance if it uses the same lender. Where its Template is gone, its label tells.
    fn count(
        &self,
        usage: &mut Usage,
        lender: &Lender,
        name: &str,
        reference: &GenericRef,
        label: Option<&str>,
        warnings: &mut Vec<String>,
    ) {
        if let Some(template) = self.view.template(&reference.namespace, &reference.name) {
            if self.lender(reference, &template).as_ref() == Some(lender) {
                usage.add(Some(&template.spec));
            }
            return;
        }
        let workspace = match lender {
            Lender::Workspace(workspace) => workspace,
            Lender::Personal => PERSONAL,
        };
        if label.is_none_or(|label| label == workspace) {
            warnings.push(format!(
                "the Template {reference} of the Instance {name} does not exist: what it uses is not counted"
            ));
            usage.add(None);
        }
    }

    fn exceeded(&self, lender: &Lender, tenant: &str, usage: &Usage) -> Result<Vec<String>, Denial> {
        match lender {
            Lender::Workspace(name) => {
                let workspace = self.view.workspace(name).ok_or_else(|| {
                    Denial::forbidden(format!("the Workspace {name} does not exist, so no quota is known"))
                })?;
                Ok(Limits::from(&workspace.spec.quota).exceeded_by(usage))
            }
            Lender::Personal => {
                let tenant = self.owner(tenant)?;
                let share = tenant.spec.personal_workspace.as_ref().ok_or_else(|| {
                    Denial::forbidden(format!("the Tenant {} has no personal workspace", tenant.name()))
                })?;
                Ok(Limits::from(share).exceeded_by(usage))
            }
        }
    }

    /// The Tenant whose personal Workspace is used: the one that the Instance names, and in whose
    /// namespace it is.
    fn owner(&self, name: &str) -> Result<Arc<Tenant>, Denial> {
        let namespace = CanonicalName::of(name).tenant_namespace();
        if namespace != self.request.namespace {
            let message = format!("the personal workspace of {name:?} is for Instances in {namespace}");
            return Err(Denial::forbidden(message));
        }
        self.view.tenant(name).ok_or_else(|| Denial::forbidden(format!("the Tenant {name:?} does not exist")))
    }
}
