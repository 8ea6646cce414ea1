//! The state of a shared volume, as shown to its managers.

use crate::api::shared_volume::{SharedVolume, SharedVolumePhase};
use crate::controllers::dashboard::texts::template::table_key;

table_key! {
    /// The state of a shared volume.
    pub enum VolumeState {
        /// Not processed yet, or its claim waits for storage.
        Waiting,
        /// The folder is being prepared.
        Preparing,
        /// It can be mounted.
        Ready,
        /// The quota of the course is used up.
        Quota,
        /// It cannot be prepared.
        Failed,
        /// It is deleted once nothing mounts it.
        Deleting,
        /// A newer version of the daemon wrote a phase that this one does not know.
        Unknown,
    }
}

impl VolumeState {
    /// Returns its mark, as that of a machine.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Ready => "good",
            Self::Waiting | Self::Preparing | Self::Deleting => "busy",
            Self::Quota | Self::Failed => "bad",
            Self::Unknown => "quiet",
        }
    }

    /// Returns the state of a volume.
    pub fn of(volume: &SharedVolume) -> Self {
        if volume.is_terminating() {
            return Self::Deleting;
        }
        match &volume.status.phase {
            SharedVolumePhase::Unset | SharedVolumePhase::Pending => Self::Waiting,
            SharedVolumePhase::Provisioning => Self::Preparing,
            SharedVolumePhase::Ready => Self::Ready,
            SharedVolumePhase::Deleting => Self::Deleting,
            SharedVolumePhase::ResourceQuotaExceeded => Self::Quota,
            SharedVolumePhase::Error => Self::Failed,
            SharedVolumePhase::Other(_) => Self::Unknown,
        }
    }
}
