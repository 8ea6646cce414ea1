//! The next steps of the automation of an Instance.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::instance::InstanceStatus;
use crate::api::promise::{End, Promise};
use crate::api::template::{NEVER, Template};

/// The next step for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The reason.
    pub because: Because,
    /// The action on the Instance; `None` if it is stopped or deleted depending on its Template, which could not be
    /// read.
    pub end: Option<End>,
    /// The time of the action, or the warning before it.
    pub next: Next,
    /// The warnings that its Tenant received; `None` for no warnings.
    pub warned: Option<Warned>,
}

/// The reason for stopping or deleting an Instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It runs and is not used.
    Unused,
    /// It stays stopped.
    Off,
    /// It has reached its maximum age.
    Age,
}

/// When an Instance is stopped or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Not before this time, which may have passed already.
    End(Time),
    /// After the warnings. The next warning is due at this time.
    Warning(Time),
}

impl Next {
    /// The time.
    pub fn at(&self) -> &Time {
        let (Self::End(time) | Self::Warning(time)) = self;
        time
    }
}

impl Step {
    /// The sort key of steps: actions come before warnings, and earlier steps before later ones.
    pub fn order(&self) -> (bool, Time) {
        (matches!(self.next, Next::Warning(_)), self.next.at().clone())
    }
}

/// The warnings that the Tenant received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warned {
    /// The number of warnings.
    pub times: i64,
    /// When the mail server accepted the last one.
    pub last: Time,
}

/// The time until a Template stops or deletes Instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The reason.
    pub because: Because,
    /// The action after the period.
    pub end: End,
    /// The period as the Template has it, such as `7d`.
    pub after: String,
}

/// The next steps. The Template determines whether an unused Instance is stopped or deleted.
pub fn next(status: &InstanceStatus, template: Option<&Template>) -> Vec<Step> {
    let unused = template.map(|template| End::of_unused(template.spec.is_persistent()));
    let steps = [
        (Because::Unused, unused, &status.inactivity),
        (Because::Off, Some(End::Deleted), &status.destruction),
        (Because::Age, Some(End::Deleted), &status.expiration),
    ];
    steps.into_iter().filter_map(|(because, end, promise)| step(because, end, promise.as_deref()?)).collect()
}

fn step(because: Because, end: Option<End>, promise: &Promise) -> Option<Step> {
    let next = match (&promise.deadline, &promise.next_warning) {
        (Some(deadline), _) => Next::End(deadline.clone()),
        (None, Some(warning)) => Next::Warning(warning.clone()),
        (None, None) => return None,
    };
    let warned = match (promise.warnings, &promise.last_warning) {
        (times @ 1.., Some(last)) => Some(Warned { times, last: last.clone() }),
        _ => None,
    };
    Some(Step { because, end, next, warned })
}

/// The periods of a Template, without periods that are never.
pub fn limits(template: &Template) -> Vec<Limit> {
    let spec = &template.spec;
    let limits = [
        (Because::Unused, End::of_unused(spec.is_persistent()), spec.max_idle()),
        (Because::Off, End::Deleted, spec.max_off()),
        (Because::Age, End::Deleted, spec.max_age()),
    ];
    let limits = limits.into_iter().filter(|(.., after)| *after != NEVER);
    limits.map(|(because, end, after)| Limit { because, end, after: after.to_owned() }).collect()
}
