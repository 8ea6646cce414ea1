//! The driver of all control loops. It carries out the steps of a [`Reconcile`] through the apply engine, the event
//! recorder and the [`Reconciler`].

use std::time::Duration;

use futures::future::join_all;
use futures::join;
use metrics::histogram;
use tracing::{info, warn};

use super::context::Context;
use super::controller::{ReconcileError, ReconcileKey};
use super::error::ApiError;
use super::plan::{Precondition, Removal};
use super::queue::{Action, resync};
use super::reconcile::{Answer, End, REFUSED_RETRY, Reconcile, Step};
use super::reconciler::{Counter, Reconciler, Report, labels_of};
use super::{ObjectKey, clock};

/// The first retry interval of a new leader for the objects that it must read first. It doubles each time, up to
/// [`REFUSED_RETRY`].
const FIRST_READ_RETRY: Duration = Duration::from_millis(250);

/// A reconciler with its settings, and the context that it writes through.
pub struct Driver<R: Reconciler> {
    reconciler: R,
    settings: R::Settings,
    context: Context,
}

impl<R: Reconciler> ReconcileKey for Driver<R> {
    const NAME: &'static str = R::NAME;

    async fn prepare(&self) {
        for (kind, selection) in self.reconciler.read_first() {
            let mut wait = FIRST_READ_RETRY;
            while let Err(error) = self.context.engine.read_all(kind, &selection).await {
                warn!(controller = R::NAME, %error, "the {} cannot be read; retrying", kind.plural);
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(REFUSED_RETRY);
            }
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let mut reconcile = Reconcile::<R>::new(&self.settings);
        loop {
            let answer = match reconcile.step() {
                Step::End(End::Gone) => return Ok(Action::Forget),
                Step::End(End::AwaitChange) => return Ok(Action::AwaitChange),
                Step::End(End::Again) => return Ok(Action::RequeueAfter(Duration::ZERO)),
                Step::End(End::Requeue(sooner)) => return Ok(resync(key, self.context.resync, *sooner)),
                Step::End(End::Failed(error)) => return Err(error.clone()),
                step => self.carry_out(key, step).await,
            };
            reconcile.answer(answer, clock::now());
        }
    }
}

impl<R: Reconciler> Driver<R> {
    /// Creates a driver for `reconciler` that writes through `context`.
    pub fn new(reconciler: R, settings: R::Settings, context: Context) -> Self {
        Self { reconciler, settings, context }
    }

    async fn carry_out(&self, key: &ObjectKey, step: Step<'_, R>) -> Answer<R> {
        let (reconciler, engine) = (&self.reconciler, &self.context.engine);
        match step {
            Step::Observe => return Answer::Observed(reconciler.observe(key)),
            Step::Refresh(objects) => {
                for (kind, key) in objects {
                    if let Err(error) = engine.refresh(*kind, key).await {
                        return Answer::Failed(error);
                    }
                }
            }
            Step::Check(preconditions) => return engine.check_all(preconditions).await.into(),
            Step::Apply(observed, plan) => {
                let effects = plan.effects.iter().map(|effect| reconciler.perform(observed, effect));
                let owner = Precondition::object(observed.as_ref());
                let is_planned = |removal: &Removal| self.is_planned(key, removal);
                let (applied, effects) = join!(engine.apply(plan, &owner, is_planned), join_all(effects));
                return Answer::Applied(applied, effects);
            }
            Step::Settle(observed, plan, outcome) => {
                if let Some(events) = reconciler.object_events() {
                    events.settle(key, plan.awaited.as_ref());
                }
                reconciler.settle(observed, outcome);
            }
            Step::Patch(patch) => return engine.patch(patch).await.into(),
            Step::Publish(observed, report) => return self.publish(observed, report).await.into(),
            Step::Forget => {
                if let Some(events) = reconciler.object_events() {
                    events.forget(key);
                }
                reconciler.forget(key);
            }
            Step::End(_) => {}
        }
        Answer::Done
    }

    /// Whether a plan for the current stores has this removal, too.
    fn is_planned(&self, key: &ObjectKey, removal: &Removal) -> bool {
        self.reconciler.observe(key).is_some_and(|mut observed| {
            R::complete(&mut observed, None, &self.settings);
            R::plan(&observed, &self.settings, clock::now()).remove.contains(removal)
        })
    }

    /// Publishes the events, then writes the status if it differs. In this order, a crash in between publishes an event
    /// twice rather than never.
    async fn publish(&self, observed: &R::Observed, report: &Report<R::Kind>) -> Result<(), ApiError> {
        report.counters.iter().for_each(Counter::increment);
        let written = self.context.publish(observed.as_ref(), &report.events, &report.status).await;
        let is_changed = written.inspect_err(|error| {
            let counter = R::status_error().filter(|_| !error.is_over());
            counter.iter().for_each(Counter::increment);
        })?;
        if !is_changed {
            return Ok(());
        }
        if let Some(line) = &report.log {
            info!("{line}");
        }
        for measured in &report.measurements {
            histogram!(measured.name, labels_of(&measured.labels)).record(measured.value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
