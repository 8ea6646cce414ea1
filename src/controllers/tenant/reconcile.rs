//! The reconciler of Tenants.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::observe::Observed;
use super::plan::plan;
use super::report::{REASONS, STATUS, report};
use super::stores::Stores;
use super::{Effect, Settings, account_events, gauges, my_drive};
use crate::api::labels;
use crate::api::tenant::TenantKind;
use crate::config::read;
use crate::controllers::accounts::internal_errors::{internal_error, start_series};
use crate::controllers::accounts::work::AccountWork;
use crate::controllers::accounts::{Accounts, Known};
use crate::controllers::setup::{Definition, Endpoint, Notice, Setup};
use crate::controllers::shared::problems;
use crate::controllers::shared::responsibility::Responsibility;
use crate::runtime::ObjectKey;
use crate::runtime::files::{self, FileCell};
use crate::runtime::object_events::ObjectEvents;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Counter, EffectOutcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Reconciles Tenants: their namespaces, quota, RBAC, volume and account.
pub struct TenantReconciler {
    stores: Arc<Stores>,
    events: ObjectEvents,
    /// Accounts and roles in Keycloak; `None` if Keycloak is not configured.
    accounts: Option<(AccountWork<Effect>, Accounts)>,
}

impl Definition for TenantReconciler {
    const EVENT_SOURCE: &'static str = "Tenant";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let accounts = setup.accounts();
        let settings = Settings {
            responsibility: Responsibility::of(setup),
            config: read!(setup.config, controllers.tenant).clone(),
            has_keycloak: accounts.is_some(),
            storage: read!(setup.config, storage).clone(),
            restricts_exams: *read!(setup.config, controllers.instance.exam_egress.enabled),
            stalled_after: read!(setup.config, controllers.instance.stalled_after).get(),
            off: setup.config.switched_off(),
        };
        start_series(Self::NAME, &REASONS);
        let stores = Arc::new(Stores::declare(set, &settings));
        setup.censuses.push(stores.census());
        let (drives, namespaces, sandboxes) = (Arc::clone(&stores), Arc::clone(&stores), Arc::clone(&stores));
        setup.notices.push(Notice { name: "myDrive", sentence: Box::new(move || drives.outside()) });
        let sentence = move || namespaces.without_instances_role();
        setup.notices.push(Notice { name: "instancesClusterRole", sentence: Box::new(sentence) });
        let sentence = move || sandboxes.without_sandbox_role();
        setup.notices.push(Notice { name: "sandboxClusterRole", sentence: Box::new(sentence) });
        setup.gauges.push(Box::new(gauges::quotas(Arc::clone(&stores))));
        account_events(setup, set, stores.exists());
        let accounts = accounts.map(|accounts| (AccountWork::new(&accounts.outage, set.queue()), accounts));
        let events = ObjectEvents::declare(&setup.events, set);
        Ok((Self { stores, events, accounts }, settings))
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        let lifetime = super::lifetime::remark(observed, settings, now);
        lifetime.into_iter().chain(settings.off.in_tenant(&observed.tenant.spec)).collect()
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

    fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, Settings, Effect>) -> Report<TenantKind> {
        report(done)
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        Some(Observed { events: self.events.of(key), ..self.stores.observe(key)? })
    }

    async fn perform(&self, observed: &Observed, effect: &Effect) -> EffectOutcome<Known> {
        let Some((work, accounts)) = &self.accounts else {
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

    fn object_events(&self) -> Option<&ObjectEvents> {
        Some(&self.events)
    }

    fn forget(&self, key: &ObjectKey) {
        if let Some((work, _)) = &self.accounts {
            work.forget(key);
        }
    }

    fn status_error() -> Option<Counter> {
        Some(internal_error(Self::NAME, STATUS))
    }
}

/// Whether the account of a Tenant was up to date after the last reconcile of its spec.
fn is_settled(observed: &Observed) -> bool {
    let (tenant, keycloak) = (&observed.tenant, &observed.tenant.status.keycloak);
    let is_known = keycloak.user_created.created && keycloak.user_synchronized;
    is_known && !tenant.is_terminating() && problems::is_observed(tenant, &tenant.status.conditions)
}

/// Registers the endpoint for Keycloak's events, whether this daemon manages the accounts or not, and watches the file
/// with the secret for their signatures.
fn account_events(
    setup: &mut Setup<'_>,
    set: &StoreSet<'_>,
    exists: impl Fn(&str) -> bool + Send + Sync + 'static,
) {
    let config = read!(setup.config, server.keycloak_events);
    let secret = (!config.secret_file.is_empty()).then(FileCell::<Vec<u8>>::default);
    setup.files.extend(secret.iter().map(|secret| {
        let parse = |content: &[u8]| files::secret(content).map(|secret| secret.as_bytes().to_vec());
        let effect = "No events of Keycloak are accepted";
        secret.watch("server.keycloakEvents.secretFile", &config.secret_file, parse, effect)
    }));
    let handler = account_events::handler(set.queue().clone(), setup.gate.clone(), secret, exists);
    setup.endpoints.push(Endpoint { name: "keycloakEvents", address: config.listen.address(), handler });
}
