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
/// The waits after failures.
const RETRY: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(2) };

/// What is captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the interface; `None` for all of them.
    pub interface: Option<String>,
    /// Which connections are counted.
    pub tracked: Tracked,
    /// The bytes of a packet that are captured, from 64 to 65,535.
    pub snap_length: u32,
}

/// What the thread does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has just been started.
    Starting,
    /// It captures.
    Capturing,
    /// It does not capture, for the reason that the sentence says, and tries again.
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
    /// When there is no memory or file descriptor for it.
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

    /// The state, which changes. The channel is closed when the thread has ended, which it does by a panic alone.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Stops the thread and waits until it has ended, which takes no longer than counting what it has got. Returns
    /// whether it ended as it should.
    pub fn stop(self) -> bool {
        drop(self.stop);
        self.thread.join().is_ok()
    }
}

/// Adds what the kernel says of the ring to the metrics.
fn add(Statistics { packets, drops, freezes }: Statistics) {
    counter!("bastion_ssh_tracker_packets_total").increment(packets.into());
    counter!("bastion_ssh_tracker_drops_total").increment(drops.into());
    counter!("bastion_ssh_tracker_freezes_total").increment(freezes.into());
}

/// While it lives, packets are captured: the gauge is 0 however that ends.
struct Running(Gauge);

impl Running {
    fn begin() -> Self {
        let gauge = gauge!("bastion_ssh_tracker_running");
        gauge.set(1.0);
        Self(gauge)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set(0.0);
    }
}

/// What the thread has.
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
            self.set(State::Failing(reason));
            if ring::closes(self.stop.as_fd(), RETRY.wait(failures)) {
                return;
            }
        }
    }

    fn set(&self, state: State) {
        self.state.send_if_modified(|now| {
            let is_new = *now != state;
            *now = state;
            is_new
        });
    }

    /// Captures until it is asked to stop. The error is the sentence that says why it cannot go on.
    fn capture(&self, repeats: &mut Repeats) -> Result<(), String> {
        let Settings { interface, tracked, snap_length } = &self.settings;
        let index = match interface {
            None => 0,
            Some(name) => {
                ring::interface(name).ok_or_else(|| self.reason(&io::ErrorKind::NotFound.into()))?
            }
        };
        let geometry = Geometry::new(*snap_length);
        let program = program(*tracked, geometry.accepted);
        let mut ring = Ring::open(index, &program, geometry).map_err(|error| self.reason(&error))?;
        let _running = Running::begin();
        self.set(State::Capturing);
        loop {
            let wake = ring.wait(self.stop.as_fd()).map_err(|error| self.reason(&error))?;
            self.count(&mut ring, repeats);
            match wake {
                Wake::Packets => {}
                Wake::Stop => return Ok(()),
                Wake::Error => match ring.error() {
                    Some(error) => return Err(self.reason(&error)),
                    None => return Err(self.reason(&io::ErrorKind::NetworkDown.into())),
                },
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

    /// Why an error keeps it from capturing, as a sentence.
    fn reason(&self, error: &io::Error) -> String {
        let interface = self.settings.interface.as_deref().unwrap_or("any");
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "the capability NET_RAW is missing: add it to the container's \
                 securityContext.capabilities"
                    .to_owned()
            }
            io::ErrorKind::NotFound => format!("there is no interface {interface}: waiting for it"),
            io::ErrorKind::NetworkDown => format!("the interface {interface} is down: waiting for it"),
            _ => format!("packets of the interface {interface} cannot be captured: {error}"),
        }
    }
}
