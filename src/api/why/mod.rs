//! Why an Instance is in its state, its next steps, and the users who may stop or delete it. `crownlabs why` and web
//! pages show these facts, each with its own phrases. Also the facts of `crownlabs status`.
//!
//! Texts in the facts are unchanged texts of users and other programs. Callers must pass them through
//! [`shown`](super::shown) before showing them.

mod row;
mod span;
mod step;
mod warning;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use self::row::{Row, sort};
pub use self::span::span;
pub use self::step::{Because, Limit, Next, Step, Warned};
pub use self::warning::{About, Event, WARNINGS, Warning, pods_of, warnings};
use super::condition::{
    Condition, DELETION_BLOCKED, NAME_CONFLICT, PUBLIC_EXPOSURE_READY, READY, RECONCILED, STALE, STALLED,
    TENANT_MISMATCH,
};
use super::instance::{Instance, InstancePhase, InstanceStatus};
use super::openings::{self, Way};
use super::reason::{self, Reason};
use super::reference::GenericRef;
use super::requirements::OF_CLUSTERS;
use super::template::Template;
use super::tenant::{Role, Tenant};
use super::text::Text;

/// The conditions that must hold before an object is in its desired state.
const NEEDED: [&str; 3] = [READY.as_str(), RECONCILED.as_str(), PUBLIC_EXPOSURE_READY.as_str()];
/// The conditions that report an obstacle while they hold.
const HINDERING: [&str; 5] = [
    STALLED.as_str(),
    NAME_CONFLICT.as_str(),
    TENANT_MISMATCH.as_str(),
    DELETION_BLOCKED.as_str(),
    STALE.as_str(),
];
/// A problem that no one has to act on counts once it has lasted for this time, in seconds.
const PATIENCE: i64 = 600;
/// The end of the message of `Ready` if another condition has the details.
const REFERENCE: &str = "ee condition Reconciled";

/// The known facts about an Instance.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The Instance.
    pub instance: &'a Instance,
    /// The Tenant that owns its namespace, if any.
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
    /// The Tenant that owns it: the Tenant of its namespace, regardless of the spec.
    pub tenant: String,
    /// Its Template.
    pub template: GenericRef,
    /// Whether its spec asks for it to run.
    pub is_to_run: bool,
    /// Its phase.
    pub phase: InstancePhase,
    /// When the status of its condition `Ready` last changed; `None` if it has no such condition.
    pub since: Option<Time>,
    /// The URL that a browser opens; empty if it has no URL.
    pub url: String,
    /// The way in which the dashboard opens it; `None` while it cannot be opened.
    pub opens: Option<Way>,
    /// Its environments, with the phase of each.
    pub environments: Vec<(Text, InstancePhase)>,
    /// Whether it is in the state that its present spec asks for, and is not being deleted.
    pub is_ready: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether the daemon has not acted on the last change of its spec yet.
    pub is_behind: bool,
    /// The conditions that keep it from its desired state, without repetitions.
    pub waits: Vec<Condition>,
    /// The condition `Ready` of its Template, if it is false, the Instance is to run, and its own conditions do not
    /// repeat it.
    pub template_waits: Option<Condition>,
    /// The warnings about its objects, or why they are not known.
    pub warnings: Result<Vec<Warning>, String>,
    /// The conditions of its automation.
    pub automation: Vec<Condition>,
    /// The next steps of the automation.
    pub next: Vec<Step>,
    /// The periods until its Template stops or deletes Instances, except periods of never; `None` if the Template
    /// could not be read.
    pub limits: Option<Vec<Limit>>,
    /// The users who may stop or delete it.
    pub enders: Vec<Ender>,
}

/// Users who may stop or delete an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ender {
    /// Its Tenant, with this name.
    Tenant(String),
    /// The managers of its course, with these names.
    Managers(Vec<String>),
    /// The managers of its course. Their names are not known.
    UnknownManagers,
    /// Administrators.
    Administrators,
}

impl Why {
    /// The condition that explains best why the Instance is not in its desired state. A part that the cluster lacks
    /// explains why no node runs a pod.
    pub fn cause(&self) -> Option<&Condition> {
        let is_of_cluster = |wait: &&Condition| OF_CLUSTERS.iter().any(|reason| wait.reason == *reason);
        self.waits.iter().find(is_of_cluster).or(self.waits.first())
    }
}

impl Facts<'_> {
    /// Collects the facts to show about the Instance.
    pub fn why(&self) -> Why {
        let Facts { instance, template, warnings, .. } = self;
        let (spec, status) = (&instance.spec, &instance.status);
        let ready = status.conditions.iter().find(|condition| condition.type_ == READY);
        let environments = status.environments.iter();
        let waits = waits(&status.conditions);
        let (is_terminating, is_behind) =
            (instance.is_terminating(), status.observed_generation < instance.metadata.generation);
        let of_template = template.filter(|_| spec.running).and_then(not_ready);
        let is_told = |found: &&Condition| waits.iter().any(|told| told.message.contains(&*found.message));
        let template_waits = of_template.filter(|found| !is_told(found)).cloned();
        Why {
            instance: GenericRef::new(instance.namespace(), instance.name()),
            tenant: self.tenant().to_owned(),
            template: spec.template_ref.clone(),
            is_to_run: spec.running,
            phase: status.phase.clone(),
            since: ready.map(|ready| ready.last_transition_time.clone()),
            url: status.open_url().to_owned(),
            opens: self.opens(),
            environments: environments.map(|one| (one.name.clone(), one.phase.clone())).collect(),
            is_ready: !(is_waiting(instance) || is_terminating || is_behind),
            is_terminating,
            is_behind,
            waits,
            template_waits,
            warnings: warnings.clone(),
            automation: automation(status),
            next: step::next(status, *template),
            limits: template.map(step::limits),
            enders: self.enders(),
        }
    }

    /// The way in which the dashboard opens it, if terminals and consoles are offered.
    fn opens(&self) -> Option<Way> {
        let Self { instance, template, .. } = *self;
        let facts = openings::Facts { instance, template, has_terminals: true, has_consoles: true };
        facts.connect().and_then(|(_, ways)| ways.connect)
    }

    /// The Tenant that it belongs to.
    fn tenant(&self) -> &str {
        self.owner.unwrap_or(&self.instance.spec.tenant_ref.name)
    }

    /// The users who may stop or delete it.
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

/// The conditions that keep an object with these conditions from its desired state, without repetitions.
pub fn waits(conditions: &[Condition]) -> Vec<Condition> {
    let is_wait = |condition: &&Condition| {
        let type_ = &*condition.type_;
        let hinders = HINDERING.contains(&type_) && condition.status == "True";
        let is_missing = NEEDED.contains(&type_) && condition.status != "True";
        (hinders || is_missing) && !condition.message.ends_with(REFERENCE)
    };
    let mut waits: Vec<Condition> = Vec::new();
    for condition in conditions.iter().filter(is_wait) {
        // `Stalled` and other conditions repeat the message of `Reconciled`.
        let message = condition.message.as_str();
        let is_told = |told: &Condition| told.message.contains(message) || message.contains(&*told.message);
        if !waits.iter().any(is_told) {
            waits.push(condition.clone());
        }
    }
    waits
}

/// The condition that keeps an object with these conditions from its desired state, if someone has to act on it, or if it
/// has lasted for [`PATIENCE`].
pub fn problem(conditions: &[Condition], now: Timestamp) -> Option<Condition> {
    let counts = |condition: &Condition| {
        let waits_by_itself = Reason::actors(&condition.reason).is_some_and(|roles| roles.is_empty());
        let age = now.duration_since(condition.last_transition_time.0).as_secs();
        !waits_by_itself || age >= PATIENCE
    };
    waits(conditions).into_iter().find(counts)
}

/// The condition `Ready` of a Template if it is false, because the cluster does not meet a requirement of its
/// environments.
pub fn not_ready(template: &Template) -> Option<&Condition> {
    let mut conditions = template.status.conditions.iter();
    conditions.find(|condition| condition.type_ == READY && condition.status == "False")
}

/// Whether the Template of an Instance does not exist.
pub fn lacks_template(status: &InstanceStatus) -> bool {
    let is_it = |condition: &Condition| {
        condition.type_ == RECONCILED
            && condition.status == "False"
            && condition.reason == reason::TEMPLATE_NOT_FOUND
    };
    status.conditions.iter().any(is_it)
}

/// Whether the scheduler's message about a pod says that no node is suitable, and not that the nodes are full.
pub fn is_unsuitable(message: &str) -> bool {
    let says = |words: [&str; 2]| words.into_iter().any(|words| message.contains(words));
    says(["didn't match", "untolerated taint"]) && !says(["Insufficient", "Too many pods"])
}

/// The conditions of the automation of the Instance: all remaining conditions.
fn automation(status: &InstanceStatus) -> Vec<Condition> {
    let is_other = |condition: &&Condition| {
        !NEEDED.contains(&&*condition.type_) && !HINDERING.contains(&&*condition.type_)
    };
    status.conditions.iter().filter(is_other).cloned().collect()
}

/// Whether an Instance is not in the state that its spec asks for. Warnings about its objects may then explain the
/// cause.
pub fn is_waiting(instance: &Instance) -> bool {
    !instance.status.conditions.iter().any(|condition| condition.type_ == READY && condition.status == "True")
}

/// The names of the managers of a course, from the specs of the Tenants.
pub fn managers(tenants: &[Tenant], course: &str) -> Vec<String> {
    let manages = |tenant: &&Tenant| {
        tenant.spec.workspaces.iter().any(|entry| entry.name == course && entry.role == Role::Manager)
    };
    tenants.iter().filter(manages).map(|tenant| tenant.name().to_owned()).collect()
}

#[cfg(test)]
mod tests;
