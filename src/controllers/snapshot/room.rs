//! One pass over a snapshot: observe, step, apply, report.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::job;
use super::observe::Observed;
use super::report::report;
use super::step::{Export, PATIENCE, Step, step};
use super::world::World;
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::api::template::TemplateKind;
use crate::config::SnapshotConfig;
use crate::controllers::children::patch_of;
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::controller::{Pass, Reconciler};
use crate::runtime::desk::Desk;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;
use crate::runtime::queue::Action;

/// How long a snapshot that waits is left alone at most: nearly all that it waits for wakes it.
const WAIT: Duration = Duration::from_mins(1);

/// The loop.
pub struct Room {
    /// What it reads.
    pub world: Arc<World>,
    /// What it writes with.
    pub desk: Desk,
    /// What it depends on.
    pub config: Arc<SnapshotConfig>,
}

impl Reconciler for Room {
    const NAME: &'static str = "snapshot";

    async fn reconcile(&self, key: &ObjectKey) -> Pass {
        match self.pass(key).await {
            Ok(next) => Pass::done(next),
            // Deleted meanwhile, or not ours to write: the store will say.
            Err(ApiError::NotFound(_) | ApiError::NotLeader) => Pass::done(Action::AwaitChange),
            Err(error) => Pass::failed(error.to_string()),
        }
    }
}

impl Room {
    async fn pass(&self, key: &ObjectKey) -> Result<Action, ApiError> {
        let Some(observed) = self.world.observe(key) else { return Ok(Action::Forget) };
        if observed.snapshot.is_terminating() {
            // The garbage collector has the Job.
            return Ok(Action::AwaitChange);
        }
        let step = self.certain(key, &observed).await?;
        match &step {
            Step::Ended => return Ok(Action::AwaitChange),
            Step::Export(export) => return self.export(key, &observed, export).await,
            Step::Refuse(_) | Step::Fail(_) => self.remember(&observed).await?,
            _ => {}
        }
        self.tell(key, &step).await?;
        Ok(match step {
            Step::Wait { .. } => self.desk.rest(key, Some(WAIT)),
            Step::Running { starved: false, .. } => {
                self.desk.rest(key, Some(Duration::from_secs(PATIENCE.unsigned_abs())))
            }
            Step::Running { .. } => self.desk.rest(key, None),
            _ => Action::AwaitChange,
        })
    }

    /// The next step. A refusal is final, so it is not made on what a watch may be late with: the Instance
    /// has just been stopped, or the Template made.
    async fn certain(&self, key: &ObjectKey, observed: &Observed) -> Result<Step, ApiError> {
        let first = step(observed, &self.config, clock::now());
        if !matches!(first, Step::Refuse(_)) {
            return Ok(first);
        }
        let (instance, template) = World::references(observed);
        self.desk.engine.refresh(KindInfo::of::<InstanceKind>(), &instance).await?;
        if let Some(template) = template {
            self.desk.engine.refresh(KindInfo::of::<TemplateKind>(), &template).await?;
        }
        let again = self.world.observe(key);
        Ok(again.map_or(Step::Ended, |observed| step(&observed, &self.config, clock::now())))
    }

    /// Makes the Job. That it is about to be made is written before: nobody whose view of the snapshot is
    /// out of date gets any further.
    async fn export(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        export: &Export,
    ) -> Result<Action, ApiError> {
        self.tell(key, &Step::Export(export.clone())).await?;
        let failures = self.desk.engine.apply(&job::plan(observed, &self.config, export)).await;
        let Some(failure) = failures.into_iter().next() else {
            let destination = export.destination.clone();
            self.tell(key, &Step::Running { destination, starved: false }).await?;
            return Ok(self.desk.rest(key, Some(Duration::from_secs(PATIENCE.unsigned_abs()))));
        };
        match failure.error {
            ApiError::QuotaExceeded(ref message) => {
                let message = format!("the Job cannot be made: {message}");
                self.tell(key, &Step::Wait { reason: "ResourceQuotaExceeded", message }).await?;
                Ok(self.desk.rest(key, Some(WAIT)))
            }
            ApiError::Invalid(_) | ApiError::NameConflict { .. } => {
                self.remember(observed).await?;
                self.tell(key, &Step::Refuse(failure.to_string())).await?;
                Ok(Action::AwaitChange)
            }
            error => Err(error),
        }
    }

    /// Writes on the snapshot for which spec it failed: it is looked at again when that has changed.
    async fn remember(&self, observed: &Observed) -> Result<(), ApiError> {
        let snapshot = &observed.snapshot;
        let generation = snapshot.metadata.generation.unwrap_or_default().to_string();
        let annotations = json!({labels::SNAPSHOT_OBSERVED_GENERATION: generation});
        match patch_of(snapshot, &json!({"metadata": {"annotations": annotations}})) {
            Some(patch) => self.desk.engine.patch(&patch).await,
            None => Ok(()),
        }
    }

    /// Tells what is new.
    async fn tell(&self, key: &ObjectKey, step: &Step) -> Result<(), ApiError> {
        // Observed again: with the answers to what has been written.
        let Some(observed) = self.world.observe(key) else { return Ok(()) };
        let snapshot = &observed.snapshot;
        let Some(report) = report(snapshot, step, clock::now()) else { return Ok(()) };
        self.desk.tell(snapshot, &report.events, &report.status).await.map(drop)
    }
}
