//! One reconcile of an object, as a state machine that says which step comes next. It makes no request and knows no clock:
//! the [`super::driver`] carries the steps out, [`super::preview`] says what they would write, and proofs simulate them.
//!
//! | step | next |
//! |---|---|
//! | observe | the plan is made; an object that is gone, or left to the garbage collector, is forgotten, and that is the end |
//! | refresh, observe | only with [`Plan::confirm`]; the plan is made again |
//! | publish | only with [`Plan::announce`]: the report before the plan |
//! | check | only with [`Plan::preconditions`] |
//! | apply | writes, and effects outside of the cluster at the same time |
//! | observe | unless nothing was done: the stores now hold the answers |
//! | settle | what the loop keeps in memory is updated |
//! | check, patch | only with [`Plan::remove_finalizer`], once all else has succeeded: the end |
//! | patch, observe | only if the report has a patch of the object |
//! | publish | events and status: the end |

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::ObjectKey;
use super::apply::{Applied, Failure};
use super::controller::ReconcileError;
use super::error::ApiError;
use super::finalizer;
use super::plan::{KindInfo, ObjectPatch, Plan, Precondition, Requeue};
use super::reconciler::{EffectOutcome, EffectResult, Outcome, Reconciler, Report};
use crate::api::{Kind, Object};

/// After how long at most an object that a `ResourceQuota` refused is reconciled again: no watch shows when
/// a quota has capacity again.
pub const QUOTA_RETRY: Duration = Duration::from_mins(1);

/// What is to be done next.
pub enum Step<'a, R: Reconciler> {
    /// Observe the object. The answer is [`Answer::Observed`].
    Observe,
    /// Read these objects from the API server, so that the stores have them as they are.
    Refresh(&'a [(KindInfo, ObjectKey)]),
    /// Compare with the API server that all of this is so.
    Check(&'a [Precondition]),
    /// Carry out the plan for this observation. The answer is [`Answer::Applied`].
    Apply(&'a R::Observed, &'a Plan<R::Effect>),
    /// Update what the loop keeps in memory.
    Settle(&'a R::Observed, &'a Outcome<EffectResult<R>>),
    /// Send this patch of the object.
    Patch(&'a ObjectPatch),
    /// Publish the events, then write the status if it differs.
    Publish(&'a R::Observed, &'a Report<R::Kind>),
    /// Drop what the loop keeps in memory about the object.
    Forget,
    /// Nothing: the reconcile has ended.
    End(&'a End),
}

/// What came of a step.
pub enum Answer<R: Reconciler> {
    /// It was done.
    Done,
    /// It failed.
    Failed(ApiError),
    /// The object was observed; `None` when it does not exist or is not ours.
    Observed(Option<R::Observed>),
    /// The plan was carried out, each effect with this outcome.
    Applied(Applied, Vec<EffectOutcome<EffectResult<R>>>),
}

impl<R: Reconciler> From<Result<(), ApiError>> for Answer<R> {
    fn from(result: Result<(), ApiError>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Done)
    }
}

/// How a reconcile ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The object does not exist, or is not ours.
    Gone,
    /// It is reconciled again once something has changed.
    AwaitChange,
    /// It is reconciled again at its periodic reconcile, or after this time if that is sooner.
    Requeue(Option<Duration>),
    /// It is reconciled again at once.
    Again,
    /// It failed, and is reconciled again after the backoff.
    Failed(ReconcileError),
}

/// A reconcile that is under way.
pub struct Reconcile<'s, R: Reconciler> {
    settings: &'s R::Settings,
    stage: Stage,
    /// What was observed last.
    observed: Option<R::Observed>,
    plan: Plan<R::Effect>,
    outcome: Outcome<EffectResult<R>>,
    /// The report, and the object as the patch of the report has left it.
    report: Option<Report<R::Kind>>,
    patched: Option<R::Observed>,
    removal: Option<ObjectPatch>,
    /// Whether the plan is made again at once: it did not know an object that was adopted, or somebody has changed the spec
    /// meanwhile.
    is_outdated: bool,
    end: End,
}

/// The step that a reconcile has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Observe,
    Refresh,
    ObserveConfirmed,
    Check,
    Apply,
    ObserveAgain,
    Settle,
    CheckFinalizer,
    RemoveFinalizer,
    Patch,
    ObservePatched,
    Publish,
    Forget,
    End,
}

impl<'s, R: Reconciler> Reconcile<'s, R> {
    /// A reconcile with these settings, of which nothing has been done yet.
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

    /// The next step. [`Reconcile::answer`] says what came of it.
    pub fn step(&self) -> Step<'_, R> {
        let patch = || self.report.as_ref().and_then(|report| report.patch.as_ref());
        let step = match (self.stage, &self.observed) {
            (Stage::Observe | Stage::ObserveConfirmed | Stage::ObserveAgain | Stage::ObservePatched, _) => {
                Some(Step::Observe)
            }
            (Stage::Refresh, _) => Some(Step::Refresh(&self.plan.confirm)),
            (Stage::Check, _) => Some(Step::Check(&self.plan.preconditions)),
            (Stage::Apply, Some(observed)) => Some(Step::Apply(observed, &self.plan)),
            (Stage::Settle, Some(observed)) => Some(Step::Settle(observed, &self.outcome)),
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

    /// Takes what came of the step, and goes on to the next one. Plan and report are made for the time `now`.
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
            (Stage::Check, Answer::Done) => Stage::Apply,
            (Stage::Settle, Answer::Done) => self.settled(now),
            (Stage::CheckFinalizer, Answer::Done) => match self.removal {
                Some(_) => Stage::RemoveFinalizer,
                None => Stage::End,
            },
            (Stage::Patch, Answer::Done) => Stage::ObservePatched,
            (Stage::Publish, Answer::Done) if self.outcome.is_applied => {
                self.end = self.next();
                Stage::End
            }
            // What was announced is carried out now.
            (Stage::Publish, Answer::Done) => Stage::Check,
            (Stage::CheckFinalizer | Stage::RemoveFinalizer, Answer::Failed(error)) => {
                self.failed(&error, "finalizer: ")
            }
            (Stage::Publish, Answer::Failed(error)) => self.failed(&error, "status: "),
            (_, Answer::Failed(error)) => self.failed(&error, ""),
            // The end of what is removed or forgotten; no step has another answer.
            _ => Stage::End,
        };
    }

    /// The object was observed. The plan is made; if it names objects to be confirmed, it is made once more.
    fn observed(&mut self, observed: Option<R::Observed>, now: Timestamp) -> Stage {
        let Some(observed) = observed else { return self.gone() };
        let object = observed.as_ref();
        if object.is_terminating()
            && !R::FINALIZER.is_some_and(|finalizer| finalizer::holds(object, finalizer))
        {
            return Stage::Forget;
        }
        self.plan = (R::PLAN)(&observed, self.settings, now);
        self.observed = Some(observed);
        if self.stage == Stage::Observe && !self.plan.confirm.is_empty() {
            return Stage::Refresh;
        }
        if self.plan.announce { self.report(now) } else { Stage::Check }
    }

    /// The object does not exist (any more).
    fn gone(&mut self) -> Stage {
        self.end = End::Gone;
        Stage::Forget
    }

    /// The plan was carried out.
    fn applied(&mut self, applied: Applied, effects: Vec<EffectOutcome<EffectResult<R>>>) -> Stage {
        let Applied { is_written, is_incomplete, failures } = applied;
        let is_unchanged = !is_written && effects.is_empty();
        self.outcome = Outcome { is_applied: true, failures, effects };
        self.is_outdated = is_incomplete;
        if self.outcome.lost_lease() {
            return Stage::End;
        }
        // Nobody is told of what was planned from old knowledge: the next plan is made from what is known now.
        if let Some(stale) = self.outcome.stale() {
            self.end = End::Failed(ReconcileError::from(stale.to_string()));
            return Stage::End;
        }
        if is_unchanged { Stage::Settle } else { Stage::ObserveAgain }
    }

    /// The object was observed after writes and effects. If somebody else has changed its spec meanwhile, it has the
    /// generation that the plan has left, because that is what the report is about.
    fn observed_again(&mut self, observed: Option<R::Observed>) -> Stage {
        let (Some(mut observed), Some(planned)) = (observed, &self.observed) else { return self.gone() };
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

    /// The memory of the loop is up to date: the finalizer is removed, or a report is made.
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
        let report = (R::REPORT)(observed, self.settings, &self.plan, &self.outcome, now);
        let stage = if report.patch.is_some() { Stage::Patch } else { Stage::Publish };
        (self.report, self.patched) = (Some(report), None);
        stage
    }

    /// When the object is reconciled again, after the last report was published.
    fn next(&self) -> End {
        let Self { plan, outcome, .. } = self;
        // What is being deleted waits for others, unless the plan names a time after which it does not.
        let is_terminating =
            self.observed.as_ref().is_some_and(|observed| observed.as_ref().is_terminating());
        if is_terminating && outcome.is_success() && !matches!(plan.requeue, Requeue::After(_)) {
            return End::AwaitChange;
        }
        let is_quota = |error: &ApiError| matches!(error, ApiError::QuotaExceeded(_));
        let failed = outcome.failures.iter().filter(|failure| !is_quota(&failure.error));
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
        let quota = outcome.failures.iter().any(|failure| is_quota(&failure.error)).then_some(QUOTA_RETRY);
        match plan.requeue {
            Requeue::OnChange if quota.is_none() => End::AwaitChange,
            Requeue::After(after) => End::Requeue(Some(quota.map_or(after, |quota| quota.min(after)))),
            Requeue::OnChange | Requeue::Resync => End::Requeue(quota),
        }
    }

    /// A request failed. After `NotFound` (the object has been deleted meanwhile) and `NotLeader` there is no retry: the
    /// next watch event, or the new leader, continues.
    fn failed(&mut self, error: &ApiError, what: &str) -> Stage {
        if !error.is_over() {
            let message = format!("{what}{error}");
            self.end = End::Failed(ReconcileError { message, retry_after: error.retry_after() });
        }
        Stage::End
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
