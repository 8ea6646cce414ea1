//! The input of the plan and the report of a Template.

use std::collections::BTreeMap;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::requirements::{Cluster, VolumeState};
use crate::api::{GenericRef, Template, Workspace};

/// The complete input of plan and report, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Template.
    #[as_ref(Template)]
    #[as_mut]
    pub template: Arc<Template>,
    /// The Workspace whose quota its Instances use.
    pub workspace: Option<Arc<Workspace>>,
    /// The states of the shared volumes that it mounts.
    pub volumes: BTreeMap<GenericRef, VolumeState>,
    /// The parts of the cluster that environments need.
    pub cluster: Arc<Cluster>,
    /// Whether any namespace has the import Secret of CDI.
    pub has_import_secret: bool,
}
