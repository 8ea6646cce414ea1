//! The SSH tracker: counts the SSH connections that the bastion opens to Instances.
//!
//! | part | where |
//! |---|---|
//! | the thread that captures packets and counts | `crate::capture` |
//! | which addresses are those of Instances | `controllers/shared/addresses.rs` |
//! | start, health and stop of the thread | here |

use std::sync::Arc;
use std::time::Duration;

use super::setup::{ReplicaDefinition, Setup};
use super::shared::addresses::InstanceAddresses;
use crate::capture::{Capture, ConnectionCounter, Settings, State, Tracked};
use crate::config::SshTrackerConfig;
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;

/// A thread that has died is replaced after this time.
const PAUSE: Duration = Duration::from_secs(1);

/// The loop.
pub struct SshTrackerLoop {
    settings: Settings,
    counter: Arc<ConnectionCounter>,
}

impl SshTrackerLoop {
    /// A loop that captures with these settings.
    pub fn new(settings: Settings, counter: Arc<ConnectionCounter>) -> Self {
        Self { settings, counter }
    }
}

impl ReplicaDefinition for SshTrackerLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let SshTrackerConfig { interface, port, snaplen, ipv6, by_instance, .. } =
            setup.config.controllers.ssh_tracker.clone();
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
        Ok(Self::new(settings, counter))
    }
}

impl ReplicaLoop for SshTrackerLoop {
    const NAME: &'static str = "sshTracker";

    async fn run(self, health: Health, stop: Stop) {
        while !stop.is_asked() {
            match Capture::start(self.settings.clone(), Arc::clone(&self.counter)) {
                Ok(capture) => follow(capture, &health, &stop).await,
                Err(error) => health.failing(format!("the thread that captures cannot be started: {error}")),
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = stop.asked() => {}
            }
        }
    }
}

/// Reports what the thread does, until it is to stop or has died.
async fn follow(capture: Capture, health: &Health, stop: &Stop) {
    let mut states = capture.state();
    loop {
        let state = states.borrow_and_update().clone();
        match state {
            State::Starting => {}
            State::Capturing => health.ready(),
            State::Failing(why) => health.failing(why),
        }
        tokio::select! {
            changed = states.changed() => if changed.is_err() { break },
            () = stop.asked() => break,
        }
    }
    // The thread has ended, or ends as soon as it has counted what it has got.
    let ended = tokio::task::spawn_blocking(|| capture.stop()).await;
    if !matches!(ended, Ok(true)) {
        health.failing(
            "the thread that captures has panicked, which is a defect of the daemon: it is started again",
        );
    }
}
