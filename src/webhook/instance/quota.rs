//! Whether the Tenant may use the Template of an Instance, and the quota allows it to start. The Template of the Instance determines the Workspace
//! whose quota counts, and the other Instances of the namespace determine how much of it is used.
//!
//! The `ResourceQuota` of the namespace is the hard limit. This rule tells users which limit is reached
//! before an Instance is stored whose objects could not be created.

use std::sync::Arc;

use serde::Deserialize as _;

use super::reservations::Admitted;
use crate::api::names::CanonicalName;
use crate::api::template::TemplateSpec;
use crate::api::tenancy::is_tenant_namespace;
use crate::api::tenant::Role;
use crate::api::usage::{Limits, Usage};
use crate::api::{GenericRef, Instance, Template, Tenant, labels};
use crate::config::Layout;
use crate::webhook::decision::{Decision, Denial};
use crate::webhook::review::{Operation, Request};
use crate::webhook::tenant::SERVICE_TENANT;
use crate::webhook::view::View;

/// The name by which a Template refers to the personal workspace of the Tenant that uses it.
pub const PERSONAL: &str = "personal";

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
    let result = Validation { request, settings, view, pending }.check(&instance, &mut warnings);
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

/// The quota that an Instance counts against.
#[derive(Debug, Clone, PartialEq, Eq)]
enum QuotaScope {
    /// The quota of the Workspace of that name.
    Workspace(String),
    /// The quota of the Tenant's personal workspace.
    Personal,
}

/// Whether a Template is in the namespace of a Tenant, who has written it.
fn is_of_tenant(reference: &GenericRef) -> bool {
    is_tenant_namespace(&reference.namespace)
}

/// Refuses a Template that a Tenant has written and that mounts shared volumes of others for writing.
fn writes_own_volumes_only(reference: &GenericRef, template: &Template) -> Result<(), Denial> {
    let mounts =
        template.spec.environment_list.iter().flat_map(|environment| &environment.shared_volume_mounts);
    let mut foreign = mounts.filter(|mount| {
        is_of_tenant(reference) && !mount.read_only && mount.shared_volume.namespace != reference.namespace
    });
    foreign.next().map_or(Ok(()), |mount| {
        Err(Denial::forbidden(format!(
            "the Template {reference} mounts the shared volume {} for writing: a Template in the namespace of a Tenant \
             may do so only with those of the same namespace; set readOnly",
            mount.shared_volume
        )))
    })
}

struct Validation<'a> {
    request: &'a Request,
    settings: &'a Settings,
    view: &'a dyn View,
    pending: &'a [Admitted],
}

impl Validation<'_> {
    fn check(&self, instance: &Instance, warnings: &mut Vec<String>) -> Result<(), Denial> {
        let reference = &instance.spec.template_ref;
        let template = self.view.template(&reference.namespace, &reference.name).ok_or_else(|| {
            Denial::forbidden(format!("the Template {reference} does not exist, so no quota is known"))
        })?;
        writes_own_volumes_only(reference, &template)?;
        let Some(scope) = self.scope(reference, &template) else {
            warnings.push(format!("the Template {reference} names no Workspace: no quota is checked"));
            return Ok(());
        };
        self.may_use(&instance.spec.tenant_ref.name, reference, &scope)?;
        let usage = self.usage(&scope, &template.spec, warnings);
        let exceeded = self.exceeded(&scope, &instance.spec.tenant_ref.name, &usage)?;
        if exceeded.is_empty() {
            return Ok(());
        }
        Err(Denial::forbidden(format!("quota exceeded: {}", exceeded.join(", "))))
    }

    /// Refuses a Template of a Workspace in which the Tenant is not enrolled, and of another Tenant.
    fn may_use(&self, tenant: &str, reference: &GenericRef, scope: &QuotaScope) -> Result<(), Denial> {
        // The Tenant of exams has no Workspaces, and no user acts as it.
        if !self.settings.require_enrolment || tenant == SERVICE_TENANT {
            return Ok(());
        }
        match scope {
            QuotaScope::Personal => {
                let own = CanonicalName::of(tenant).tenant_namespace();
                // An Instance elsewhere is refused for that reason.
                let is_elsewhere = self.request.namespace != own;
                if !is_of_tenant(reference) || reference.namespace == own || is_elsewhere {
                    return Ok(());
                }
                let message = format!(
                    "the Template {reference} is that of another Tenant: Templates in {own} can be used"
                );
                Err(Denial::forbidden(message))
            }
            // The quota of a Workspace that does not exist is not known: that is said instead.
            QuotaScope::Workspace(name) if self.view.workspace(name).is_none() => Ok(()),
            QuotaScope::Workspace(name) => {
                let found = self.view.tenant(tenant);
                let found = found
                    .ok_or_else(|| Denial::forbidden(format!("the Tenant {tenant:?} does not exist")))?;
                if matches!(found.spec.role_in(name), Some(Role::User | Role::Manager)) {
                    return Ok(());
                }
                let message = format!("the Tenant {tenant} is not enrolled in the Workspace {name}");
                Err(Denial::forbidden(message))
            }
        }
    }

    /// The quota that Instances of a Template count against; `None` if the Template names no Workspace. A
    /// Template in the namespace of a Tenant always counts against the personal workspace, whatever Workspace
    /// it names, because users write it themselves.
    fn scope(&self, reference: &GenericRef, template: &Template) -> Option<QuotaScope> {
        let workspace = &template.spec.workspace_ref.name;
        let is_own = is_of_tenant(reference) || workspace == PERSONAL;
        if is_own && self.settings.personal_workspaces {
            return Some(QuotaScope::Personal);
        }
        (!workspace.is_empty()).then(|| QuotaScope::Workspace(workspace.clone()))
    }

    /// The use of the quota with this Instance (whose Template is `own`). All Instances of the namespace
    /// count, whatever Tenant they name, because users write the name themselves.
    fn usage(&self, scope: &QuotaScope, own: &TemplateSpec, warnings: &mut Vec<String>) -> Usage {
        let namespace = self.request.namespace.as_str();
        let name = self.request.object_name();
        let mut usage = Usage::default();
        usage.add(Some(own));
        let instances = self.view.instances(namespace);
        for other in instances.iter().filter(|other| other.spec.running && other.name() != name) {
            let label = other.label(labels::WORKSPACE);
            self.count(&mut usage, scope, other.name(), &other.spec.template_ref, label, warnings);
        }
        let is_seen = |admitted: &Admitted| {
            instances.iter().any(|other| other.name() == admitted.name && admitted.is_running(other))
        };
        for admitted in self.pending {
            if admitted.namespace == namespace && admitted.name != name && !is_seen(admitted) {
                self.count(&mut usage, scope, &admitted.name, &admitted.template, None, warnings);
            }
        }
        usage
    }

    /// Adds an Instance if it counts against the same quota. If its Template is gone, its Workspace label
    /// (`label`) decides, and without a label it counts.
    fn count(
        &self,
        usage: &mut Usage,
        scope: &QuotaScope,
        name: &str,
        reference: &GenericRef,
        label: Option<&str>,
        warnings: &mut Vec<String>,
    ) {
        if let Some(template) = self.view.template(&reference.namespace, &reference.name) {
            if self.scope(reference, &template).as_ref() == Some(scope) {
                usage.add(Some(&template.spec));
            }
            return;
        }
        let workspace = match scope {
            QuotaScope::Workspace(workspace) => workspace,
            QuotaScope::Personal => PERSONAL,
        };
        if label.is_none_or(|label| label == workspace) {
            warnings.push(format!(
                "the Template {reference} of the Instance {name} does not exist: what it uses is not counted"
            ));
            usage.add(None);
        }
    }

    /// The limits that `usage` exceeds, each as a text. Fails if the Workspace or the Tenant is missing.
    fn exceeded(&self, scope: &QuotaScope, tenant: &str, usage: &Usage) -> Result<Vec<String>, Denial> {
        match scope {
            QuotaScope::Workspace(name) => {
                let workspace = self.view.workspace(name).ok_or_else(|| {
                    Denial::forbidden(format!("the Workspace {name} does not exist, so no quota is known"))
                })?;
                // What it allows is not known: the `ResourceQuota` of the namespace is the limit.
                if workspace.malformed.is_some() {
                    return Ok(Vec::new());
                }
                Ok(Limits::from(&workspace.spec.quota).exceeded_by(usage))
            }
            QuotaScope::Personal => {
                let tenant = self.owner(tenant)?;
                match &tenant.spec.personal_workspace {
                    Some(quota) => Ok(Limits::from(quota).exceeded_by(usage)),
                    // It has no quota of its own: the `ResourceQuota` of the namespace is the limit.
                    None if tenant.spec.create_personal_workspace => Ok(Vec::new()),
                    None => Err(Denial::forbidden(format!(
                        "the Tenant {} has no personal workspace",
                        tenant.name()
                    ))),
                }
            }
        }
    }

    /// The Tenant whose personal workspace is used. It is the one that the Instance names, and the Instance
    /// must be in its namespace.
    fn owner(&self, name: &str) -> Result<Arc<Tenant>, Denial> {
        let namespace = CanonicalName::of(name).tenant_namespace();
        if namespace != self.request.namespace {
            let message = format!("the personal workspace of {name:?} is for Instances in {namespace}");
            return Err(Denial::forbidden(message));
        }
        self.view.tenant(name).ok_or_else(|| Denial::forbidden(format!("the Tenant {name:?} does not exist")))
    }
}
