//! What the automation does next with an Instance, and when.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::instance::InstanceStatus;
use crate::api::promise::{End, Promise};
use crate::api::template::{NEVER, Template};

/// What happens next for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The reason.
    pub because: Because,
    /// What is done with the Instance; `None` where it is stopped or deleted, and its Template, which says which of the two,
    /// could not be read.
    pub end: Option<End>,
    /// When that is done, or what comes before it.
    pub next: Next,
    /// The warnings that its Tenant had; `None` if none.
    pub warned: Option<Warned>,
}

/// Why an Instance is stopped or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It runs, and nobody uses it.
    Unused,
    /// It stays stopped.
    Off,
    /// It is so old.
    Age,
}

/// When an Instance is stopped or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Not before this time, which may have passed.
    End(Time),
    /// After the warnings, of which the next one is due at this time.
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
    /// By which steps are sorted: what is done comes before warnings, and of both the earlier.
    pub fn order(&self) -> (bool, Time) {
        (matches!(self.next, Next::Warning(_)), self.next.at().clone())
    }
}

/// The warnings that the Tenant had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warned {
    /// How many.
    pub times: i64,
    /// When the mail server accepted the last one.
    pub last: Time,
}

/// A time after which a Template has Instances stopped or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// What is so long.
    pub because: Because,
    /// What is done then.
    pub end: End,
    /// The time, as the Template says it, such as `7d`.
    pub after: String,
}

/// The next steps. What an Instance without data comes to that nobody uses is known by its Template.
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

/// The times of a Template that are not never.
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
