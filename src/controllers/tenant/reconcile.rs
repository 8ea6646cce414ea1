//! The reconciler of Tenants.

use std::path::PathBuf;
use std::sync::PoisonError;

use jiff::Timestamp;
use tracing::warn;

use super::account_events::{self, Secret};
use super::observe::Observed;
use super::plan::plan;
use super::report::{internal_error, report};
use super::stores::Stores;
use super::{Effect, Settings};
use crate::api::labels;
use crate::api::tenant::TenantKind;
use crate::controllers::shared::accounts::{self, Accounts, Known};
use crate::controllers::{Definition, Endpoint, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::files::WatchedFile;
use crate::runtime::reconciler::{Counter, EffectOutcome, PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Reconciles Tenants: their namespaces, quota, RBAC, volume and account.
pub struct TenantReconciler {
    stores: Stores,
    /// Accounts and roles in Keycloak; `None` where it is not configured.
    accounts: Option<Accounts>,
}

impl Definition for TenantReconciler {
    const EVENT_SOURCE: &'static str = "Tenant";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let accounts = setup.accounts.clone();
        let settings = Settings {
            selector: setup.config.selector.clone(),
            config: setup.config.controllers.tenant.clone(),
            has_keycloak: accounts.is_some(),
        };
        if accounts.is_some() {
            account_events(setup, set);
        }
        Ok((Self { stores: Stores::declare(set, &settings), accounts }, settings))
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        super::lifetime::remark(observed, settings, now).into_iter().collect()
    }
}

impl Reconciler for TenantReconciler {
    const NAME: &'static str = "tenant";
    const FINALIZER: Option<&'static str> = Some(labels::TENANT_FINALIZER);
    type Kind = TenantKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = Effect;
    const PLAN: PlanFn<Self> = plan;
    const REPORT: ReportFn<Self> = report;

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }

    async fn perform(&self, observed: &Observed, effect: &Effect) -> EffectOutcome<Known> {
        let Some(accounts) = &self.accounts else { return EffectOutcome { result: None, error: None } };
        let (result, error) = match effect {
            Effect::SynchronizeAccount { roles } => {
                let synchronized = accounts.synchronize(&observed.tenant, roles).await;
                (synchronized.user, synchronized.error)
            }
            Effect::RemoveAccount => (None, accounts.remove_user(&observed.tenant).await.err()),
        };
        EffectOutcome { result, error: error.map(accounts::effect_error) }
    }

    fn status_error() -> Option<Counter> {
        Some(internal_error("status"))
    }
}

/// Registers the endpoint for the events of Keycloak, and watches the file with the secret that they are
/// signed with.
fn account_events(setup: &mut Setup<'_>, set: &StoreSet<'_>) {
    let config = &setup.config.server.keycloak_events;
    let secret = Secret::default();
    if !config.secret_file.is_empty() {
        let (name, kept) = (config.secret_file.clone(), secret.clone());
        let key = "server.keycloakEvents.secretFile";
        setup.files.push(WatchedFile::new(key, PathBuf::from(&config.secret_file), move |content| {
            let trimmed = content.map(|content| content.trim_ascii().to_vec());
            if trimmed.as_ref().is_none_or(Vec::is_empty) {
                warn!(file = name, "server.keycloakEvents.secretFile cannot be read; no event is taken");
            }
            // With an empty secret, no event is accepted.
            *kept.write().unwrap_or_else(PoisonError::into_inner) = Some(trimmed.unwrap_or_default());
        }));
    }
    let handler = account_events::handler(set.queue().clone(), setup.gate.clone(), secret);
    setup.endpoints.push(Endpoint { name: "keycloakEvents", address: config.listen.address(), handler });
}
