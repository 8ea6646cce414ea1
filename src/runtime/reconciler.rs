//! The trait of a control loop. [`super::reconcile`] defines the order of the calls:
//!
//! | function | purpose | pure |
//! |---|---|---|
//! | [`Reconciler::observe`] | reads an object and its children from the stores | no, but sends no request |
//! | [`Reconciler::complete`] | adds the values that both plan and report derive from an observation | yes |
//! | [`Reconciler::plan`] | returns the writes, the deletions, and the effects outside the cluster | yes |
//! | [`Reconciler::perform`] | carries out one effect outside the cluster | no |
//! | [`Reconciler::report`] | returns the new status, conditions and events | yes |

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use metrics::{Label, counter};

use super::ObjectKey;
use super::apply::Failure;
use super::error::ApiError;
use super::events::EventNote;
use super::object_events::ObjectEvents;
use super::plan::{KindInfo, ObjectPatch, Plan};
use super::problem::Problem;
use super::watch::Selection;
use crate::api::{Kind, Object};

/// A control loop over the objects of one kind.
///
/// The process may die between any two writes and effects of a plan. The next reconcile observes what exists and plans
/// the rest.
pub trait Reconciler: Sized + Send + Sync + 'static {
    /// The name of the loop: its key in the configuration, its label in metrics, its name in logs.
    const NAME: &'static str;
    /// The finalizer that the loop adds to its objects. Without one, an object that is being deleted is left to the
    /// garbage collector.
    const FINALIZER: Option<&'static str> = None;
    /// Whether the loop writes the status of its objects. If not, its reports return the status that exists.
    const WRITES_STATUS: bool = true;
    /// The kind of the objects that the loop reconciles.
    type Kind: Kind;
    /// The object, and everything else that plan and report depend on, except the settings and the time.
    type Observed: AsRef<Object<Self::Kind>> + AsMut<Arc<Object<Self::Kind>>> + Send + Sync;
    /// The settings that plan and report depend on. They do not change while the process runs.
    type Settings: Send + Sync;
    /// The type of effects outside the cluster; `()` for loops without any.
    type Effect: Effect;

    /// Returns the plan for an object: a pure function. For an object that is being deleted, it is called only while
    /// the object has [`Reconciler::FINALIZER`].
    fn plan(observed: &Self::Observed, settings: &Self::Settings, now: Timestamp) -> Plan<Self::Effect>;

    /// Returns the report of a reconcile, a pure function; by default, nothing is reported.
    fn report(done: &Reconciled<'_, Self::Observed, Self::Settings, Self::Effect>) -> Report<Self::Kind> {
        Report::unchanged(done.observed.as_ref())
    }

    /// Returns the objects that a new leader reads from the API server before its first reconcile. It is for loops that
    /// allocate unique values, because watches may lag behind. The loop must write these kinds.
    fn read_first(&self) -> Vec<(KindInfo, Selection)> {
        Vec::new()
    }

    /// Reads an object and its children from the stores; `None` if it does not exist or is not ours.
    fn observe(&self, key: &ObjectKey) -> Option<Self::Observed>;

    /// Completes an observation, before its plan or its report. For a report, `planned` is the observation of the plan.
    fn complete(
        _observed: &mut Self::Observed,
        _planned: Option<&Self::Observed>,
        _settings: &Self::Settings,
    ) {
    }

    /// Carries out one effect of a plan, concurrently with the writes. It must be idempotent.
    fn perform(
        &self,
        _observed: &Self::Observed,
        _effect: &Self::Effect,
    ) -> impl Future<Output = EffectOutcome<EffectResult<Self>>> + Send {
        async { EffectOutcome { result: None, error: None } }
    }

    /// Returns the counter to increment when a status cannot be written.
    fn status_error() -> Option<Counter> {
        None
    }

    /// Returns the events that the loop reads about the objects that its plans await ([`Plan::awaited`]).
    fn object_events(&self) -> Option<&ObjectEvents> {
        None
    }

    /// Drops the loop's in-memory state of an object that no longer exists, or is left to the garbage collector.
    fn forget(&self, _key: &ObjectKey) {}

    /// Updates the loop's in-memory state of an object after its plan was carried out.
    fn settle(&self, _observed: &Self::Observed, _outcome: &Outcome<EffectResult<Self>>) {}
}

/// A plan and its outcome, which a report is about.
pub struct Reconciled<'a, O, S, E: Effect = ()> {
    /// The object, observed again after the writes, so that it contains their responses. Its generation is the
    /// generation of the plan.
    pub observed: &'a O,
    /// The settings of the loop.
    pub settings: &'a S,
    /// The plan.
    pub plan: &'a Plan<E>,
    /// The outcome of the plan.
    pub outcome: &'a Outcome<E::Result>,
    /// The time of the report.
    pub now: Timestamp,
}

#[cfg(test)]
impl<'a, O, S, E: Effect> Reconciled<'a, O, S, E> {
    /// Creates one for a test of a report.
    pub fn of(
        observed: &'a O,
        settings: &'a S,
        plan: &'a Plan<E>,
        outcome: &'a Outcome<E::Result>,
        now: Timestamp,
    ) -> Self {
        Self { observed, settings, plan, outcome, now }
    }
}

/// An action outside the cluster.
pub trait Effect: Send + Sync {
    /// The result for the report.
    type Result: Send + Sync;
}

impl Effect for () {
    type Result = ();
}

/// The result of the effects of a loop.
pub type EffectResult<R> = <<R as Reconciler>::Effect as Effect>::Result;

/// The outcome of one effect: a result, an error, or both when it was carried out in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectOutcome<R> {
    /// Its result.
    pub result: Option<R>,
    /// The error, if it failed completely or in part.
    pub error: Option<EffectError>,
}

impl<R> EffectOutcome<R> {
    /// The outcome of an effect that succeeded.
    pub fn done(result: R) -> Self {
        Self { result: Some(result), error: None }
    }
}

/// The reason why an effect could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectError {
    /// The lease is not held (any more): nothing was changed.
    NotLeader,
    /// It failed, and is retried with backoff.
    Failed(Problem),
    /// It was not carried out yet. The problem is reported, but does not count as a failure: the component that carries
    /// out the effect adds the object to the queue when it can continue.
    Postponed(Problem),
}

/// The outcome of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<R> {
    /// Whether the plan was carried out. `false` only in the report that is written beforehand ([`Plan::announce`]).
    pub is_applied: bool,
    /// The writes that failed.
    pub failures: Vec<Failure>,
    /// The outcome of each effect, in the order of the plan.
    pub effects: Vec<EffectOutcome<R>>,
}

impl<R> Default for Outcome<R> {
    fn default() -> Self {
        Self { is_applied: true, failures: Vec::new(), effects: Vec::new() }
    }
}

impl<R> Outcome<R> {
    /// The outcome of a plan without effects.
    #[cfg(test)]
    pub fn of(failures: Vec<Failure>) -> Self {
        Self { failures, ..Self::default() }
    }

    /// The outcome of a plan that has not been carried out yet.
    pub fn pending() -> Self {
        Self { is_applied: false, ..Self::default() }
    }

    /// The problems of the effects that failed or were postponed.
    pub fn effect_problems(&self) -> impl Iterator<Item = &Problem> {
        self.effects.iter().filter_map(|effect| match &effect.error {
            Some(EffectError::Failed(problem) | EffectError::Postponed(problem)) => Some(problem),
            _ => None,
        })
    }

    /// The problems of the effects that failed.
    pub fn effect_failures(&self) -> impl Iterator<Item = &Problem> {
        self.effects.iter().filter_map(|effect| match &effect.error {
            Some(EffectError::Failed(problem)) => Some(problem),
            _ => None,
        })
    }

    /// Whether all writes and effects succeeded.
    pub fn is_success(&self) -> bool {
        self.failures.is_empty() && self.effects.iter().all(|effect| effect.error.is_none())
    }

    /// Returns a deletion that was not sent because a precondition did not hold.
    pub fn stale(&self) -> Option<&Failure> {
        self.failures.iter().find(|failure| matches!(failure.error, ApiError::Stale(_)))
    }

    /// Whether a write or an effect was not sent because the lease is not held.
    pub fn lost_lease(&self) -> bool {
        self.failures.iter().any(|failure| failure.error == ApiError::NotLeader)
            || self.effects.iter().any(|effect| effect.error == Some(EffectError::NotLeader))
    }
}

/// The report of a reconcile: the status, the events, the metrics and the log line to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Report<K: Kind> {
    /// The whole status. It is written if it differs from the one in the store.
    pub status: K::Status,
    /// Events about the changes.
    pub events: Vec<EventNote>,
    /// A patch of the object itself, written before the status.
    pub patch: Option<ObjectPatch>,
    /// Whether the object is reconciled again at once, because an effect has changed something that the plan depends
    /// on.
    pub requeue_at_once: bool,
    /// The maximum time until the next reconcile, because the status changes then.
    pub requeue_after: Option<Duration>,
    /// Counters that every report increments.
    pub counters: Vec<Counter>,
    /// A log line, written after the status and only if the status differed.
    pub log: Option<String>,
    /// Values for histograms, recorded under the same condition.
    pub measurements: Vec<Measurement>,
}

impl<K: Kind> Report<K> {
    /// Creates a report with a status and events.
    pub fn new(status: K::Status, events: Vec<EventNote>) -> Self {
        Self {
            status,
            events,
            patch: None,
            requeue_at_once: false,
            requeue_after: None,
            counters: Vec::new(),
            log: None,
            measurements: Vec::new(),
        }
    }

    /// Creates a report without changes: the status is kept.
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

impl Counter {
    /// Increments the counter.
    pub fn increment(&self) {
        counter!(self.name, labels_of(&self.labels)).increment(1);
    }

    /// Creates the series with the value 0, if it does not exist.
    pub fn start(&self) {
        counter!(self.name, labels_of(&self.labels)).increment(0);
    }
}

/// Converts labels to the recorder's type.
pub fn labels_of(labels: &Labels) -> Vec<Label> {
    labels.iter().map(|(name, value)| Label::new(*name, value.clone())).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::component::Component;

    fn failed(error: ApiError) -> Outcome<()> {
        let failure = Failure { component: Component::Whole, kind: "Service", name: "s".to_owned(), error };
        Outcome { failures: vec![failure], ..Outcome::default() }
    }

    fn effect(error: Option<EffectError>) -> Outcome<()> {
        Outcome {
            effects: vec![EffectOutcome::done(()), EffectOutcome { result: None, error }],
            ..Outcome::default()
        }
    }

    #[test]
    fn an_outcome_classifies_its_failures() {
        let problem = || Problem::fault(Component::Whole, crate::api::reason::INVALID_SPEC, "why".to_owned());
        let other = ApiError::Invalid("no".to_owned());
        let stale = ApiError::Stale("it changed".to_owned());
        for (outcome, is_success, is_stale, is_lost, failed_effects) in [
            (Outcome::default(), true, false, false, 0),
            (failed(other), false, false, false, 0),
            (failed(stale), false, true, false, 0),
            (failed(ApiError::NotLeader), false, false, true, 0),
            (effect(None), true, false, false, 0),
            (effect(Some(EffectError::NotLeader)), false, false, true, 0),
            (effect(Some(EffectError::Failed(problem()))), false, false, false, 1),
            (effect(Some(EffectError::Postponed(problem()))), false, false, false, 0),
        ] {
            let said = (outcome.is_success(), outcome.stale().is_some(), outcome.lost_lease());
            assert_eq!(said, (is_success, is_stale, is_lost), "{outcome:?}");
            assert_eq!(outcome.effect_failures().count(), failed_effects, "{outcome:?}");
        }
    }

    #[test]
    fn a_counter_exists_before_its_first_increment() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let counter = Counter { name: "things_total", labels: vec![("kind", "odd".to_owned())] };
        let shows = |value: u32| {
            let line = format!("things_total{{kind=\"odd\"}} {value}");
            let text = handle.render();
            assert!(text.lines().any(|shown| shown == line), "{line} not in:\n{text}");
        };
        metrics::with_local_recorder(&recorder, || {
            counter.start();
            shows(0);
            counter.increment();
            counter.start();
            shows(1);
        });
    }
}
