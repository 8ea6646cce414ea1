//! The SSH tracker on real devices: network namespaces connected by virtual cables, real connections, and frames that
//! no TCP implementation would send.

mod connections;
mod in_the_daemon;
mod interfaces;
mod open;
mod truth;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crownlabs::testing::{Capture, ConnectionCounter, Settings, State, Tracked};

use crate::lab::wait_until;
use cluster::network::{Namespace, Sender, syn};

/// How long a capture may take to see sent frames.
const PATIENCE: Duration = Duration::from_secs(30);
/// A destination that a test uses only to see that all earlier frames have been processed.
const LAST: &str = "10.99.0.1";

/// The settings of a capture on port 22, of all devices or one.
fn settings(interface: Option<&str>, ipv6: bool) -> Settings {
    Settings {
        interface: interface.map(str::to_owned),
        tracked: Tracked { port: 22, ipv6 },
        snap_length: 1600,
    }
}

/// A capture in a namespace, with its counter.
struct Tracker {
    capture: Capture,
    counter: Arc<ConnectionCounter>,
}

impl Tracker {
    /// Starts a capture on port 22 in a namespace, of all devices or one.
    fn spawn(namespace: &Namespace, interface: Option<&str>, ipv6: bool) -> Self {
        let counter = Arc::new(ConnectionCounter::new("connections", "Connections"));
        let (settings, shared) = (settings(interface, ipv6), Arc::clone(&counter));
        let capture = namespace.run(|| Capture::start(settings, shared)).expect("a thread");
        Self { capture, counter }
    }

    /// The same, but also waits until it captures.
    fn start(namespace: &Namespace, interface: Option<&str>, ipv6: bool) -> Self {
        let tracker = Self::spawn(namespace, interface, ipv6);
        tracker.await_state("capturing", |state| *state == State::Capturing);
        tracker
    }

    /// Waits until the state is as wanted.
    fn await_state(&self, what: &str, is_wanted: impl Fn(&State) -> bool) {
        let states = self.capture.state();
        wait_until(PATIENCE, || {
            let state = states.borrow();
            is_wanted(&state).then_some(()).ok_or_else(|| format!("{what}: {state:?}"))
        });
    }

    /// Waits until it fails for a reason with these words.
    fn await_failure(&self, words: &str) {
        self.await_state(words, |state| matches!(state, State::Failing(why) if why.contains(words)));
    }

    /// The connections to each destination, in the order of the addresses.
    fn counts(&self) -> Vec<(String, u64)> {
        let (mut first, mut text) = (String::new(), String::new());
        // A new series has the value 0 in the first text.
        self.counter.render(&mut first);
        self.counter.render(&mut text);
        let value = |line: &str| {
            let (address, rest) =
                line.strip_prefix("connections_total{destination_ip=\"")?.split_once('"')?;
            Some((address.to_owned(), rest.rsplit(' ').next()?.parse().ok()?))
        };
        text.lines().filter_map(value).collect()
    }

    /// Sends a connection out of a device, and waits until it is counted: then all earlier connections are
    /// counted, too. Returns the other counts.
    fn settled(&self, namespace: &Namespace, device: &str) -> Vec<(String, u64)> {
        static SEQUENCE: AtomicU32 = AtomicU32::new(0);
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let before = self.counter.last_seen(last().ip());
        namespace.run(|| Sender::new(device).send(&syn(LAST, 22, sequence)));
        wait_until(PATIENCE, || {
            let seen = self.counter.last_seen(last().ip());
            (seen != before).then_some(()).ok_or_else(|| format!("the last packet: {:?}", self.counts()))
        });
        self.counts().into_iter().filter(|(address, _)| address != LAST).collect()
    }
}

fn last() -> SocketAddr {
    SocketAddr::new(LAST.parse().expect("an address"), 22)
}

/// Counts as a test writes them.
fn counts(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(address, count)| ((*address).to_owned(), *count)).collect()
}
