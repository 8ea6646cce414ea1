//! A control loop as data and pure functions: what the [`super::driver`] calls, in this order.
//!
//! | function | what it does | pure |
//! |---|---|---|
//! | [`Reconciler::observe`] | reads the stores into one value | no, but makes no request |
//! | [`Reconciler::plan`] | says what is to be written, removed and done outside of the cluster | yes |
//! | [`Reconciler::perform`] | carries out one effect outside of the cluster | no |
//! | [`Reconciler::report`] | says what status, conditions and events follow | yes |

use std::future::Future;

use jiff::Timestamp;

use super::ObjectKey;
use super::apply::Failure;
use super::error::ApiError;
use super::events::EventNote;
use super::plan::{ObjectPatch, Plan};
use super::problem::Problem;
use crate::api::{Kind, Object};

/// A control loop over the objects of one kind.
///
/// The process may die between any two writes and effects of a plan: the next reconcile observes what is
/// there and plans what is left.
pub trait Reconciler: Send + Sync + 'static {
    /// The name of the loop: its key in the configuration, its label in metrics, its name in logs.
    const NAME: &'static str;
    /// The finalizer by which objects wait for the loop before they can go. Without one, an object that is
    /// being deleted is left to the garbage collector.
    const FINALIZER: Option<&'static str> = None;
    /// The kind of the objects that the loop works on.
    type Kind: Kind;
    /// Everything that plan and report depend on, but for the settings and the time.
    type Observed: Send + Sync;
    /// What plan and report depend on and does not change while the process runs.
    type Settings: Send + Sync;
    /// What a plan wants done outside of the cluster; `()` for loops that do nothing there.
    type Effect: Send + Sync;
    /// What an effect yields for the report.
    type Effected: Send + Sync;

    /// The settings of the loop.
    fn settings(&self) -> &Self::Settings;

    /// What is known of an object, from the stores; `None` when it is gone or not ours.
    fn observe(&self, key: &ObjectKey) -> Option<Self::Observed>;

    /// The object itself.
    fn object(observed: &Self::Observed) -> &Object<Self::Kind>;

    /// What is to be done. It is asked for an object that is being deleted only while that waits for
    /// [`Reconciler::FINALIZER`].
    fn plan(observed: &Self::Observed, settings: &Self::Settings, now: Timestamp) -> Plan<Self::Effect>;

    /// Carries out one effect of a plan, beside the writes. It must be safe to be repeated.
    fn perform(
        &self,
        _observed: &Self::Observed,
        _effect: &Self::Effect,
    ) -> impl Future<Output = EffectOutcome<Self::Effected>> + Send {
        async { EffectOutcome { result: None, error: None } }
    }

    /// What is to be told of a reconcile; nothing, unless the loop says otherwise. `observed` is read anew
    /// after the writes, so that it holds their answers.
    fn report(
        observed: &Self::Observed,
        _settings: &Self::Settings,
        _plan: &Plan<Self::Effect>,
        _outcome: &Outcome<Self::Effected>,
        _now: Timestamp,
    ) -> Report<Self::Kind> {
        Report::unchanged(Self::object(observed))
    }

    /// What is counted when a status cannot be written.
    fn status_error() -> Option<Counter> {
        None
    }

    /// Drops what the loop keeps in memory of an object that is gone, or is left to the garbage collector.
    fn forget(&self, _key: &ObjectKey) {}

    /// Brings what the loop keeps in memory of an object up to date after a plan was carried out.
    fn settle(&self, _observed: &Self::Observed, _outcome: &Outcome<Self::Effected>) {}
}

/// What came of one effect: a result, an error, or both when it was carried out in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectOutcome<R> {
    /// What it yields.
    pub result: Option<R>,
    /// What could not be done.
    pub error: Option<EffectError>,
}

impl<R> EffectOutcome<R> {
    /// An effect that was carried out.
    pub fn done(result: R) -> Self {
        Self { result: Some(result), error: None }
    }
}

/// Why an effect could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectError {
    /// The lease is not held (any more): nothing was changed.
    NotLeader,
    /// It failed, and is tried again with backoff.
    Failed(Problem),
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<R> {
    /// Whether the plan has been carried out. Not so in the report that is written before
    /// ([`Plan::announce`]).
    pub is_applied: bool,
    /// The writes that failed.
    pub failures: Vec<Failure>,
    /// What came of each effect, in the order of the plan.
    pub effects: Vec<EffectOutcome<R>>,
}

impl<R> Default for Outcome<R> {
    fn default() -> Self {
        Self { is_applied: true, failures: Vec::new(), effects: Vec::new() }
    }
}

impl<R> Outcome<R> {
    /// The outcome of writes alone.
    #[cfg(test)]
    pub fn of(failures: Vec<Failure>) -> Self {
        Self { failures, ..Self::default() }
    }

    /// A plan that has not been carried out yet.
    pub fn pending() -> Self {
        Self { is_applied: false, ..Self::default() }
    }

    /// What kept effects from being carried out.
    pub fn effect_problems(&self) -> impl Iterator<Item = &Problem> {
        self.effects.iter().filter_map(|effect| match &effect.error {
            Some(EffectError::Failed(problem)) => Some(problem),
            _ => None,
        })
    }

    /// Whether everything was carried out.
    pub fn is_success(&self) -> bool {
        self.failures.is_empty() && self.effects.iter().all(|effect| effect.error.is_none())
    }

    /// Whether something was not sent because the lease is not held.
    pub fn lost_lease(&self) -> bool {
        self.failures.iter().any(|failure| failure.error == ApiError::NotLeader)
            || self.effects.iter().any(|effect| effect.error == Some(EffectError::NotLeader))
    }
}

/// What is told of a reconcile.
#[derive(Debug, Clone, PartialEq)]
pub struct Report<K: Kind> {
    /// The whole status. It is written if it differs from the stored one.
    pub status: K::Status,
    /// What changed, for `kubectl describe`.
    pub events: Vec<EventNote>,
    /// A patch of the object itself that must be stored before the status says so.
    pub patch: Option<ObjectPatch>,
    /// Whether the object is to be reconciled again at once, because an effect has changed what the plan
    /// rests on.
    pub requeue_at_once: bool,
    /// What is counted with every report.
    pub counters: Vec<Counter>,
    /// What is told once, when the status has been written: a line for the log …
    pub log: Option<String>,
    /// … and measurements.
    pub measurements: Vec<Measurement>,
}

impl<K: Kind> Report<K> {
    /// A report of a status and events.
    pub fn new(status: K::Status, events: Vec<EventNote>) -> Self {
        Self {
            status,
            events,
            patch: None,
            requeue_at_once: false,
            counters: Vec::new(),
            log: None,
            measurements: Vec::new(),
        }
    }

    /// Nothing is told: the status stays as it is.
    pub fn unchanged(object: &Object<K>) -> Self {
        Self::new(object.status.clone(), Vec::new())
    }
}

/// The labels of a metric.
pub type Labels = Vec<(&'static str, String)>;

/// A counter that is incremented by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// The name of the metric.
    pub name: &'static str,
    /// Its labels.
    pub labels: Labels,
}

/// A value of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The name of the metric.
    pub name: &'static str,
    /// Its labels.
    pub labels: Labels,
    /// The value, in the unit of the metric.
    pub value: f64,
}
