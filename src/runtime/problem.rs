//! Problems: why a part of a reconcile cannot be done, for conditions, events and logs.

/// Invalid input, something that does not exist yet, or a request that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The component of the plan that it concerns (see [`super::plan::Desired::component`]); empty for the
    /// whole object.
    pub component: String,
    /// A stable word in `CamelCase` for conditions, events and metrics.
    pub reason: &'static str,
    /// A sentence for the user: what is wrong, where, and what would be right.
    pub message: String,
    /// Whether it resolves without a change by anybody. Its event is then `Normal` instead of `Warning`.
    pub waiting: bool,
}

impl Problem {
    /// A problem that somebody has to solve, for example invalid input.
    pub fn fault(component: impl Into<String>, reason: &'static str, message: impl Into<String>) -> Self {
        Self { component: component.into(), reason, message: message.into(), waiting: false }
    }

    /// A problem that resolves by itself.
    pub fn waiting(component: impl Into<String>, reason: &'static str, message: impl Into<String>) -> Self {
        Self { waiting: true, ..Self::fault(component, reason, message) }
    }
}
