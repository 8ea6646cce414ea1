//! Texts that depend on values of the API.

use super::template::table_key;
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::promise::End;
use crate::api::why::Because;

table_key! {
    /// How and why a machine ends.
    pub enum Ending {
        /// It is not in use and is stopped.
        UnusedStopped,
        /// It is not in use and is deleted.
        UnusedDeleted,
        /// It is not in use; its Template, which decides, is unknown.
        Unused,
        /// It stays off and is deleted.
        Off,
        /// It reaches its maximum age and is deleted.
        Age,
    }
}

impl Ending {
    /// The ending at a deadline.
    pub const fn of(end: Option<End>, because: Because) -> Self {
        match (because, end) {
            (Because::Unused, Some(End::Stopped)) => Self::UnusedStopped,
            (Because::Unused, Some(End::Deleted)) => Self::UnusedDeleted,
            (Because::Unused, None) => Self::Unused,
            (Because::Off, _) => Self::Off,
            (Because::Age, _) => Self::Age,
        }
    }
}

table_key! {
    /// The progress of an image.
    pub enum Progress {
        /// Not begun.
        Waiting,
        /// In progress.
        Processing,
        /// Completed.
        Completed,
        /// Failed.
        Failed,
        /// A newer version of the daemon wrote a phase that this one does not know.
        Unknown,
    }
}

impl From<&SnapshotPhase> for Progress {
    fn from(phase: &SnapshotPhase) -> Self {
        match phase {
            SnapshotPhase::Pending | SnapshotPhase::Unset => Self::Waiting,
            SnapshotPhase::Processing => Self::Processing,
            SnapshotPhase::Completed => Self::Completed,
            SnapshotPhase::Failed => Self::Failed,
            SnapshotPhase::Other(_) => Self::Unknown,
        }
    }
}
