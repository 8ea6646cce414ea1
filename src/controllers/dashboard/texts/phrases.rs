//! Texts that depend on values of the API.

use serde::Deserialize;

use super::super::standing::Standing;
use super::template::{Key, Template};
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::promise::End;
use crate::api::why::Because;

impl Key for Standing {
    const ALL: &'static [Self] = &Self::ALL;
}

/// How and why a machine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl Key for Ending {
    const ALL: &'static [Self] =
        &[Self::UnusedStopped, Self::UnusedDeleted, Self::Unused, Self::Off, Self::Age];
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

/// The progress of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl Key for Progress {
    const ALL: &'static [Self] =
        &[Self::Waiting, Self::Processing, Self::Completed, Self::Failed, Self::Unknown];
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

/// Why the webhook would refuse to start a machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusals {
    pub no_template: String,
    pub writes_foreign_volume: Template,
    pub of_another_tenant: String,
    pub no_tenant: String,
    pub not_enrolled: Template,
    pub no_workspace: Template,
    pub no_personal_workspace: String,
    pub elsewhere: Template,
    pub exceeded: Template,
}
