//! The reconciler of Workspaces.

use std::collections::BTreeMap;

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::labels;
use crate::api::workspace::WorkspaceKind;
use crate::controllers::shared::accounts::{self, Accounts};
use crate::controllers::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::{self, EffectOutcome, PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Reconciles Workspaces: their namespaces, RBAC, and enrolments.
pub struct WorkspaceReconciler {
    stores: Stores,
    /// Roles in Keycloak; `None` where it is not configured.
    accounts: Option<Accounts>,
}

/// The settings that plans and reports depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The selector of this daemon.
    pub selector: BTreeMap<String, String>,
    /// Whether Keycloak is configured.
    pub has_keycloak: bool,
}

/// The effects in Keycloak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Create the roles of the Workspace, or update their descriptions.
    EnsureRoles {
        /// `spec.prettyName`.
        pretty_name: String,
    },
    /// Delete the roles of the Workspace.
    RemoveRoles,
}

impl reconciler::Effect for Effect {
    type Result = ();
}

impl Definition for WorkspaceReconciler {
    const EVENT_SOURCE: &'static str = "Workspace";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let (selector, accounts) = (setup.config.selector.clone(), setup.accounts.clone());
        let stores = Stores::declare(set, &selector);
        let settings = Settings { selector, has_keycloak: accounts.is_some() };
        Ok((Self { stores, accounts }, settings))
    }
}

impl Reconciler for WorkspaceReconciler {
    const NAME: &'static str = "workspace";
    const FINALIZER: Option<&'static str> = Some(labels::TENANT_FINALIZER);
    type Kind = WorkspaceKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = Effect;
    const PLAN: PlanFn<Self> = |observed, settings, _| plan(observed, settings);
    const REPORT: ReportFn<Self> = report;

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }

    async fn perform(&self, observed: &Observed, effect: &Effect) -> EffectOutcome<()> {
        let Some(accounts) = &self.accounts else { return EffectOutcome::done(()) };
        let workspace = observed.workspace.name();
        let result = match effect {
            Effect::EnsureRoles { pretty_name } => accounts.ensure_workspace(workspace, pretty_name).await,
            Effect::RemoveRoles => accounts.remove_workspace(workspace).await,
        };
        EffectOutcome { result: Some(()), error: result.err().map(accounts::effect_error) }
    }
}
