//! The SSH tracker: counts the SSH connections from the bastion to Instances, and reports the open ones.
//!
//! | part | where |
//! |---|---|
//! | the thread that captures packets and counts; the table of open connections | `crate::capture` |
//! | the addresses of Instances | `controllers/shared/addresses.rs` |
//! | start, health and stop of the thread; the intervals of table reads | here |

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

use super::setup::{ReplicaDefinition, Setup};
use super::shared::addresses::InstanceAddresses;
use crate::capture::{Capture, ConnectionCounter, OpenConnections, Settings, State, Tracked};
use crate::config::{SshTrackerConfig, read};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;

/// The delay before a failed thread is replaced.
const PAUSE: Duration = Duration::from_secs(1);
/// The time between two readings of the table of connections.
const READING: Duration = Duration::from_secs(15);

/// The loop of the SSH tracker.
pub struct SshTrackerLoop {
    settings: Settings,
    counter: Arc<ConnectionCounter>,
    open: Arc<OpenConnections>,
}

impl SshTrackerLoop {
    /// A loop that captures with these settings.
    pub fn new(settings: Settings, counter: Arc<ConnectionCounter>, open: Arc<OpenConnections>) -> Self {
        Self { settings, counter, open }
    }

    /// Reads the open connections. The error is a sentence with the reason.
    async fn read_table(&self) -> Result<(), String> {
        let (open, counter) = (Arc::clone(&self.open), Arc::clone(&self.counter));
        let tracked = self.settings.tracked;
        let read = move || open.read(tracked, |destination| counter.is_known(destination));
        let result =
            tokio::task::spawn_blocking(read).await.unwrap_or_else(|ended| Err(io::Error::other(ended)));
        result.map_err(|error| format!("cannot read the open connections, the previous ones count: {error}"))
    }

    /// Reports the state of the thread until it is asked to stop or has failed, and reads the open connections in the
    /// meantime.
    async fn follow(&self, capture: Capture, readings: &mut Interval, health: &Health, stop: &Stop) {
        let mut states = capture.state();
        let mut table = Ok(());
        loop {
            let state = states.borrow_and_update().clone();
            match (state, &table) {
                (State::Starting, _) => {}
                (State::Failing(why), _) => health.failing(why),
                (State::Capturing, Err(why)) => health.failing(String::clone(why)),
                (State::Capturing, Ok(())) => health.ready(),
            }
            tokio::select! {
                changed = states.changed() => if changed.is_err() { break },
                _ = readings.tick() => table = self.read_table().await,
                () = stop.asked() => break,
            }
        }
        // The thread has ended, or ends after it has counted the captured packets.
        let ended = tokio::task::spawn_blocking(|| capture.stop()).await;
        if !matches!(ended, Ok(true)) {
            health.failing("the capture thread panicked, which is a defect of the daemon; it is restarted");
        }
    }
}

impl ReplicaDefinition for SshTrackerLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let SshTrackerConfig { interface, port, snaplen, ipv6, by_instance, .. } =
            read!(setup.config, controllers.ssh_tracker).clone();
        let counter = Arc::clone(&setup.ssh_connections);
        let addresses = InstanceAddresses::counted(setup, set, &counter, port);
        if by_instance {
            counter.set_resolver(Arc::new(move |address| addresses.instance_at(address)));
        }
        let settings = Settings {
            interface: (interface != "any").then_some(interface),
            tracked: Tracked { port, ipv6 },
            snap_length: snaplen,
        };
        Ok(Self::new(settings, counter, setup.shown_open_connections()))
    }
}

impl ReplicaLoop for SshTrackerLoop {
    const NAME: &'static str = "sshTracker";

    async fn run(self, health: Health, stop: Stop) {
        let mut readings = interval(READING);
        readings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.is_asked() {
            match Capture::start(self.settings.clone(), Arc::clone(&self.counter)) {
                Ok(capture) => self.follow(capture, &mut readings, &health, &stop).await,
                Err(error) => health.failing(format!("the capture thread cannot be started: {error}")),
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = stop.asked() => {}
            }
        }
    }
}
