//! The state of a machine, as shown to students.

use super::texts::template::table_key;
use crate::api::Instance;
use crate::api::instance::InstancePhase as Phase;

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
}
