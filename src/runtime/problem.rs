//! Problems that prevent a part of a reconcile, for conditions, events and logs.

use super::component::Component;
use crate::api::reason::Reason;
use crate::api::requirements::Obstacle;
use crate::api::shown;
use crate::api::template_fault::TemplateFault;

/// Invalid input, a missing object, or a rejected request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The component of the plan that it belongs to (see [`super::plan::Desired::component`]); [`Component::Whole`] for
    /// the whole object.
    pub component: Component,
    /// The reason, for conditions and events.
    pub reason: Reason,
    /// A sentence for the user: what is wrong, where, and how to fix it.
    pub message: String,
    /// Whether it resolves without a change by a user. Its event is then `Normal` instead of `Warning`.
    pub waiting: bool,
    /// Whether it persists until a user edits the object itself: the condition `Stalled`.
    pub stalled: bool,
}

impl Problem {
    /// A problem that a user has to solve in the object itself, for example invalid input.
    pub fn fault(component: Component, reason: Reason, message: impl Into<String>) -> Self {
        let message = shown::message(&message.into());
        Self { component, reason, message, waiting: false, stalled: true }
    }

    /// A problem that has to be solved elsewhere: an object that the spec refers to does not exist (yet), or a server
    /// rejects a request.
    pub fn elsewhere(component: Component, reason: Reason, message: impl Into<String>) -> Self {
        Self { stalled: false, ..Self::fault(component, reason, message) }
    }

    /// A problem that resolves itself.
    pub fn waiting(component: Component, reason: Reason, message: impl Into<String>) -> Self {
        Self { waiting: true, ..Self::elsewhere(component, reason, message) }
    }
}

impl From<TemplateFault> for Problem {
    fn from(TemplateFault { environment, reason, message, .. }: TemplateFault) -> Self {
        Self::fault(environment.map_or(Component::Whole, Component::Environment), reason, message)
    }
}

impl From<Obstacle> for Problem {
    fn from(Obstacle { environment, reason, message, is_waiting }: Obstacle) -> Self {
        Self { waiting: is_waiting, ..Self::elsewhere(Component::Environment(environment), reason, message) }
    }
}
