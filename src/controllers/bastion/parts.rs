//! One state of readiness for the two tasks of the loop.

use std::sync::{Arc, Mutex, PoisonError};

use crate::runtime::replica::Health;

/// The states of the tasks: nothing before the first result, then that of the last attempt.
type States = [Option<Result<(), String>>; 2];

/// Reports for one task. The loop is ready once both tasks are.
#[derive(Clone)]
pub struct Part {
    index: usize,
    states: Arc<Mutex<States>>,
    health: Health,
}

/// Reports for each of the two tasks.
pub fn parts(health: &Health) -> [Part; 2] {
    let states = Arc::<Mutex<States>>::default();
    [0, 1].map(|index| Part { index, states: Arc::clone(&states), health: health.clone() })
}

impl Part {
    /// The task has succeeded, or failed for the reason that the sentence says.
    pub fn report(&self, result: Result<(), String>) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = states.get_mut(self.index) {
            *own = Some(result);
        }
        let failures: Vec<&str> =
            states.iter().flatten().filter_map(|state| Some(state.as_ref().err()?.as_str())).collect();
        if !failures.is_empty() {
            self.health.failing(failures.join("; "));
        } else if states.iter().all(Option::is_some) {
            self.health.ready();
        }
    }
}
