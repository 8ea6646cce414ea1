//! One pass over an Instance: observe, plan, apply, report.

use std::sync::Arc;
use std::time::Duration;

use metrics::histogram;
use tracing::info;

use super::observe::Observed;
use super::plan::plan;
use super::report::{Report, report};
use super::world::World;
use crate::config::InstanceConfig;
use crate::runtime::ObjectKey;
use crate::runtime::apply::Failure;
use crate::runtime::clock;
use crate::runtime::controller::{Pass, Reconciler};
use crate::runtime::desk::Desk;
use crate::runtime::error::ApiError;
use crate::runtime::plan::Plan;
use crate::runtime::queue::Action;

/// A quota is asked again after this time, unless something changes before.
const QUOTA_RETRY: Duration = Duration::from_mins(1);
/// Ready times above this are not those of a start (02 §9.4).
const READY_TIME_LIMIT: i64 = 30 * 60;

/// The loop.
pub struct Room {
    /// What it reads.
    pub world: Arc<World>,
    /// What it writes with.
    pub desk: Desk,
    /// Its settings.
    pub config: Arc<InstanceConfig>,
}

impl Reconciler for Room {
    const NAME: &'static str = "instance";

    async fn reconcile(&self, key: &ObjectKey) -> Pass {
        let Some(observed) = self.world.observe(key) else { return Pass::done(Action::Forget) };
        if observed.instance.is_terminating() {
            return Pass::done(Action::AwaitChange);
        }
        let plan = plan(&observed, &self.config, clock::now());
        let failures = self.desk.engine.apply(&plan).await;
        if failures.iter().any(|failure| failure.error == ApiError::NotLeader) {
            return Pass::done(Action::AwaitChange);
        }
        // Observed again: with the answers to what has been written.
        let Some(observed) = self.world.observe(key) else { return Pass::done(Action::Forget) };
        let report = report(&observed, &self.config, &plan, &failures, clock::now());
        if let Err(error) = self.publish(&observed, report).await {
            return match error {
                // Deleted meanwhile, or changed: the store will say, and the pass is repeated.
                ApiError::NotFound(_) | ApiError::NotLeader => Pass::done(Action::AwaitChange),
                error => Pass::failed(format!("status: {error}")),
            };
        }
        self.outcome(key, &plan, &failures)
    }
}

impl Room {
    /// Tells what is new, users as well as the log and the metrics.
    async fn publish(&self, observed: &Observed, report: Report) -> Result<(), ApiError> {
        if !self.desk.tell(&observed.instance, &report.events, &report.status).await? {
            return Ok(());
        }
        let (was, is) = (&observed.instance.status.phase, &report.status.phase);
        if was != is {
            info!(instance = %ObjectKey::of(&observed.instance), from = %was, to = %is, "phase changed");
        }
        for (environment, seconds) in &report.first_ready {
            Self::observe_ready_time(observed, environment, *seconds);
        }
        Ok(())
    }

    /// `instance_initial_ready_time_second` (02 §10).
    fn observe_ready_time(observed: &Observed, environment: &str, seconds: i64) {
        let Some(template) = &observed.template else { return };
        let Some(found) = template.spec.environment_list.iter().find(|e| e.name == environment) else {
            return;
        };
        if seconds > READY_TIME_LIMIT {
            return;
        }
        let workspace = template.spec.workspace_ref.name.clone();
        histogram!(
            "instance_initial_ready_time_second",
            "workspace" => workspace,
            "template" => template.name().to_owned(),
            "environment" => environment.to_owned(),
            "type" => found.environment_type.to_string(),
            "persistent" => if found.persistent { "true" } else { "false" },
        )
        .record(f64::from(i32::try_from(seconds).unwrap_or(i32::MAX)));
    }

    /// When the Instance is wanted next.
    fn outcome(&self, key: &ObjectKey, plan: &Plan, failures: &[Failure]) -> Pass {
        let quota = failures.iter().any(|failure| matches!(failure.error, ApiError::QuotaExceeded(_)));
        let others: Vec<String> = failures
            .iter()
            .filter(|failure| !matches!(failure.error, ApiError::QuotaExceeded(_)))
            .map(ToString::to_string)
            .collect();
        if others.is_empty() {
            let quota = quota.then_some(QUOTA_RETRY);
            let sooner = plan.requeue.into_iter().chain(quota).min();
            return Pass::done(self.desk.rest(key, sooner));
        }
        Pass::failed(others.join("; "))
    }
}
