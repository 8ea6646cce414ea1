//! The thread that captures packets and counts the connections that they open.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use metrics::{Gauge, counter, gauge};
use tokio::sync::watch;

use super::block::Packets;
use super::counter::ConnectionCounter;
use super::filter::program;
use super::geometry::Geometry;
use super::packet::{self, Tracked};
use super::repeats::Repeats;
use super::ring::{self, Ring, Statistics, Wake};
use crate::runtime::clock;
use crate::runtime::queue::Backoff;

/// The name of the thread, in at most 15 bytes.
pub const THREAD: &str = "ssh-tracker";
/// The backoff after failures.
const RETRY: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(2) };

/// The settings of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the interface; `None` for all interfaces.
    pub interface: Option<String>,
    /// Which connections are counted.
    pub tracked: Tracked,
    /// The number of bytes captured of a packet, from 64 to 65,535.
    pub snap_length: u32,
}

/// The state of the thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It was just started.
    Starting,
    /// It captures.
    Capturing,
    /// Capturing fails for this reason; the thread retries.
    Failing(String),
}

/// A running thread that captures.
pub struct Capture {
    state: watch::Receiver<State>,
    /// Closed to ask the thread to stop.
    stop: PipeWriter,
    thread: JoinHandle<()>,
}

impl Capture {
    /// Starts the thread. It counts into `counter`.
    ///
    /// # Errors
    /// When there is not enough memory or no file descriptor.
    pub fn start(settings: Settings, counter: Arc<ConnectionCounter>) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let (sender, state) = watch::channel(State::Starting);
        // All metrics start at zero.
        gauge!("bastion_ssh_tracker_running").set(0.0);
        add(Statistics { packets: 0, drops: 0, freezes: 0 });
        let thread = Thread { settings, counter, state: sender, stop: stopped };
        let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(move || thread.run())?;
        Ok(Self { state, stop, thread })
    }

    /// Returns the state, as a channel that follows it. The channel closes when the thread has ended, which happens
    /// only if it panics.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Stops the thread and waits until it has ended. It first counts the packets that it has already received. Returns
    /// false if the thread panicked.
    pub fn stop(self) -> bool {
        drop(self.stop);
        self.thread.join().is_ok()
    }
}

/// Adds the kernel's counts to the metrics.
fn add(Statistics { packets, drops, freezes }: Statistics) {
    counter!("bastion_ssh_tracker_packets_total").increment(packets.into());
    counter!("bastion_ssh_tracker_drops_total").increment(drops.into());
    counter!("bastion_ssh_tracker_freezes_total").increment(freezes.into());
}

/// A gauge that is set to 0 on drop, so also after an error or a panic.
struct Running(Gauge);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set(0.0);
    }
}

/// The context of the thread.
struct Thread {
    settings: Settings,
    counter: Arc<ConnectionCounter>,
    state: watch::Sender<State>,
    stop: PipeReader,
}

impl Thread {
    fn run(self) {
        let mut repeats = Repeats::new(Instant::now());
        let mut failures = 0;
        loop {
            let begin = Instant::now();
            let Err(reason) = self.capture(&mut repeats) else { return };
            if begin.elapsed() > RETRY.cap {
                failures = 0;
            }
            failures += 1;
            self.set(&State::Failing(reason));
            if ring::closes(self.stop.as_fd(), RETRY.wait(failures)) {
                return;
            }
        }
    }

    fn set(&self, state: &State) {
        self.state.send_if_modified(|now| std::mem::replace(now, state.clone()) != *state);
    }

    /// Captures until it is asked to stop. The error is a sentence that says why capturing failed.
    fn capture(&self, repeats: &mut Repeats) -> Result<(), String> {
        let Settings { interface, tracked, snap_length } = &self.settings;
        let missing = || self.reason(&io::ErrorKind::NotFound.into());
        let index = interface.as_ref().map_or(Ok(0), |name| ring::interface(name).ok_or_else(missing))?;
        let geometry = Geometry::new(*snap_length);
        let program = program(*tracked, geometry.accepted);
        let mut ring = Ring::open(index, &program, geometry).map_err(|error| self.reason(&error))?;
        let running = Running(gauge!("bastion_ssh_tracker_running"));
        running.0.set(1.0);
        self.set(&State::Capturing);
        loop {
            let wake = ring.wait(self.stop.as_fd()).map_err(|error| self.reason(&error))?;
            self.count(&mut ring, repeats);
            match wake {
                Wake::Packets => {}
                Wake::Stop => return Ok(()),
                Wake::Error => {
                    let error = ring.error().unwrap_or_else(|| io::ErrorKind::NetworkDown.into());
                    return Err(self.reason(&error));
                }
            }
        }
    }

    /// Counts the connections in the blocks that the kernel has handed over.
    fn count(&self, ring: &mut Ring, repeats: &mut Repeats) {
        let tracked = self.settings.tracked;
        let mut read = |block: &[u8]| {
            let (instant, time) = (Instant::now(), clock::stated());
            for attempt in Packets::new(block).filter_map(|packet| packet::attempt(&packet, tracked)) {
                if repeats.is_first(&attempt, instant) {
                    self.counter.count_at(attempt.destination, time);
                }
            }
        };
        while ring.next_block(&mut read) {}
        if let Ok(statistics) = ring.statistics() {
            add(statistics);
        }
    }

    /// Returns the reason why an error prevents capturing, as a sentence.
    fn reason(&self, error: &io::Error) -> String {
        let interface = self.settings.interface.as_deref().unwrap_or("any");
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "the capability NET_RAW is missing: add it to the container's \
                 securityContext.capabilities"
                    .to_owned()
            }
            io::ErrorKind::NotFound => format!("interface {interface} not found: waiting for it"),
            io::ErrorKind::NetworkDown => format!("interface {interface} is down: waiting for it"),
            _ => format!("packets of interface {interface} cannot be captured: {error}"),
        }
    }
}
