//! Why an Instance is as it is, what happens to it next, and who may end it: the facts that `crownlabs why` and web pages tell,
//! each in its own words; and those of `crownlabs status`.
//!
//! Texts in them are as users and other programs wrote them: whoever shows one passes it through [`shown`](super::shown) first.

mod row;
mod span;
mod step;
mod warning;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use self::row::{Row, sort};
pub use self::span::span;
pub use self::step::{Because, Limit, Next, Step, Warned};
pub use self::warning::{About, Event, WARNINGS, Warning, pods_of, warnings};
use super::condition::{
    Condition, NAME_CONFLICT, PUBLIC_EXPOSURE_READY, READY, RECONCILED, STALLED, TENANT_MISMATCH,
};
use super::instance::{Instance, InstancePhase, InstanceStatus};
use super::reference::GenericRef;
use super::template::Template;
use super::tenant::{Role, Tenant};

/// The conditions that say what an Instance is in need of while they do not hold.
const NEEDED: [&str; 3] = [READY.as_str(), RECONCILED.as_str(), PUBLIC_EXPOSURE_READY.as_str()];
/// The conditions that say what is in its way while they hold.
const HINDERING: [&str; 3] = [STALLED.as_str(), NAME_CONFLICT.as_str(), TENANT_MISMATCH.as_str()];
/// The end of the message of `Ready` where another condition says more.
const REFERENCE: &str = "ee condition Reconciled";

/// What is known about an Instance.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The Instance.
    pub instance: &'a Instance,
    /// The Tenant of its namespace, if it is one's.
    pub owner: Option<&'a str>,
    /// Its Template, if it could be read.
    pub template: Option<&'a Template>,
    /// The names of the managers of its course, if they could be read.
    pub managers: Option<&'a [String]>,
    /// The warnings about its objects, or why they are not known.
    pub warnings: Result<Vec<Warning>, String>,
}

/// The state of an Instance with its reasons, its next steps, and who may end it.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// Its namespace and name.
    pub instance: GenericRef,
    /// The Tenant that it belongs to: that of its namespace, whatever its spec says.
    pub tenant: String,
    /// Its Template.
    pub template: GenericRef,
    /// Whether its spec asks for it to run.
    pub is_to_run: bool,
    /// Its phase.
    pub phase: InstancePhase,
    /// Since when its condition `Ready` has the status that it has; `None` while it has no such condition.
    pub since: Option<Time>,
    /// The URL that a browser opens; empty if there is none.
    pub url: String,
    /// Its environments, with the phase of each.
    pub environments: Vec<(String, InstancePhase)>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether the daemon has not acted on the last change of its spec yet.
    pub is_behind: bool,
    /// The conditions that keep it from being as its spec asks, each thing said once.
    pub waits: Vec<Condition>,
    /// The warnings about its objects, or why they are not known.
    pub warnings: Result<Vec<Warning>, String>,
    /// The conditions of its automation.
    pub automation: Vec<Condition>,
    /// What happens next, and when.
    pub next: Vec<Step>,
    /// The times after which its Template stops or deletes Instances, none for never; `None` where the Template could not be read.
    pub limits: Option<Vec<Limit>>,
    /// Who may stop or delete it.
    pub enders: Vec<Ender>,
}

/// Who may stop or delete an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ender {
    /// Its Tenant, of this name.
    Tenant(String),
    /// The managers of its course, by their names.
    Managers(Vec<String>),
    /// The managers of its course, whose names are not known.
    UnknownManagers,
    /// Administrators.
    Administrators,
}

impl Facts<'_> {
    /// What there is to be told of the Instance.
    pub fn why(&self) -> Why {
        let Facts { instance, template, warnings, .. } = self;
        let (spec, status) = (&instance.spec, &instance.status);
        let ready = status.conditions.iter().find(|condition| condition.type_ == READY);
        let environments = status.environments.iter();
        Why {
            instance: GenericRef::new(instance.namespace(), instance.name()),
            tenant: self.tenant().to_owned(),
            template: spec.template_ref.clone(),
            is_to_run: spec.running,
            phase: status.phase.clone(),
            since: ready.map(|ready| ready.last_transition_time.clone()),
            url: status.open_url().to_owned(),
            environments: environments.map(|one| (one.name.clone(), one.phase.clone())).collect(),
            is_terminating: instance.is_terminating(),
            is_behind: status.observed_generation < instance.metadata.generation,
            waits: waits(status),
            warnings: warnings.clone(),
            automation: automation(status),
            next: step::next(status, *template),
            limits: template.map(step::limits),
            enders: self.enders(),
        }
    }

    /// The Tenant that it belongs to.
    fn tenant(&self) -> &str {
        self.owner.unwrap_or(&self.instance.spec.tenant_ref.name)
    }

    /// The users who may end it.
    fn enders(&self) -> Vec<Ender> {
        let managers = match self.managers {
            Some([]) => None,
            Some(names) => Some(Ender::Managers(names.to_vec())),
            None => Some(Ender::UnknownManagers),
        };
        let tenant = Ender::Tenant(self.tenant().to_owned());
        [Some(tenant), managers, Some(Ender::Administrators)].into_iter().flatten().collect()
    }
}

/// The conditions that keep it from being ready.
fn waits(status: &InstanceStatus) -> Vec<Condition> {
    let is_wait = |condition: &&Condition| {
        let type_ = &*condition.type_;
        let hinders = HINDERING.contains(&type_) && condition.status == "True";
        let is_missing = NEEDED.contains(&type_) && condition.status != "True";
        (hinders || is_missing) && !condition.message.ends_with(REFERENCE)
    };
    let mut waits: Vec<Condition> = Vec::new();
    for condition in status.conditions.iter().filter(is_wait) {
        // `Stalled` and others repeat what `Reconciled` says.
        let message = condition.message.as_str();
        let is_told = |told: &Condition| told.message.contains(message) || message.contains(&*told.message);
        if !waits.iter().any(is_told) {
            waits.push(condition.clone());
        }
    }
    waits
}

/// The conditions of its automation: all others.
fn automation(status: &InstanceStatus) -> Vec<Condition> {
    let is_other = |condition: &&Condition| {
        !NEEDED.contains(&&*condition.type_) && !HINDERING.contains(&&*condition.type_)
    };
    status.conditions.iter().filter(is_other).cloned().collect()
}

/// Whether an Instance is not as its spec asks, so that warnings about its objects may say why.
pub fn is_waiting(instance: &Instance) -> bool {
    !instance.status.conditions.iter().any(|condition| condition.type_ == READY && condition.status == "True")
}

/// The names of the managers of a course, by the specs of the Tenants.
pub fn managers(tenants: &[Tenant], course: &str) -> Vec<String> {
    let manages = |tenant: &&Tenant| {
        tenant.spec.workspaces.iter().any(|entry| entry.name == course && entry.role == Role::Manager)
    };
    tenants.iter().filter(manages).map(|tenant| tenant.name().to_owned()).collect()
}

#[cfg(test)]
mod tests;
