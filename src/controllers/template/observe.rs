//! The input of the plan and the report of a Template.

use std::collections::BTreeSet;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::{Template, Workspace};
use crate::kinds::Node;
use crate::runtime::ObjectKey;

/// Everything that plan and report depend on, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Template.
    #[as_ref(Template)]
    #[as_mut]
    pub template: Arc<Template>,
    /// The Workspace whose quota its Instances count against.
    pub workspace: Option<Arc<Workspace>>,
    /// Those of the shared volumes that it mounts that do not exist.
    pub missing_volumes: BTreeSet<ObjectKey>,
    /// Those of the storage classes that it names that do not exist.
    pub missing_classes: BTreeSet<String>,
    /// The nodes of the cluster.
    pub nodes: Vec<Arc<Node>>,
}
