//! One pass over a Workspace: observe, plan, apply, report.

use std::sync::Arc;

use super::observe::Observed;
use super::plan::{deletion, plan};
use super::report::{Roles, report};
use super::world::World;
use crate::api::labels;
use crate::controllers::accounts::Accounts;
use crate::controllers::children::{holds_finalizer, remove_finalizer};
use crate::runtime::ObjectKey;
use crate::runtime::apply::Failure;
use crate::runtime::clock;
use crate::runtime::controller::{Pass, Reconciler};
use crate::runtime::desk::Desk;
use crate::runtime::error::ApiError;
use crate::runtime::plan::Plan;
use crate::runtime::queue::Action;

/// The loop.
pub struct Room {
    /// What it reads.
    pub world: Arc<World>,
    /// What it writes with.
    pub desk: Desk,
    /// Accounts and roles of users, where Keycloak is configured.
    pub accounts: Option<Accounts>,
}

impl Reconciler for Room {
    const NAME: &'static str = "workspace";

    async fn reconcile(&self, key: &ObjectKey) -> Pass {
        let Some(observed) = self.world.observe(key) else { return Pass::done(Action::Forget) };
        let terminating = observed.workspace.is_terminating();
        if terminating && !holds_finalizer(&observed.workspace, labels::TENANT_FINALIZER) {
            return Pass::done(Action::AwaitChange);
        }
        let plan = if terminating { deletion(&observed) } else { plan(&observed) };
        let (failures, roles) = futures::join!(self.desk.engine.apply(&plan), self.roles(&observed));
        if failures.iter().any(|failure| failure.error == ApiError::NotLeader) {
            return Pass::done(Action::AwaitChange);
        }
        // Observed again: with the answers to what has been written.
        let Some(observed) = self.world.observe(key) else { return Pass::done(Action::Forget) };
        if terminating && failures.is_empty() && !matches!(roles, Roles::Failed { .. }) {
            return self.remove_finalizer(&observed).await;
        }
        let report = report(&observed, &plan, &failures, &roles, clock::now());
        if let Err(error) = self.desk.tell(&observed.workspace, &report.events, &report.status).await {
            return match error {
                // Deleted meanwhile, or changed: the store will say, and the pass is repeated.
                ApiError::NotFound(_) | ApiError::NotLeader => Pass::done(Action::AwaitChange),
                error => Pass::failed(format!("status: {error}")),
            };
        }
        self.outcome(key, &plan, &failures, &roles)
    }
}

impl Room {
    /// The roles of the Workspace in Keycloak: made, or gone.
    async fn roles(&self, observed: &Observed) -> Roles {
        let Some(accounts) = &self.accounts else { return Roles::Off };
        let workspace = &observed.workspace;
        let result = if workspace.is_terminating() {
            accounts.remove_workspace(workspace.name()).await
        } else {
            accounts.ensure_workspace(workspace.name(), &workspace.spec.pretty_name).await
        };
        match result {
            Ok(()) => Roles::Ready,
            Err(error) => Roles::Failed { reason: error.reason(), message: error.to_string() },
        }
    }

    /// Lets the Workspace go: nothing of it is left that we have to take away.
    async fn remove_finalizer(&self, observed: &Observed) -> Pass {
        let Some(patch) = remove_finalizer(&observed.workspace, labels::TENANT_FINALIZER) else {
            return Pass::done(Action::AwaitChange);
        };
        match self.desk.engine.patch(&patch).await {
            Ok(()) | Err(ApiError::NotFound(_) | ApiError::NotLeader) => Pass::done(Action::AwaitChange),
            Err(error) => Pass::failed(format!("finalizer: {error}")),
        }
    }

    /// When the Workspace is wanted next.
    fn outcome(&self, key: &ObjectKey, plan: &Plan, failures: &[Failure], roles: &Roles) -> Pass {
        let mut errors: Vec<String> = failures.iter().map(ToString::to_string).collect();
        if let Roles::Failed { message, .. } = roles {
            errors.push(message.clone());
        }
        if !errors.is_empty() {
            return Pass::failed(errors.join("; "));
        }
        Pass::done(self.desk.rest(key, plan.requeue))
    }
}
