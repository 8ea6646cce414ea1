//! The reconciler of Workspaces.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::plan;
use super::report::{REASONS, STATUS, report};
use super::stores::Stores;
use crate::api::labels;
use crate::api::workspace::{SubscriptionStatus, WorkspaceKind};
use crate::config::{Managers, read};
use crate::controllers::accounts::internal_errors::{internal_error, start_series};
use crate::controllers::accounts::work::AccountWork;
use crate::controllers::accounts::{Accounts, KEYCLOAK};
use crate::controllers::setup::{Definition, Notice, Setup};
use crate::controllers::shared::problems;
use crate::controllers::shared::responsibility::Responsibility;
use crate::runtime::ObjectKey;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{self, Counter, EffectOutcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Reconciles Workspaces: their namespaces, RBAC, and enrolments.
pub struct WorkspaceReconciler {
    stores: Arc<Stores>,
    /// Roles in Keycloak; `None` if Keycloak is not configured.
    accounts: Option<(AccountWork<Effect>, Accounts)>,
}

/// The settings that plans and reports depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The Workspaces that this daemon is responsible for.
    pub responsibility: Responsibility,
    /// Whether Keycloak is configured.
    pub has_keycloak: bool,
    /// How long a problem outside the Workspace must last to make it `Stalled`.
    pub stalled_after: Duration,
    /// Where managers have rights on Instances.
    pub managers: Managers,
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
        let (responsibility, accounts) = (Responsibility::of(setup), setup.accounts());
        start_series(Self::NAME, &REASONS);
        let managers = *read!(setup.config, controllers.tenant.managers);
        let stores = Arc::new(Stores::declare(set, &responsibility, managers));
        setup.censuses.push(stores.census());
        let waiting = Arc::clone(&stores);
        let sentence = move || waiting.not_by_course();
        setup.notices.push(Notice { name: "managersByCourse", sentence: Box::new(sentence) });
        let stalled_after = read!(setup.config, controllers.instance.stalled_after).get();
        let settings = Settings { responsibility, has_keycloak: accounts.is_some(), stalled_after, managers };
        let accounts = accounts.map(|accounts| (AccountWork::new(&accounts.outage, set.queue()), accounts));
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

    fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, Settings, Effect>) -> Report<WorkspaceKind> {
        report(done)
    }

    fn status_error() -> Option<Counter> {
        Some(internal_error(Self::NAME, STATUS))
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }

    async fn perform(&self, observed: &Observed, effect: &Effect) -> EffectOutcome<()> {
        let Some((work, accounts)) = &self.accounts else { return EffectOutcome::done(()) };
        let (accounts, wanted) = (accounts.clone(), effect.clone());
        let workspace = observed.workspace.name().to_owned();
        let changed = async move {
            let result = match wanted {
                Effect::EnsureRoles { pretty_name } => {
                    accounts.ensure_workspace(&workspace, &pretty_name).await
                }
                Effect::RemoveRoles => accounts.remove_workspace(&workspace).await,
            };
            (result.is_ok().then_some(()), result.err())
        };
        work.perform(&*observed.workspace, effect, is_settled(observed), changed).await
    }

    fn forget(&self, key: &ObjectKey) {
        if let Some((work, _)) = &self.accounts {
            work.forget(key);
        }
    }
}

/// Whether the roles of a Workspace were up to date after the last reconcile of its spec.
fn is_settled(observed: &Observed) -> bool {
    let workspace = &observed.workspace;
    let is_known = workspace.status.subscription.get(KEYCLOAK) == Some(&SubscriptionStatus::Ok);
    is_known && !workspace.is_terminating() && problems::is_observed(workspace, &workspace.status.conditions)
}
