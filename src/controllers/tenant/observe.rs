//! The input of the plan and the report of a Tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use super::Settings;
use super::names::Names;
use crate::api::tenant::Tenant;
use crate::api::workspace::Workspace;
use crate::kinds::PersistentVolume;
use crate::runtime::children::Children;

/// Everything that the plan and the status of a Tenant depend on, except the settings and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Tenant.
    #[as_ref(Tenant)]
    #[as_mut]
    pub tenant: Arc<Tenant>,
    /// Whether it is not selected any more, and still has our finalizer.
    pub is_deselected: bool,
    /// The Workspaces that its spec names and that exist, by name.
    pub workspaces: BTreeMap<String, Arc<Workspace>>,
    /// The Tenant that owns the canonical name, if it is another one with the same canonical name.
    pub name_owner: Option<String>,
    /// How many Instances are in its personal namespace.
    pub instances: usize,
    /// How many Templates are in its personal namespace.
    pub templates: usize,
    /// Whether the namespace of personal volumes exists.
    pub has_my_drive_namespace: bool,
    /// The objects with the names of its own, whoever owns them.
    pub children: Children,
    /// The `PersistentVolume` that the claim of the personal volume is bound to.
    pub volume: Option<Arc<PersistentVolume>>,
}

impl Observed {
    /// The names of the objects of the Tenant.
    pub fn names(&self) -> Names {
        Names::of(self.tenant.name())
    }

    /// Whether the e-mail address is confirmed, according to the last answer of Keycloak. Without Keycloak,
    /// it counts as confirmed.
    pub fn is_confirmed(&self, settings: &Settings) -> bool {
        !settings.has_keycloak || self.tenant.status.keycloak.user_confirmed
    }
}
