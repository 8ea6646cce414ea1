//! The state of a machine, as shown to students.

use super::texts::template::table_key;
use crate::api::Instance;
use crate::api::instance::{EnvironmentStatus, InstancePhase as Phase};

table_key! {
    /// The state of a machine, or of one of its environments.
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
}

impl Standing {
    /// Returns its mark: `good` if the machine can be used, `busy` during a change, `quiet` without a change, `bad` if a
    /// person has to act.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Ready => "good",
            Self::New
            | Self::Importing
            | Self::Starting
            | Self::Running
            | Self::Stopping
            | Self::Deleting => "busy",
            Self::Off | Self::Unknown => "quiet",
            Self::Quota | Self::Failed | Self::Blocked => "bad",
        }
    }

    /// Whether the machine starts.
    pub const fn is_start(self) -> bool {
        matches!(self, Self::New | Self::Importing | Self::Starting | Self::Running)
    }

    /// Whether the machine should run, but is not ready.
    pub const fn is_unready(self) -> bool {
        self.is_start() || matches!(self, Self::Quota | Self::Failed | Self::Blocked)
    }

    /// Returns the state of an Instance. The requested state counts before the daemon has processed it, so that a user
    /// who clicks a button sees the effect immediately.
    pub fn of(instance: &Instance) -> Self {
        if instance.is_terminating() {
            return Self::Deleting;
        }
        let parts = &instance.status.environments;
        let is_behind = |part: &EnvironmentStatus| {
            matches!(part.phase, Phase::Unset | Phase::Importing | Phase::Starting)
        };
        match (instance.spec.running, Self::of_phase(&instance.status.phase)) {
            (true, Self::Off) => Self::Starting,
            // The phase says that some of the parts run.
            (true, Self::Running) if parts.iter().any(is_behind) => Self::Starting,
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
}
