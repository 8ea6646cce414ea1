//! The state of a machine, as a student needs to know it.

use crate::api::Instance;
use crate::api::instance::InstancePhase as Phase;

/// The state of a machine, or of one of its environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was not looked at yet.
    New,
    /// Its disk is being filled.
    Importing,
    /// It is starting.
    Starting,
    /// It runs, and is not ready yet.
    Running,
    /// It can be used.
    Ready,
    /// It is shutting down.
    Stopping,
    /// It is off.
    Off,
    /// It waits for quota.
    Quota,
    /// It has failed.
    Failed,
    /// A part of it cannot be made.
    Blocked,
    /// It is being deleted.
    Deleting,
    /// A newer version of the daemon has written a state that is not known here.
    Unknown,
}

/// How a state is marked. The mark is never the only sign: its word stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It can be used.
    Good,
    /// Something is going on.
    Busy,
    /// Nothing is going on.
    Quiet,
    /// Somebody has to do something.
    Bad,
}

impl Standing {
    #[cfg(test)]
    pub const ALL: [Self; 12] = [
        Self::New,
        Self::Importing,
        Self::Starting,
        Self::Running,
        Self::Ready,
        Self::Stopping,
        Self::Off,
        Self::Quota,
        Self::Failed,
        Self::Blocked,
        Self::Deleting,
        Self::Unknown,
    ];

    /// The state of an Instance. What its spec asks for counts before the daemon has seen it, so that who has pressed a button
    /// sees at once that something happens.
    pub fn of(instance: &Instance) -> Self {
        if instance.is_terminating() {
            return Self::Deleting;
        }
        match (instance.spec.running, Self::of_phase(&instance.status.phase)) {
            (true, Self::Off) => Self::Starting,
            (false, Self::Ready | Self::Running | Self::Starting) => Self::Stopping,
            (_, standing) => standing,
        }
    }

    /// The state of a phase.
    pub fn of_phase(phase: &Phase) -> Self {
        match phase {
            Phase::Unset => Self::New,
            Phase::Importing => Self::Importing,
            Phase::Starting => Self::Starting,
            Phase::ResourceQuotaExceeded => Self::Quota,
            Phase::Running => Self::Running,
            Phase::Ready => Self::Ready,
            Phase::Stopping => Self::Stopping,
            Phase::Off => Self::Off,
            Phase::Failed => Self::Failed,
            Phase::CreationLoopBackoff => Self::Blocked,
            Phase::Other(_) => Self::Unknown,
        }
    }

    /// How it is marked.
    pub const fn tone(self) -> Tone {
        match self {
            Self::Ready => Tone::Good,
            Self::New
            | Self::Importing
            | Self::Starting
            | Self::Running
            | Self::Stopping
            | Self::Deleting => Tone::Busy,
            Self::Off | Self::Unknown => Tone::Quiet,
            Self::Quota | Self::Failed | Self::Blocked => Tone::Bad,
        }
    }
}
