//! The input of the plan and the report of a mirror.

use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::kinds::{MirrorClaim, MirrorVolume, Namespace};

/// The complete input of plan and report, except the settings and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The claim; without a uid if it does not exist.
    #[as_ref(MirrorClaim)]
    #[as_mut]
    pub claim: Arc<MirrorClaim>,
    /// Whether this daemon is responsible for its namespace.
    pub is_selected: bool,
    /// Its namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// The claim that it mirrors.
    pub origin: Option<Arc<MirrorClaim>>,
    /// The `PersistentVolume` of the origin.
    pub source: Option<Arc<MirrorVolume>>,
    /// The reclaim policy of its storage class; empty if the class does not exist.
    pub reclaim_policy: String,
    /// The `PersistentVolume`s that this provisioner has created for claims of this name.
    pub volumes: Vec<Arc<MirrorVolume>>,
    /// The last reason of this process for giving it no volume.
    pub told: Option<String>,
}
