//! The work of one loop in Keycloak, which does not block its workers.
//!
//! The work on one object is a separate task. A reconcile waits for its result for at most [`PATIENCE`], and not at all
//! while Keycloak is slow. A later result is stored and adds the object to the queue, and the next reconcile takes it.
//! During an outage no work starts; the waiting objects are added to the queue when it ends.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::outage::Outage;
use crate::api::{Kind, Object, reason};
use crate::clients::keycloak::KeycloakError;
use crate::controllers::accounts::{self, KEYCLOAK};
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::reconciler::{Effect, EffectError, EffectOutcome};

/// The longest time that a reconcile waits for a result. Unless Keycloak is overloaded, an account is read and changed
/// in less.
const PATIENCE: Duration = Duration::from_millis(500);
/// The maximum number of objects of a loop with running work.
const MOST_AT_ONCE: usize = 8;

/// The result of the work on an object: a value, an error, or both after partial success.
pub type Worked<R> = (Option<R>, Option<KeycloakError>);

/// The work of one loop.
pub struct AccountWork<E: Effect> {
    shared: Arc<Shared<E>>,
}

struct Shared<E: Effect> {
    outage: Outage,
    queue: Arc<Queue>,
    state: Mutex<State<E>>,
    slots: Semaphore,
}

struct State<E: Effect> {
    tasks: HashMap<ObjectKey, Task<E>>,
    /// The last requested effect of each object, and whether it is up to date.
    asked: HashMap<ObjectKey, (Subject<E>, bool)>,
    /// The objects that wait for the end of the outage.
    waiting: HashSet<ObjectKey>,
    /// The number of the last task of any object.
    serial: u64,
}

struct Task<E: Effect> {
    serial: u64,
    /// The effect that the task carries out.
    subject: Subject<E>,
    /// Its result, if no reconcile was waiting for it when it ended.
    outcome: Option<EffectOutcome<E::Result>>,
}

#[derive(Clone, PartialEq)]
struct Subject<E> {
    uid: String,
    generation: Option<i64>,
    effect: E,
}

/// The end of a task.
enum WorkResult<R> {
    Done(EffectOutcome<R>),
    /// Keycloak has not answered, or rejects the credentials.
    Outage(KeycloakError),
}

/// The state of the work when an effect is requested.
enum Present<R> {
    Done(EffectOutcome<R>),
    Running(oneshot::Receiver<WorkResult<R>>),
    Waits(Problem),
}

impl<E: Effect + Clone + PartialEq + 'static> AccountWork<E> {
    /// Starts without any work. Results add their objects to `queue`.
    pub fn new(outage: &Outage, queue: &Arc<Queue>) -> Self {
        let state =
            State { tasks: HashMap::new(), asked: HashMap::new(), waiting: HashSet::new(), serial: 0 };
        let shared = Arc::new(Shared {
            outage: outage.clone(),
            queue: Arc::clone(queue),
            state: Mutex::new(state),
            slots: Semaphore::new(MOST_AT_ONCE),
        });
        let waiting = Arc::downgrade(&shared);
        outage.on_end(move || {
            if let Some(shared) = waiting.upgrade() {
                shared.release();
            }
        });
        Self { shared }
    }

    /// Carries out an effect of an object with `work`, or continues the running task. While there is no result, no
    /// problem is reported for an object that is known to be up to date, either from the last result or, before this
    /// process's first one, from its status (`is_settled`).
    pub async fn perform<T: Kind>(
        &self,
        object: &Object<T>,
        effect: &E,
        is_settled: bool,
        work: impl Future<Output = Worked<E::Result>> + Send + 'static,
    ) -> EffectOutcome<E::Result> {
        let subject = Subject {
            uid: object.uid().to_owned(),
            generation: object.metadata.generation,
            effect: effect.clone(),
        };
        let (outage, key) = (&self.shared.outage, ObjectKey::of(object));
        let is_settled = self.shared.ask(&key, &subject, is_settled);
        let done = |outcome: EffectOutcome<E::Result>| {
            self.shared.settle(&key, outcome.error.is_none());
            outcome
        };
        let problem = match self.shared.begin(key.clone(), subject, work) {
            Present::Done(outcome) => return done(outcome),
            Present::Waits(problem) => problem,
            Present::Running(mut result) => {
                let patience = if outage.is_slow() { Duration::ZERO } else { PATIENCE };
                let end = if let Ok(end) = tokio::time::timeout(patience, &mut result).await {
                    end.ok()
                } else {
                    result.close();
                    result.try_recv().ok()
                };
                match end {
                    Some(WorkResult::Done(outcome)) => return done(outcome),
                    Some(WorkResult::Outage(error)) => accounts::problem(&error),
                    None => {
                        outage.set_slow(true);
                        pending()
                    }
                }
            }
        };
        let error = (!is_settled).then_some(EffectError::Postponed(problem));
        EffectOutcome { result: None, error }
    }

    /// Drops the state of an object. A running task ends on its own.
    pub fn forget(&self, key: &ObjectKey) {
        let mut state = self.shared.state.lock();
        state.tasks.remove(key);
        state.asked.remove(key);
        state.waiting.remove(key);
    }
}

impl<E: Effect + Clone + PartialEq + 'static> Shared<E> {
    /// Records the requested effect of an object, and returns whether it is already up to date.
    fn ask(&self, key: &ObjectKey, subject: &Subject<E>, by_status: bool) -> bool {
        let mut state = self.state.lock();
        let is_settled = match state.asked.get(key) {
            Some((asked, is_settled)) => asked == subject && *is_settled,
            None => by_status,
        };
        state.asked.insert(key.clone(), (subject.clone(), is_settled));
        is_settled
    }

    /// Records whether the last requested effect of an object is up to date.
    fn settle(&self, key: &ObjectKey, is_done: bool) {
        if let Some((_, is_settled)) = self.state.lock().asked.get_mut(key) {
            *is_settled = is_done;
        }
    }

    /// Takes the result of an object, or starts its task unless one is running.
    fn begin(
        self: &Arc<Self>,
        key: ObjectKey,
        subject: Subject<E>,
        work: impl Future<Output = Worked<E::Result>> + Send + 'static,
    ) -> Present<E::Result> {
        let mut state = self.state.lock();
        match state.tasks.get_mut(&key).map(|task| (task.subject == subject, task.outcome.take())) {
            Some((true, Some(outcome))) => {
                state.tasks.remove(&key);
                return Present::Done(outcome);
            }
            Some((_, None)) => return Present::Waits(pending()),
            // The result of another generation does not apply to this one.
            Some((false, Some(_))) => drop(state.tasks.remove(&key)),
            None => {}
        }
        if let Some(error) = self.outage.reason() {
            state.waiting.insert(key);
            drop(state);
            self.check();
            return Present::Waits(accounts::problem(&error));
        }
        state.serial += 1;
        let serial = state.serial;
        state.tasks.insert(key.clone(), Task { serial, subject, outcome: None });
        drop(state);
        let (sender, receiver) = oneshot::channel();
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let end = shared.work(work).await;
            shared.end(key, serial, end, sender);
        });
        Present::Running(receiver)
    }

    async fn work(&self, work: impl Future<Output = Worked<E::Result>>) -> WorkResult<E::Result> {
        // The semaphore is never closed.
        let _slot = self.slots.acquire().await;
        if let Some(error) = self.outage.reason() {
            return WorkResult::Outage(error);
        }
        let Ok((result, error)) = AssertUnwindSafe(work).catch_unwind().await else {
            let message = "the work in Keycloak panicked; this is a defect of the daemon";
            let problem = Problem::elsewhere(Component::Part(KEYCLOAK), reason::KEYCLOAK_PANICKED, message);
            let error = Some(EffectError::Failed(problem));
            return WorkResult::Done(EffectOutcome { result: None, error });
        };
        match error {
            // A result means that there was an answer. Only the failed part is retried.
            Some(error) if result.is_none() && error.is_outage() => {
                self.outage.begin(&error);
                WorkResult::Outage(error)
            }
            error => {
                self.outage.set_slow(false);
                WorkResult::Done(EffectOutcome { result, error: error.map(accounts::effect_error) })
            }
        }
    }

    /// Passes the result to the reconcile that waits for it, or stores it for the next one.
    fn end(
        &self,
        key: ObjectKey,
        serial: u64,
        end: WorkResult<E::Result>,
        waits: oneshot::Sender<WorkResult<E::Result>>,
    ) {
        let mut state = self.state.lock();
        if state.tasks.get(&key).is_none_or(|task| task.serial != serial) {
            return; // forgotten
        }
        let is_outage = matches!(end, WorkResult::Outage(_));
        if is_outage {
            state.waiting.insert(key.clone());
        }
        let priority = match waits.send(end) {
            Ok(()) => {
                state.tasks.remove(&key);
                None
            }
            Err(WorkResult::Outage(_)) => {
                state.tasks.remove(&key);
                Some(Priority::Background)
            }
            Err(WorkResult::Done(outcome)) => {
                if let Some(task) = state.tasks.get_mut(&key) {
                    task.outcome = Some(outcome);
                }
                Some(Priority::Change)
            }
        };
        drop(state);
        if let Some(priority) = priority {
            self.queue.add(key, priority);
        }
        if is_outage {
            self.check();
        }
    }

    /// Releases waiting objects if the outage ended just before an object began to wait.
    fn check(&self) {
        if self.outage.reason().is_none() {
            self.release();
        }
    }

    /// Adds the objects that wait to the queue.
    fn release(&self) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        for key in waiting {
            self.queue.add(key, Priority::Background);
        }
    }
}

/// The problem that is reported while there is no result yet.
fn pending() -> Problem {
    let message = "Keycloak has not answered yet; the account and its roles follow when it does";
    Problem::waiting(Component::Part(KEYCLOAK), reason::KEYCLOAK_PENDING, message)
}

#[cfg(test)]
mod tests;
