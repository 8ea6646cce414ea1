//! The time that is left until a machine is stopped or deleted.

use crate::api::Instance;
use crate::api::why::{Because, Limit, Step, Why};

/// The time that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Until the next step of the automation.
    Step(Step),
    /// The automation has not begun to count. The Template has this limit.
    Limit(Limit),
    /// There is no limit.
    Unlimited,
}

impl Left {
    /// Returns the time that is left for an Instance; `None` if it is not known.
    pub fn of(instance: &Instance, why: &Why) -> Option<Self> {
        if let Some(step) = why.next.iter().min_by_key(|step| step.order()) {
            return Some(Self::Step(step.clone()));
        }
        let other = if instance.spec.running { Because::Off } else { Because::Unused };
        let limit = why.limits.as_ref()?.iter().find(|limit| limit.because != other);
        Some(limit.map_or(Self::Unlimited, |limit| Self::Limit(limit.clone())))
    }
}
