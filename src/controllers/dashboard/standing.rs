//! The state of a machine, as shown to students.

use serde::Deserialize;

use crate::api::Instance;
use crate::api::instance::InstancePhase as Phase;

/// The state of a machine, or of one of its environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The daemon has not processed it yet.
    New,
    /// Its disk is being filled.
    Importing,
    /// It is starting.
    Starting,
    /// It runs, but is not ready yet.
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
    /// One of its objects cannot be created.
    Blocked,
    /// It is being deleted.
    Deleting,
    /// A newer version of the daemon wrote a state that this one does not know.
    Unknown,
}

/// The mark of a state. It is never the only sign: the word for the state is always shown next to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It can be used.
    Good,
    /// A change is in progress.
    Busy,
    /// No change is in progress.
    Quiet,
    /// A person has to act.
    Bad,
}

impl Standing {
    /// All states.
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

    /// Returns the state of an Instance. The requested state counts before the daemon has processed it, so that a user
    /// who clicks a button sees the effect immediately.
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

    /// Returns the state of a phase.
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

    /// Returns the mark of the state.
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
