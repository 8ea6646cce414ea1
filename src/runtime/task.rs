//! Tasks that must not end while the process runs.

use std::collections::HashMap;
use std::future::Future;

use futures::future::{BoxFuture, FutureExt};
use tokio::task::JoinSet;

/// A task that must not end.
pub struct Task {
    name: &'static str,
    future: BoxFuture<'static, ()>,
}

impl Task {
    /// Creates a task with this name.
    pub fn new(name: &'static str, future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { name, future: future.boxed() }
    }

    /// Starts the task now, and not with the others in [`first_ended`]. If it is dropped, it is aborted.
    pub fn start(self) -> Self {
        let mut running = JoinSet::new();
        running.spawn(self.future);
        Self::new(self.name, async move {
            running.join_next().await;
        })
    }
}

/// Runs all tasks, and returns the name of the first one that ends.
pub async fn first_ended(tasks: Vec<Task>) -> &'static str {
    let mut running = JoinSet::new();
    let names: HashMap<_, _> =
        tasks.into_iter().map(|task| (running.spawn(task.future).id(), task.name)).collect();
    let Some(ended) = running.join_next_with_id().await else { return std::future::pending().await };
    let id = ended.map_or_else(|panicked| panicked.id(), |(id, ())| id);
    names.get(&id).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_started_task_runs_at_once_and_is_aborted_when_it_is_dropped() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let task = Task::new("serves", async move {
            let _ = sender.send(()).await;
            std::future::pending::<()>().await;
        });
        let task = task.start();
        assert_eq!(receiver.recv().await, Some(()));
        drop(task);
        assert_eq!(receiver.recv().await, None, "its sender is dropped");
        assert_eq!(first_ended(vec![Task::new("ends", async {}).start()]).await, "ends");
        assert_eq!(first_ended(vec![Task::new("ends", async { panic!("a defect") }).start()]).await, "ends");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_task_that_ends_or_panics_is_named() {
        let tasks = |end: BoxFuture<'static, ()>| {
            vec![Task::new("goes on", std::future::pending()), Task::new("ends", end)]
        };
        assert_eq!(first_ended(tasks(async {}.boxed())).await, "ends");
        assert_eq!(first_ended(tasks(async { panic!("a defect") }.boxed())).await, "ends");
        assert_eq!(first_ended(Vec::new()).now_or_never(), None);
    }
}
