//! What keeps a part of the work from being done, as users and logs are told of it.

/// Bad input, something that does not exist yet, or a request that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The component of the plan that it concerns (see [`super::plan::Desired::component`]); empty when it
    /// concerns all of them.
    pub component: String,
    /// A stable word in `CamelCase` for conditions, events and metrics.
    pub reason: &'static str,
    /// A sentence for the user: what is wrong, where, and what would be right.
    pub message: String,
    /// Whether waiting is all there is to do: the input is not at fault. Events about it are `Normal`
    /// instead of `Warning`.
    pub waiting: bool,
}

impl Problem {
    /// A fault of the input: somebody has to change something.
    pub fn fault(component: impl Into<String>, reason: &'static str, message: impl Into<String>) -> Self {
        Self { component: component.into(), reason, message: message.into(), waiting: false }
    }

    /// Something that will pass by itself.
    pub fn waiting(component: impl Into<String>, reason: &'static str, message: impl Into<String>) -> Self {
        Self { waiting: true, ..Self::fault(component, reason, message) }
    }
}
