//! One pass over a Tenant: observe, plan, apply, report.

use std::sync::Arc;

use metrics::counter;

use super::Settings;
use super::drive;
use super::enrolment::Enrolment;
use super::observe::{Account, Observed};
use super::plan::{CLUSTER, PERSONAL, PERSONAL_WORKSPACE, SANDBOX, deletion, plan};
use super::quota::QUOTA;
use super::report::{KEYCLOAK, report};
use super::world::World;
use crate::api::Kind;
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::api::template::TemplateKind;
use crate::clients::keycloak::KeycloakError;
use crate::controllers::accounts::{Accounts, Synchronized};
use crate::controllers::children::{holds_finalizer, remove_finalizer};
use crate::kinds::NamespaceKind;
use crate::runtime::ObjectKey;
use crate::runtime::apply::Failure;
use crate::runtime::clock;
use crate::runtime::controller::{Pass, Reconciler};
use crate::runtime::desk::Desk;
use crate::runtime::error::ApiError;
use crate::runtime::plan::{KindInfo, Plan};
use crate::runtime::queue::Action;

/// The loop.
pub struct Room {
    /// What it reads.
    pub world: Arc<World>,
    /// What it writes with.
    pub desk: Desk,
    /// Accounts and roles of users, where Keycloak is configured.
    pub accounts: Option<Accounts>,
    /// Its settings.
    pub settings: Arc<Settings>,
}

impl Reconciler for Room {
    const NAME: &'static str = "tenant";

    async fn reconcile(&self, key: &ObjectKey) -> Pass {
        let Some(observed) = self.world.observe(key, Account::Off) else { return Pass::done(Action::Forget) };
        if observed.tenant.is_terminating() {
            return self.delete(&observed).await;
        }
        let account = self.account(&observed).await;
        let Some(observed) = self.world.observe(key, account.clone()) else {
            return Pass::done(Action::Forget);
        };
        let mut plan = plan(&observed, &self.settings, clock::now());
        let mut failures = self.confirm_empty(&mut plan).await;
        failures.extend(self.desk.engine.apply(&plan).await);
        if failures.iter().any(|failure| failure.error == ApiError::NotLeader) {
            return Pass::done(Action::AwaitChange);
        }
        // Observed again: with the answers to what has been written.
        let Some(observed) = self.world.observe(key, account) else { return Pass::done(Action::Forget) };
        let report = report(&observed, &self.settings, &plan, &failures, clock::now());
        count(&observed, &plan, &failures);
        if let Err(error) = self.desk.tell(&observed.tenant, &report.events, &report.status).await {
            return match error {
                // Deleted meanwhile: the store will say.
                ApiError::NotFound(_) | ApiError::NotLeader => Pass::done(Action::AwaitChange),
                error => {
                    internal_error("status");
                    Pass::failed(format!("status: {error}"))
                }
            };
        }
        self.outcome(key, &observed, &plan, &failures)
    }
}

impl Room {
    /// The account in Keycloak, brought to where it should be. Of a Tenant that cannot be read nothing
    /// is known that could be written there.
    async fn account(&self, observed: &Observed) -> Account {
        let tenant = &observed.tenant;
        let Some(accounts) = self.accounts.as_ref().filter(|_| tenant.malformed.is_none()) else {
            return Account::Off;
        };
        Account::On(accounts.synchronize(tenant, &Enrolment::of(observed).roles()).await)
    }

    /// Asks the API server itself whether a namespace that is to be deleted is empty: the stores may be
    /// late by a moment, in which a user has logged in and made something.
    async fn confirm_empty(&self, plan: &mut Plan) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut confirmed = Vec::new();
        for removal in std::mem::take(&mut plan.remove) {
            let personal = removal.kind == KindInfo::of::<NamespaceKind>() && removal.component == PERSONAL;
            let empty = if personal { self.is_empty(&removal.key.name).await } else { Ok(true) };
            match empty {
                Ok(true) => confirmed.push(removal),
                // The store will say what is there.
                Ok(false) => {}
                Err(error) => failures.push(Failure {
                    component: "check-keep-alive".to_owned(),
                    kind: InstanceKind::KIND,
                    name: removal.key.name,
                    error,
                }),
            }
        }
        plan.remove = confirmed;
        failures
    }

    async fn is_empty(&self, namespace: &str) -> Result<bool, ApiError> {
        let own_templates = self.settings.config.personal_workspace.enabled;
        Ok(self.desk.engine.is_empty(KindInfo::of::<InstanceKind>(), namespace).await?
            && (!own_templates
                || self.desk.engine.is_empty(KindInfo::of::<TemplateKind>(), namespace).await?))
    }

    /// A pass over a Tenant that is being deleted. Everything is tried; it can go when all has worked.
    async fn delete(&self, observed: &Observed) -> Pass {
        if !holds_finalizer(&observed.tenant, labels::TENANT_FINALIZER) {
            return Pass::done(Action::AwaitChange);
        }
        let plan = deletion(observed, &self.settings);
        let (failures, account) =
            futures::join!(self.desk.engine.apply(&plan), self.remove_account(observed));
        if failures.iter().any(|failure| failure.error == ApiError::NotLeader)
            || account == Err(KeycloakError::NotLeader)
        {
            return Pass::done(Action::AwaitChange);
        }
        let key = ObjectKey::of(&observed.tenant);
        let Some(mut observed) = self.world.observe(&key, Account::Off) else {
            return Pass::done(Action::Forget);
        };
        if failures.is_empty() && account.is_ok() {
            let Some(patch) = remove_finalizer(&observed.tenant, labels::TENANT_FINALIZER) else {
                return Pass::done(Action::AwaitChange);
            };
            return match self.desk.engine.patch(&patch).await {
                Ok(()) | Err(ApiError::NotFound(_) | ApiError::NotLeader) => Pass::done(Action::AwaitChange),
                Err(error) => Pass::failed(format!("finalizer: {error}")),
            };
        }
        if let Err(error) = account {
            observed.account = Account::On(Synchronized { user: None, error: Some(error) });
        }
        let report = report(&observed, &self.settings, &plan, &failures, clock::now());
        count(&observed, &plan, &failures);
        if let Err(error) = self.desk.tell(&observed.tenant, &report.events, &report.status).await {
            return Pass::failed(format!("status: {error}"));
        }
        self.outcome(&key, &observed, &plan, &failures)
    }

    async fn remove_account(&self, observed: &Observed) -> Result<(), KeycloakError> {
        match &self.accounts {
            Some(accounts) => accounts.remove_user(&observed.tenant).await,
            None => Ok(()),
        }
    }

    /// When the Tenant is wanted next.
    fn outcome(&self, key: &ObjectKey, observed: &Observed, plan: &Plan, failures: &[Failure]) -> Pass {
        let mut errors: Vec<String> = failures.iter().map(ToString::to_string).collect();
        if let Account::On(Synchronized { error: Some(error), .. }) = &observed.account {
            errors.push(error.to_string());
        }
        if !errors.is_empty() {
            return Pass::failed(errors.join("; "));
        }
        Pass::done(self.desk.rest(key, plan.requeue))
    }
}

/// `tenant_operator_internal_errors`, with the reasons of 05 §1 and §15 row 26.
fn count(observed: &Observed, plan: &Plan, failures: &[Failure]) {
    let planned =
        plan.problems.iter().filter(|problem| !problem.waiting).map(|problem| problem.component.as_str());
    let failed = failures.iter().map(|failure| failure.component.as_str());
    for component in planned.chain(failed) {
        internal_error(match component {
            CLUSTER => "cluster-resources",
            QUOTA => "quota-forge",
            PERSONAL if plan.remove.is_empty() => "create-personal-namespace",
            PERSONAL => "delete-personal-namespace",
            PERSONAL_WORKSPACE => "handle-personal-workspace",
            SANDBOX => "sandbox-resources",
            drive::MY_DRIVE | drive::SECRET => "mydrive",
            "check-keep-alive" => "check-keep-alive",
            _ => "labels",
        });
    }
    for _ in &Enrolment::of(observed).failing {
        internal_error("workspace-not-exist");
    }
    if matches!(&observed.account, Account::On(Synchronized { error: Some(_), .. })) {
        internal_error(KEYCLOAK);
    }
}

fn internal_error(reason: &'static str) {
    counter!("tenant_operator_internal_errors", "controller" => Room::NAME, "reason" => reason).increment(1);
}
