//! The memory and the processor time of the daemon over the whole run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::rounded;
use crate::harness::Usage;

/// Takes a sample every few seconds until it is dropped.
pub struct Recorder {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    begin: Instant,
    usage: Usage,
    is_over: AtomicBool,
    /// How many Instances have been accepted.
    instances: AtomicUsize,
    /// Seconds since the start, Instances, memory in MiB, processor time in seconds.
    samples: Mutex<Vec<[f64; 4]>>,
    /// When each phase began, in seconds since the start.
    phases: Mutex<Vec<(String, f64)>>,
}

impl Recorder {
    /// Begins to take samples of a process.
    pub fn start(usage: Usage, pause: Duration) -> Self {
        let state = Arc::new(State {
            begin: Instant::now(),
            usage,
            is_over: AtomicBool::new(false),
            instances: AtomicUsize::new(0),
            samples: Mutex::default(),
            phases: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            // Without a pause, the first sample would be of a process that has not begun. The thread ends with the
            // process, too.
            thread::park_timeout(pause);
            while !shared.is_over.load(Ordering::Relaxed) && shared.sample().is_ok() {
                thread::park_timeout(pause);
            }
        });
        Self { state, thread: Some(thread) }
    }

    /// Notes that one more Instance has been accepted.
    pub fn accepted(&self) {
        self.state.instances.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a phase begins now.
    pub fn begin(&self, phase: impl Into<String>) {
        let phase = phase.into();
        eprintln!("{phase} …");
        let seconds = rounded(self.state.begin.elapsed().as_secs_f64());
        self.state.phases.lock().push((phase, seconds));
    }

    /// The phases, each with its start, and the samples.
    pub fn as_json(&self) -> (Value, Value) {
        let phases = self.state.phases.lock();
        let samples = self.state.samples.lock();
        (json!(*phases), json!(*samples))
    }
}

impl State {
    fn sample(&self) -> anyhow::Result<()> {
        let instances = u32::try_from(self.instances.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        let sample = [
            rounded(self.begin.elapsed().as_secs_f64()),
            f64::from(instances),
            rounded(self.usage.mebibytes("VmRSS")?),
            rounded(self.usage.processor_seconds()?),
        ];
        self.samples.lock().push(sample);
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
