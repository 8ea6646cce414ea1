//! A tokio runtime for the test cluster, so that its methods can be called from any test, async or not.

use std::future::Future;
use std::sync::mpsc::channel;

use anyhow::{Result, anyhow};
use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime with its own thread; its tasks end when it is dropped.
pub struct Background {
    runtime: Option<Runtime>,
}

impl Background {
    /// Starts the runtime.
    pub fn start(name: &str) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// The handle that starts tasks.
    pub fn handle(&self) -> &Handle {
        // Only `drop` takes it.
        self.runtime.as_ref().expect("the runtime lives until it is dropped").handle()
    }

    /// Runs a future to its end and returns its result. It blocks, and may be called from a thread of another runtime.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let (sender, result) = channel();
        self.handle().spawn(async move {
            // The receiver is still there: it waits below.
            let _ = sender.send(work.await);
        });
        result.recv().map_err(|_| anyhow!("a task of the test cluster panicked"))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // An ordinary drop would block, which panics inside an async test.
            runtime.shutdown_background();
        }
    }
}
