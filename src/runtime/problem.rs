//! Problems: why a part of a reconcile cannot be done, for conditions, events and logs.

use super::component::Component;
use crate::api::reason::Reason;
use crate::api::shown;
use crate::api::template_fault::TemplateFault;

/// Invalid input, something that does not exist yet, or a request that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The component of the plan that it concerns (see [`super::plan::Desired::component`]); empty for the
    /// whole object.
    pub component: Component,
    /// Why, for conditions and events.
    pub reason: Reason,
    /// A sentence for the user: what is wrong, where, and what would be right.
    pub message: String,
    /// Whether it resolves without a change by anybody. Its event is then `Normal` instead of `Warning`.
    pub waiting: bool,
    /// Whether it stays until somebody edits the object itself: the condition `Stalled`.
    pub stalled: bool,
}

impl Problem {
    /// A problem that somebody has to solve at the object itself, for example invalid input.
    pub fn fault(component: Component, reason: Reason, message: impl Into<String>) -> Self {
        let message = shown::message(&message.into());
        Self { component, reason, message, waiting: false, stalled: true }
    }

    /// A problem that somebody has to solve elsewhere: an object that the spec refers to does not exist (yet), or a server
    /// refuses something.
    pub fn elsewhere(component: Component, reason: Reason, message: impl Into<String>) -> Self {
        Self { stalled: false, ..Self::fault(component, reason, message) }
    }

    /// A problem that resolves by itself.
    pub fn waiting(component: Component, reason: Reason, message: impl Into<String>) -> Self {
        Self { waiting: true, ..Self::elsewhere(component, reason, message) }
    }
}

impl From<TemplateFault> for Problem {
    fn from(TemplateFault { environment, reason, message }: TemplateFault) -> Self {
        Self::fault(environment.map_or(Component::Whole, Component::Environment), reason, message)
    }
}
