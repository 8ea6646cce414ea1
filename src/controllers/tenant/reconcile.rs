//! The reconciler of Tenants.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::account_events;
use super::gauges;
use super::my_drive;
use super::observe::Observed;
use super::plan::plan;
use super::report::{REASONS, STATUS, report};
use super::stores::Stores;
use super::{Effect, Settings};
use crate::api::labels;
use crate::api::tenant::TenantKind;
use crate::controllers::accounts::internal_errors::{internal_error, start_series};
use crate::controllers::accounts::work::AccountWork;
use crate::controllers::accounts::{Accounts, Known};
use crate::controllers::setup::{Definition, Endpoint, Setup};
use crate::controllers::shared::problems;
use crate::controllers::shared::responsibility::Responsibility;
use crate::runtime::ObjectKey;
use crate::runtime::files::FileCell;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Counter, EffectOutcome, PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Reconciles Tenants: their namespaces, quota, RBAC, volume and account.
pub struct TenantReconciler {
    stores: Arc<Stores>,
    /// Accounts and roles in Keycloak; `None` where it is not configured.
    accounts: Option<(Accounts, AccountWork<Effect>)>,
}

impl Definition for TenantReconciler {
    const EVENT_SOURCE: &'static str = "Tenant";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let accounts = setup.accounts.clone();
        let settings = Settings {
            responsibility: Responsibility::of(setup.config),
            config: setup.config.controllers.tenant.clone(),
            has_keycloak: accounts.is_some(),
        };
        start_series(Self::NAME, &REASONS);
        let stores = Arc::new(Stores::declare(set, &settings));
        setup.gauges.push(Box::new(gauges::quotas(Arc::clone(&stores))));
        account_events(setup, set, stores.exists());
        let accounts = accounts.map(|accounts| {
            let work = AccountWork::new(accounts.outage(), set.queue());
            (accounts, work)
        });
        Ok((Self { stores, accounts }, settings))
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        super::lifetime::remark(observed, settings, now).into_iter().collect()
    }

    fn foreseen(observed: &Observed, settings: &Settings, plan: &Plan<Effect>) -> Vec<Value> {
        my_drive::foreseen(observed, settings, plan).into_iter().collect()
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
        let Some((accounts, work)) = &self.accounts else {
            return EffectOutcome { result: None, error: None };
        };
        let (accounts, tenant, wanted) = (accounts.clone(), Arc::clone(&observed.tenant), effect.clone());
        let changed = async move {
            match wanted {
                Effect::SynchronizeAccount { roles } => {
                    let synchronized = accounts.synchronize(&tenant, &roles).await;
                    (synchronized.user, synchronized.error)
                }
                Effect::RemoveAccount => (None, accounts.remove_user(&tenant).await.err()),
            }
        };
        work.perform(&*observed.tenant, effect, is_settled(observed), changed).await
    }

    fn forget(&self, key: &ObjectKey) {
        if let Some((_, work)) = &self.accounts {
            work.forget(key);
        }
    }

    fn status_error() -> Option<Counter> {
        Some(internal_error(Self::NAME, STATUS))
    }
}

/// Whether the account of a Tenant was as it should be when its spec was last looked at.
fn is_settled(observed: &Observed) -> bool {
    let (tenant, keycloak) = (&observed.tenant, &observed.tenant.status.keycloak);
    let is_known = keycloak.user_created.created && keycloak.user_synchronized;
    is_known && !tenant.is_terminating() && problems::is_observed(tenant, &tenant.status.conditions)
}

/// Registers the endpoint for the events of Keycloak, which may be sent whether this daemon manages the accounts or
/// not, and watches the file with the secret that they are
/// signed with.
fn account_events(
    setup: &mut Setup<'_>,
    set: &StoreSet<'_>,
    exists: impl Fn(&str) -> bool + Send + Sync + 'static,
) {
    let config = &setup.config.server.keycloak_events;
    let secret = (!config.secret_file.is_empty()).then(FileCell::<Vec<u8>>::default);
    setup.files.extend(secret.iter().map(|secret| {
        let read = |content: &[u8]| Some(content.trim_ascii().to_vec()).filter(|secret| !secret.is_empty());
        let otherwise = "server.keycloakEvents.secretFile cannot be read; no event is taken";
        secret.watch("server.keycloakEvents.secretFile", &config.secret_file, read, otherwise)
    }));
    let handler = account_events::handler(set.queue().clone(), setup.gate.clone(), secret, exists);
    setup.endpoints.push(Endpoint { name: "keycloakEvents", address: config.listen.address(), handler });
}
