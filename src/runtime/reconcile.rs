//! One reconcile of an object, as a state machine that determines the next step. It sends no request and reads no
//! clock: [`super::driver`] carries out the steps, [`super::preview`] computes their writes, and proofs simulate them.
//!
//! | step | next |
//! |---|---|
//! | observe | the plan is made; an object that is gone, or left to the garbage collector, is dropped: the end |
//! | refresh, observe | only with [`Plan::confirm`]; a new plan is made |
//! | publish | only with [`Plan::announce`]: the report before the plan |
//! | check, observe | only with [`Plan::preconditions`]; a new plan is made, so that none is older than its check |
//! | apply | writes, and concurrent effects outside the cluster |
//! | observe | unless nothing was done: the stores now hold the responses |
//! | settle | the loop updates its state in memory |
//! | check, observe, patch | only with [`Plan::remove_finalizer`], after everything else has succeeded: the end; only with
//! [`Plan::finalizer_preconditions`], it is observed whether the finalizer is still to be removed |
//! | patch, observe | only if the report has a patch of the object |
//! | publish | events and status: the end |

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::apply::{Applied, Failure};
use super::controller::ReconcileError;
use super::error::ApiError;
use super::plan::{KindInfo, ObjectPatch, Plan, Precondition, Requeue};
use super::reconciler::{EffectOutcome, EffectResult, Outcome, Reconciled, Reconciler, Report};
use super::{ObjectKey, finalizer};
use crate::api::{Kind, Object};

/// The maximum time until the next reconcile of an object if a `ResourceQuota` rejected one of its children, or if a
/// child's name is taken by an object of another owner. No watch shows when a quota has capacity again, or when an
/// object is deleted that no store holds.
pub const REFUSED_RETRY: Duration = Duration::from_mins(1);

/// The next step.
pub enum Step<'a, R: Reconciler> {
    /// Observe the object. The answer is [`Answer::Observed`].
    Observe,
    /// Read these objects from the API server, so that the stores are up to date.
    Refresh(&'a [(KindInfo, ObjectKey)]),
    /// Check these preconditions against the API server.
    Check(&'a [Precondition]),
    /// Carry out the plan for this observation. The answer is [`Answer::Applied`].
    Apply(&'a R::Observed, &'a Plan<R::Effect>),
    /// Update the loop's state in memory.
    Settle(&'a R::Observed, &'a Plan<R::Effect>, &'a Outcome<EffectResult<R>>),
    /// Send this patch of the object.
    Patch(&'a ObjectPatch),
    /// Publish the events, then write the status if it differs.
    Publish(&'a R::Observed, &'a Report<R::Kind>),
    /// Drop the loop's state of the object.
    Forget,
    /// Nothing: the reconcile has ended.
    End(&'a End),
}

/// The result of a step.
pub enum Answer<R: Reconciler> {
    /// It was done.
    Done,
    /// It failed.
    Failed(ApiError),
    /// The object was observed; `None` if it does not exist or is not ours.
    Observed(Option<R::Observed>),
    /// The plan was carried out, and each effect had this outcome.
    Applied(Applied, Vec<EffectOutcome<EffectResult<R>>>),
}

impl<R: Reconciler> From<Result<(), ApiError>> for Answer<R> {
    fn from(result: Result<(), ApiError>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Done)
    }
}

/// The end of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The object does not exist, or is not ours.
    Gone,
    /// It is reconciled again after a change.
    AwaitChange,
    /// It is reconciled again at its periodic reconcile, or after this time if that is sooner.
    Requeue(Option<Duration>),
    /// It is reconciled again at once.
    Again,
    /// It failed, and is reconciled again after the backoff.
    Failed(ReconcileError),
}

/// A reconcile in progress.
pub struct Reconcile<'s, R: Reconciler> {
    settings: &'s R::Settings,
    stage: Stage,
    /// The last observation.
    observed: Option<R::Observed>,
    plan: Plan<R::Effect>,
    outcome: Outcome<EffectResult<R>>,
    /// The report, and the object after the report's patch.
    report: Option<Report<R::Kind>>,
    patched: Option<R::Observed>,
    removal: Option<ObjectPatch>,
    /// Whether a new plan is needed at once: the plan did not know an object that was adopted, or another client has
    /// changed the spec meanwhile.
    is_outdated: bool,
    end: End,
}

/// The current step of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Observe,
    Refresh,
    ObserveConfirmed,
    Check,
    ObserveChecked,
    Apply,
    ObserveAgain,
    Settle,
    CheckFinalizer,
    ObserveFinalizer,
    RemoveFinalizer,
    Patch,
    ObservePatched,
    Publish,
    Forget,
    End,
}

impl<'s, R: Reconciler> Reconcile<'s, R> {
    /// Creates a reconcile with these settings, before its first step.
    pub fn new(settings: &'s R::Settings) -> Self {
        Self {
            settings,
            stage: Stage::Observe,
            observed: None,
            plan: Plan::default(),
            outcome: Outcome::pending(),
            report: None,
            patched: None,
            removal: None,
            is_outdated: false,
            end: End::AwaitChange,
        }
    }

    /// Returns the next step. [`Reconcile::answer`] takes its result.
    pub fn step(&self) -> Step<'_, R> {
        let patch = || self.report.as_ref().and_then(|report| report.patch.as_ref());
        let step = match (self.stage, &self.observed) {
            (
                Stage::Observe
                | Stage::ObserveConfirmed
                | Stage::ObserveChecked
                | Stage::ObserveAgain
                | Stage::ObserveFinalizer
                | Stage::ObservePatched,
                _,
            ) => Some(Step::Observe),
            (Stage::Refresh, _) => Some(Step::Refresh(&self.plan.confirm)),
            (Stage::Check, _) => Some(Step::Check(&self.plan.preconditions)),
            (Stage::Apply, Some(observed)) => Some(Step::Apply(observed, &self.plan)),
            (Stage::Settle, Some(observed)) => Some(Step::Settle(observed, &self.plan, &self.outcome)),
            (Stage::CheckFinalizer, _) => Some(Step::Check(&self.plan.finalizer_preconditions)),
            (Stage::RemoveFinalizer, _) => self.removal.as_ref().map(Step::Patch),
            (Stage::Patch, _) => patch().map(Step::Patch),
            (Stage::Publish, Some(observed)) => {
                let observed = self.patched.as_ref().unwrap_or(observed);
                self.report.as_ref().map(|report| Step::Publish(observed, report))
            }
            (Stage::Forget, _) => Some(Step::Forget),
            _ => None,
        };
        step.unwrap_or(Step::End(&self.end))
    }

    /// Takes the result of the step, and advances to the next one. Plan and report are made for the time `now`.
    pub fn answer(&mut self, answer: Answer<R>, now: Timestamp) {
        self.stage = match (self.stage, answer) {
            (Stage::Observe | Stage::ObserveConfirmed, Answer::Observed(observed)) => {
                self.observed(observed, now)
            }
            (Stage::ObserveAgain, Answer::Observed(observed)) => self.observed_again(observed),
            (Stage::ObservePatched, Answer::Observed(observed)) => {
                self.patched = observed;
                Stage::Publish
            }
            (Stage::Apply, Answer::Applied(applied, effects)) => self.applied(applied, effects),
            (Stage::Refresh, Answer::Done) => Stage::ObserveConfirmed,
            (Stage::Check, Answer::Done) if self.plan.preconditions.is_empty() => Stage::Apply,
            (Stage::Check, Answer::Done) => Stage::ObserveChecked,
            (Stage::ObserveChecked, Answer::Observed(observed)) => self.observed_checked(observed, now),
            (Stage::Settle, Answer::Done) => self.settled(now),
            // Without a finalizer to remove, that step is the end.
            (Stage::CheckFinalizer, Answer::Done) if self.plan.finalizer_preconditions.is_empty() => {
                Stage::RemoveFinalizer
            }
            (Stage::CheckFinalizer, Answer::Done) => Stage::ObserveFinalizer,
            (Stage::ObserveFinalizer, Answer::Observed(observed)) => self.observed_finalizer(observed, now),
            (Stage::Patch, Answer::Done) => Stage::ObservePatched,
            (Stage::Publish, Answer::Done) if self.outcome.is_applied => {
                self.end = self.next();
                Stage::End
            }
            // The plan was announced and is carried out now.
            (Stage::Publish, Answer::Done) => Stage::Check,
            (Stage::CheckFinalizer | Stage::RemoveFinalizer, Answer::Failed(error)) => {
                self.failed(&error, "finalizer: ")
            }
            (Stage::Publish, Answer::Failed(error)) => self.failed(&error, "status: "),
            (_, Answer::Failed(error)) => self.failed(&error, ""),
            // The end of a removed or dropped object; no step has any other answer.
            _ => Stage::End,
        };
    }

    /// Handles the observed object: makes the plan. If the plan names objects to confirm, a second plan is made after
    /// they are read.
    fn observed(&mut self, observed: Option<R::Observed>, now: Timestamp) -> Stage {
        let Some(mut observed) = observed else { return self.gone() };
        let object = observed.as_ref();
        if object.is_terminating()
            && !R::FINALIZER.is_some_and(|finalizer| finalizer::holds(object, finalizer))
        {
            return Stage::Forget;
        }
        self.plan = self.planned(&mut observed, now);
        self.observed = Some(observed);
        if self.stage == Stage::Observe && !self.plan.confirm.is_empty() {
            return Stage::Refresh;
        }
        if self.plan.announce { self.report(now) } else { Stage::Check }
    }

    /// Makes the plan again after its preconditions were checked: a change may have reached the stores between the plan
    /// and the check. A plan with other preconditions begins anew.
    fn observed_checked(&mut self, observed: Option<R::Observed>, now: Timestamp) -> Stage {
        let Some(mut observed) = observed else { return self.gone() };
        let plan = self.planned(&mut observed, now);
        let Plan { preconditions, confirm, .. } = &self.plan;
        let is_checked = plan.preconditions.iter().all(|wanted| preconditions.contains(wanted))
            && plan.confirm.iter().all(|wanted| confirm.contains(wanted));
        if !is_checked || plan.announce {
            self.end = End::Again;
            return Stage::End;
        }
        (self.observed, self.plan) = (Some(observed), plan);
        Stage::Apply
    }

    /// Continues after the preconditions of the finalizer's removal were checked: removes it, unless a plan for the
    /// current stores does not.
    fn observed_finalizer(&mut self, observed: Option<R::Observed>, now: Timestamp) -> Stage {
        let Some(mut observed) = observed else { return self.gone() };
        let plan = self.planned(&mut observed, now);
        if plan.remove_finalizer == self.plan.remove_finalizer {
            return Stage::RemoveFinalizer;
        }
        self.end = End::Again;
        Stage::End
    }

    /// Makes a plan for an observed object.
    fn planned(&self, observed: &mut R::Observed, now: Timestamp) -> Plan<R::Effect> {
        R::complete(observed, None, self.settings);
        R::plan(observed, self.settings, now)
    }

    /// Handles an object that does not exist (any more).
    fn gone(&mut self) -> Stage {
        self.end = End::Gone;
        Stage::Forget
    }

    /// Handles the result of the plan.
    fn applied(&mut self, applied: Applied, effects: Vec<EffectOutcome<EffectResult<R>>>) -> Stage {
        let Applied { is_written, is_incomplete, failures } = applied;
        let is_unchanged = !is_written && effects.is_empty();
        self.outcome = Outcome { is_applied: true, failures, effects };
        self.is_outdated = is_incomplete;
        if self.outcome.lost_lease() {
            return Stage::End;
        }
        // A plan from stale objects is not reported: the next plan is made from the current ones.
        if let Some(stale) = self.outcome.stale() {
            self.end = End::Failed(ReconcileError::from(stale.to_string()));
            return Stage::End;
        }
        if is_unchanged { Stage::Settle } else { Stage::ObserveAgain }
    }

    /// Handles the object after writes and effects. If another client has changed its spec meanwhile, the object gets
    /// the generation that resulted from the plan, because the report is about that generation.
    fn observed_again(&mut self, observed: Option<R::Observed>) -> Stage {
        let (Some(mut observed), Some(planned)) = (observed, &self.observed) else { return self.gone() };
        R::complete(&mut observed, Some(planned), self.settings);
        let (planned, object) = (planned.as_ref(), observed.as_mut());
        if !planned.uid().is_empty() && planned.uid() != object.uid() {
            // Another object has the name now.
            self.end = End::Again;
            return Stage::End;
        }
        let known = generation_after(planned, &self.plan, &self.outcome);
        if known.is_some() && object.metadata.generation > known {
            Arc::make_mut(object).metadata.generation = known;
            self.is_outdated = true;
        }
        self.observed = Some(observed);
        Stage::Settle
    }

    /// Continues after the loop has updated its state: removes the finalizer, or makes a report.
    fn settled(&mut self, now: Timestamp) -> Stage {
        let finalizer = self.plan.remove_finalizer.filter(|_| self.outcome.is_success());
        let Some((finalizer, observed)) = finalizer.zip(self.observed.as_ref()) else {
            return self.report(now);
        };
        self.removal = finalizer::removal(observed.as_ref(), finalizer);
        Stage::CheckFinalizer
    }

    /// Makes the report, before or after the plan is carried out.
    fn report(&mut self, now: Timestamp) -> Stage {
        let Some(observed) = &self.observed else { return Stage::End };
        let Self { settings, plan, outcome, .. } = self;
        let report = R::report(&Reconciled { observed, settings, plan, outcome, now });
        let stage = if report.patch.is_some() { Stage::Patch } else { Stage::Publish };
        (self.report, self.patched) = (Some(report), None);
        stage
    }

    /// Determines the next reconcile, after the last report was published.
    fn next(&self) -> End {
        let Self { plan, outcome, .. } = self;
        // An object that is being deleted waits for changes, unless the plan names a time.
        let is_terminating =
            self.observed.as_ref().is_some_and(|observed| observed.as_ref().is_terminating());
        if is_terminating && outcome.is_success() && !matches!(plan.requeue, Requeue::After(_)) {
            return End::AwaitChange;
        }
        // The report says so. Repeating the write would be rejected again.
        let is_refused =
            |error: &ApiError| matches!(error, ApiError::QuotaExceeded(_) | ApiError::NameConflict { .. });
        let failed = outcome.failures.iter().filter(|failure| !is_refused(&failure.error));
        let mut errors: Vec<String> = failed.map(ToString::to_string).collect();
        errors.extend(outcome.effect_failures().map(|problem| problem.message.clone()));
        if !errors.is_empty() {
            let asked = outcome.failures.iter().map(|failure| failure.error.retry_after());
            let retry_after = asked.max().unwrap_or_default();
            return End::Failed(ReconcileError { message: errors.join("; "), retry_after });
        }
        if self.is_outdated || self.report.as_ref().is_some_and(|report| report.requeue_at_once) {
            return End::Again;
        }
        let is_any_refused = outcome.failures.iter().any(|failure| is_refused(&failure.error));
        let retry = is_any_refused.then_some(REFUSED_RETRY);
        let reported = self.report.as_ref().and_then(|report| report.requeue_after);
        let soonest = retry.into_iter().chain(reported).min();
        match plan.requeue {
            Requeue::OnChange if soonest.is_none() => End::AwaitChange,
            Requeue::After(after) => End::Requeue(Some(soonest.map_or(after, |soonest| soonest.min(after)))),
            Requeue::OnChange | Requeue::Resync => End::Requeue(soonest),
        }
    }

    /// Handles a failed request. After `NotFound` (the object was deleted meanwhile) and `NotLeader` there is no retry:
    /// the next watch event, or the new leader, continues.
    fn failed(&mut self, error: &ApiError, what: &str) -> Stage {
        if !error.is_over() {
            let message = format!("{what}{error}");
            self.end = End::Failed(ReconcileError { message, retry_after: error.retry_after() });
        }
        Stage::End
    }
}

/// Returns the generation of an object after its plan was carried out: the next one if the plan has changed its spec.
/// `None` if the object did not exist.
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
