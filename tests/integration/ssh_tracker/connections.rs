//! Real connections: each counts once, whatever devices its packets pass.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::{PATIENCE, Tracker, counts};
use crate::lab::wait_until;
use cluster::network::Namespace;

/// Two namespaces with addresses on a cable: `10.1.0.1` at `device` here, `10.1.0.2` there, also `fd00::`.
pub fn network(here: &Namespace, there: &Namespace, device: &str) {
    for (namespace, device, number) in [(here, device, 1), (there, "eth0", 2)] {
        namespace.ip(&format!("addr add 10.1.0.{number}/24 dev {device}"));
        namespace.ip(&format!("addr add fd00::{number}/64 dev {device} nodad"));
    }
}

/// A server on port 22 of all addresses in a namespace. It accepts nothing, because the kernel completes connections.
pub fn server(namespace: &Namespace) -> TcpListener {
    let any: SocketAddr = "[::]:22".parse().expect("an address");
    namespace.run(|| TcpListener::bind(any)).expect("a server")
}

fn open(namespace: &Namespace, address: &str) {
    let address: SocketAddr = address.parse().expect("an address");
    let connected = namespace.run(|| TcpStream::connect_timeout(&address, PATIENCE));
    drop(connected.expect("connected"));
}

#[test]
fn a_connection_counts_once_through_a_named_interface_and_through_any() {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    network(&here, &there, "cap0");
    let _server = server(&there);
    let trackers = [Some("cap0"), None].map(|interface| Tracker::start(&here, interface, true));
    let peer = Tracker::start(&there, None, true);
    for _ in 0..20 {
        open(&here, "10.1.0.2:22");
        open(&here, "[fd00::2]:22");
    }
    for tracker in &trackers {
        assert_eq!(tracker.settled(&here, "cap0"), counts(&[("10.1.0.2", 20), ("fd00::2", 20)]));
    }
    assert_eq!(peer.settled(&there, "eth0"), [], "they came from the other end");
}

#[test]
fn a_connection_over_loopback_counts_once() {
    let here = Namespace::new();
    let _server = server(&here);
    let trackers = [Some("lo"), None].map(|interface| Tracker::start(&here, interface, true));
    open(&here, "127.0.0.1:22");
    open(&here, "[::1]:22");
    for tracker in &trackers {
        assert_eq!(tracker.settled(&here, "lo"), counts(&[("127.0.0.1", 1), ("::1", 1)]));
    }
}

#[test]
fn a_connection_through_a_bridge_counts_once() {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    here.ip("link add br0 type bridge");
    here.ip("link set cap0 master br0");
    here.ip("link set br0 up");
    network(&here, &there, "br0");
    let _server = server(&there);
    let trackers = [Some("br0"), Some("cap0"), None].map(|interface| Tracker::start(&here, interface, true));
    open(&here, "10.1.0.2:22");
    for tracker in &trackers {
        assert_eq!(tracker.settled(&here, "br0"), counts(&[("10.1.0.2", 1)]));
    }
}

#[test]
fn retransmissions_are_not_counted() {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    network(&here, &there, "cap0");
    // Nothing answers there, and the sender does not need to resolve the address.
    here.ip("neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev cap0");
    let tracker = Tracker::start(&here, None, true);
    let address: SocketAddr = "10.1.0.9:22".parse().expect("an address");
    std::thread::scope(|scope| {
        scope.spawn(|| here.run(|| TcpStream::connect_timeout(&address, Duration::from_secs(8))));
        wait_until(PATIENCE, || match here.run(retransmitted) {
            0..3 => Err("three retransmissions".to_owned()),
            _ => Ok(()),
        });
        assert_eq!(tracker.settled(&here, "cap0"), counts(&[("10.1.0.9", 1)]));
    });
}

/// The number of retransmitted TCP packets in the namespace of this thread.
fn retransmitted() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/snmp").expect("the counters of the kernel");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(name, _)| *name == "RetransSegs").expect("the counter").1.parse().expect("a number")
}
