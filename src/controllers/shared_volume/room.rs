//! One pass over a shared volume: observe, plan, apply, report.

use std::sync::Arc;
use std::time::Duration;

use super::observe::{Observed, is_protected};
use super::plan::plan;
use super::report::{QUOTA, Report, leaving, report};
use super::world::World;
use crate::api::labels;
use crate::config::SharedVolumeConfig;
use crate::controllers::children::remove_finalizer;
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::controller::{Pass, Reconciler};
use crate::runtime::desk::Desk;
use crate::runtime::error::ApiError;
use crate::runtime::queue::Action;

/// How long a claim that a quota refused is left alone at most (B-SV-2): no watch tells when there is room.
const PATIENCE: Duration = Duration::from_mins(1);

/// The loop.
pub struct Room {
    /// What it reads.
    pub world: Arc<World>,
    /// What it writes with.
    pub desk: Desk,
    /// What it depends on.
    pub config: Arc<SharedVolumeConfig>,
}

impl Reconciler for Room {
    const NAME: &'static str = "sharedVolume";

    async fn reconcile(&self, key: &ObjectKey) -> Pass {
        let Some(observed) = self.world.observe(key) else { return Pass::done(Action::Forget) };
        if observed.volume.is_terminating() {
            return self.leave(&observed).await;
        }
        let plan = plan(&observed, &self.config);
        let failures = self.desk.engine.apply(&plan).await;
        if failures.iter().any(|failure| failure.error == ApiError::NotLeader) {
            return Pass::done(Action::AwaitChange);
        }
        // Observed again: with the answers to what has been written.
        let Some(observed) = self.world.observe(key) else { return Pass::done(Action::Forget) };
        let report = report(&observed, &plan, &failures, clock::now());
        if let Err(pass) = self.tell(&observed, &report).await {
            return pass;
        }
        let of_quota = |error: &ApiError| error.reason() == QUOTA;
        let errors: Vec<String> =
            failures.iter().filter(|failure| !of_quota(&failure.error)).map(ToString::to_string).collect();
        if !errors.is_empty() {
            return Pass::failed(errors.join("; "));
        }
        let sooner = failures.iter().any(|failure| of_quota(&failure.error)).then_some(PATIENCE);
        Pass::done(self.desk.rest(key, sooner))
    }
}

impl Room {
    /// Lets a volume go that nobody uses; says who uses one that somebody does.
    async fn leave(&self, observed: &Observed) -> Pass {
        let is_used = !observed.templates.is_empty() || !observed.instances.is_empty();
        if is_protected(&observed.volume) && is_used {
            let told = self.tell(observed, &leaving(observed, clock::now())).await;
            return told.err().unwrap_or_else(|| Pass::done(Action::AwaitChange));
        }
        match remove_finalizer(&observed.volume, labels::SHARED_VOLUME_FINALIZER) {
            None => Pass::done(Action::AwaitChange),
            Some(patch) => match self.desk.engine.patch(&patch).await {
                Ok(()) | Err(ApiError::NotFound(_) | ApiError::NotLeader) => Pass::done(Action::AwaitChange),
                Err(error) => Pass::failed(format!("finalizer: {error}")),
            },
        }
    }

    /// Tells what is new; how the pass ends if that fails.
    async fn tell(&self, observed: &Observed, report: &Report) -> Result<(), Pass> {
        match self.desk.tell(&observed.volume, &report.events, &report.status).await {
            Ok(_) => Ok(()),
            // Deleted meanwhile: the store will say.
            Err(ApiError::NotFound(_) | ApiError::NotLeader) => Err(Pass::done(Action::AwaitChange)),
            Err(error) => Err(Pass::failed(format!("status: {error}"))),
        }
    }
}
