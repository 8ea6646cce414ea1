//! The driver of all control loops: reconciles the object of a key with a [`Reconciler`].
//!
//! The steps are: observe; plan; apply the plan, and carry out its effects outside of the cluster at the
//! same time; observe again, if anything was done; report. The driver also handles what all loops have in common: objects that are
//! gone or being deleted, finalizers, a lost lease, errors, and the next requeue.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::join;
use metrics::histogram;
use tracing::{info, warn};

use super::ObjectKey;
use super::apply::{Applied, Failure};
use super::clock;
use super::context::Context;
use super::controller::{ReconcileError, ReconcileKey};
use super::error::ApiError;
use super::finalizer;
use super::plan::{Evidence, KindInfo, ObjectPatch, Plan, Requeue};
use super::queue::Action;
use super::reconciler::{Counter, EffectResult, Outcome, Reconciler, Report, labels_of};
use crate::api::{Kind, Object};

/// After how long at most an object that a `ResourceQuota` refused is reconciled again: no watch shows when
/// a quota has capacity again.
const QUOTA_RETRY: Duration = Duration::from_mins(1);

/// After how long a new leader tries again to read what it must read first; doubled each time, up to
/// [`QUOTA_RETRY`].
const FIRST_READ_RETRY: Duration = Duration::from_millis(250);

/// A reconciler with its settings, and the context that it writes through.
pub struct Driver<R: Reconciler> {
    reconciler: R,
    settings: R::Settings,
    context: Context,
}

/// The result of a reconcile that ends before its report: the next action, or an error.
type Ended = Result<Action, ReconcileError>;

impl<R: Reconciler> Driver<R> {
    /// A driver for `reconciler`, which writes through `context`.
    pub fn new(reconciler: R, settings: R::Settings, context: Context) -> Self {
        Self { reconciler, settings, context }
    }
}

impl<R: Reconciler> ReconcileKey for Driver<R> {
    const NAME: &'static str = R::NAME;

    async fn prepare(&self) {
        for (kind, selection) in self.reconciler.read_first() {
            let mut wait = FIRST_READ_RETRY;
            while let Err(error) = self.context.engine.read_all(kind, &selection).await {
                warn!(controller = R::NAME, %error, "the {} cannot be read; trying again", kind.plural);
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(QUOTA_RETRY);
            }
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let reconciler = &self.reconciler;
        let Some(observed) = reconciler.observe(key) else {
            reconciler.forget(key);
            return Ok(Action::Forget);
        };
        let object = observed.as_ref();
        if object.is_terminating()
            && !R::FINALIZER.is_some_and(|finalizer| finalizer::holds(object, finalizer))
        {
            reconciler.forget(key);
            return Ok(Action::AwaitChange);
        }
        let (observed, plan) = match self.plan(key, observed).await {
            Ok(planned) => planned,
            Err(ended) => return ended,
        };
        for evidence in &plan.founded_on {
            if let Err(error) = self.context.engine.check(evidence).await {
                return ended(error, "");
            }
        }
        let effects = plan.effects.iter().map(|effect| reconciler.perform(&observed, effect));
        let owner = Evidence::object(observed.as_ref());
        let (applied, effects) = join!(self.context.engine.apply(&plan, &owner), join_all(effects));
        let is_unchanged = !applied.is_written && effects.is_empty();
        let Applied { is_incomplete, failures, .. } = applied;
        let outcome = Outcome { is_applied: true, failures, effects };
        if outcome.lost_lease() {
            return Ok(Action::AwaitChange);
        }
        // Nobody is told of what was planned from old knowledge: the next plan is made from what is known now.
        if let Some(stale) = outcome.stale() {
            return Err(ReconcileError::from(stale.to_string()));
        }
        let known = generation_after(observed.as_ref(), &plan, &outcome);
        let again =
            if is_unchanged { Ok((observed, false)) } else { self.observe_again(key, &observed, known) };
        let (observed, is_outdated) = match again {
            Ok(observed) => observed,
            Err(action) => return Ok(action),
        };
        reconciler.settle(&observed, &outcome);
        if let Some(finalizer) = plan.remove_finalizer.filter(|_| outcome.is_success()) {
            return self.remove_finalizer(&observed, finalizer, &plan.finalizer_founded_on).await;
        }
        let report = (R::REPORT)(&observed, &self.settings, &plan, &outcome, clock::now());
        if let Err(ended) = self.publish(&observed, &report).await {
            return ended;
        }
        // What is being deleted waits for others, unless the plan names a time after which it does not.
        let has_time = matches!(plan.requeue, Requeue::After(_));
        if observed.as_ref().is_terminating() && outcome.is_success() && !has_time {
            return Ok(Action::AwaitChange);
        }
        self.action(key, &plan, &outcome, report.requeue_at_once || is_incomplete || is_outdated)
    }
}

impl<R: Reconciler> Driver<R> {
    /// The plan, and the observation that it was made from. With [`Plan::confirm`], those objects are read
    /// from the API server first and the plan is made again. With [`Plan::announce`], a report is written
    /// before the plan is applied.
    async fn plan(
        &self,
        key: &ObjectKey,
        observed: R::Observed,
    ) -> Result<(R::Observed, Plan<R::Effect>), Ended> {
        let settings = &self.settings;
        let mut observed = observed;
        let mut plan = (R::PLAN)(&observed, settings, clock::now());
        if !plan.confirm.is_empty() {
            for (kind, key) in &plan.confirm {
                self.context.engine.refresh(*kind, key).await.map_err(|error| ended(error, ""))?;
            }
            let Some(confirmed) = self.reconciler.observe(key) else {
                self.reconciler.forget(key);
                return Err(Ok(Action::Forget));
            };
            observed = confirmed;
            plan = (R::PLAN)(&observed, settings, clock::now());
        }
        if plan.announce {
            let report = (R::REPORT)(&observed, settings, &plan, &Outcome::pending(), clock::now());
            self.publish(&observed, &report).await?;
        }
        Ok((observed, plan))
    }

    /// Observes again after writes and effects: the stores now hold the responses. If somebody else has changed the spec
    /// meanwhile, which the second value says, the object has the `known` generation, because that is what the report is
    /// about. An error is the next action without a report.
    fn observe_again(
        &self,
        key: &ObjectKey,
        planned: &R::Observed,
        known: Option<i64>,
    ) -> Result<(R::Observed, bool), Action> {
        let Some(mut observed) = self.reconciler.observe(key) else {
            self.reconciler.forget(key);
            return Err(Action::Forget);
        };
        let (planned, object) = (planned.as_ref(), observed.as_mut());
        if !planned.uid().is_empty() && planned.uid() != object.uid() {
            // Another object has the name now.
            return Err(Action::RequeueAfter(Duration::ZERO));
        }
        let is_outdated = known.is_some() && object.metadata.generation > known;
        if is_outdated {
            Arc::make_mut(object).metadata.generation = known;
        }
        Ok((observed, is_outdated))
    }

    /// Publishes the events, then writes the status if it differs. In this order, a crash in between
    /// publishes an event twice rather than never.
    async fn publish(&self, observed: &R::Observed, report: &Report<R::Kind>) -> Result<(), Ended> {
        let object = observed.as_ref();
        report.counters.iter().for_each(Counter::increment);
        let patched = report.patch.as_ref().map(|patch| self.context.engine.patch(patch));
        let object = match patched {
            None => None,
            Some(patch) => {
                patch.await.map_err(|error| ended(error, ""))?;
                // The status patch needs the resource version that this patch has made.
                self.reconciler.observe(&ObjectKey::of(object))
            }
        };
        let object = object.as_ref().unwrap_or(observed).as_ref();
        let written = self.context.publish(object, &report.events, &report.status).await;
        let is_changed = written.map_err(|error| {
            let ended = ended(error, "status: ");
            ended.is_err().then(R::status_error).flatten().iter().for_each(Counter::increment);
            ended
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

    /// Removes the finalizer of an object that is being deleted, if all is so that this is founded on.
    async fn remove_finalizer(
        &self,
        observed: &R::Observed,
        finalizer: &str,
        founded_on: &[Evidence],
    ) -> Ended {
        for evidence in founded_on {
            if let Err(error) = self.context.engine.check(evidence).await {
                return ended(error, "finalizer: ");
            }
        }
        match finalizer::removal(observed.as_ref(), finalizer) {
            None => Ok(Action::AwaitChange),
            Some(patch) => match self.context.engine.patch(&patch).await {
                Ok(()) => Ok(Action::AwaitChange),
                Err(error) => ended(error, "finalizer: "),
            },
        }
    }

    /// When the object is reconciled again.
    fn action(
        &self,
        key: &ObjectKey,
        plan: &Plan<R::Effect>,
        outcome: &Outcome<EffectResult<R>>,
        at_once: bool,
    ) -> Ended {
        let is_quota = |error: &ApiError| matches!(error, ApiError::QuotaExceeded(_));
        let failed = outcome.failures.iter().filter(|failure| !is_quota(&failure.error));
        let mut errors: Vec<String> = failed.map(ToString::to_string).collect();
        errors.extend(outcome.effect_failures().map(|problem| problem.message.clone()));
        if !errors.is_empty() {
            let asked = outcome.failures.iter().map(|failure| failure.error.retry_after());
            let retry_after = asked.max().unwrap_or_default();
            return Err(ReconcileError { message: errors.join("; "), retry_after });
        }
        let quota = outcome.failures.iter().any(|failure| is_quota(&failure.error)).then_some(QUOTA_RETRY);
        let at_once = at_once.then_some(Duration::ZERO);
        let sooner = match plan.requeue {
            Requeue::OnChange if quota.is_none() && at_once.is_none() => return Ok(Action::AwaitChange),
            Requeue::After(after) => Some(after),
            _ => None,
        };
        Ok(self.context.requeue(key, sooner.into_iter().chain(quota).chain(at_once).min()))
    }
}

/// The generation of an object after a plan for it was carried out: the next one if that has changed its spec. `None` for
/// one that did not exist.
fn generation_after<T: Kind, E, F>(object: &Object<T>, plan: &Plan<E>, outcome: &Outcome<F>) -> Option<i64> {
    let (kind, key) = (KindInfo::of::<T>(), ObjectKey::of(object));
    let changes_spec = |patch: &ObjectPatch| {
        (patch.kind, &patch.key) == (kind, &key)
            && patch.subresource.is_none()
            && patch.patch["spec"].is_object()
    };
    let is_refused = |failure: &Failure| failure.kind == T::KIND && key.name == failure.name;
    let is_changed = plan.patches.iter().any(changes_spec) && !outcome.failures.iter().any(is_refused);
    object.metadata.generation.map(|generation| generation + i64::from(is_changed))
}

/// The result of a reconcile after a failed request. After `NotFound` (the object has been deleted
/// meanwhile) and `NotLeader` there is no retry: the next watch event, or the new leader, continues.
fn ended(error: ApiError, what: &str) -> Ended {
    match error {
        ApiError::NotFound(_) | ApiError::NotLeader => Ok(Action::AwaitChange),
        error => Err(ReconcileError { message: format!("{what}{error}"), retry_after: error.retry_after() }),
    }
}

#[cfg(test)]
mod tests;
