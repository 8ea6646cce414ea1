//! The frames that are counted, and the frames that are not.

use etherparse::{EtherType, PacketBuilder, PacketBuilderStep, TcpHeader};

use super::{Tracker, counts};
use cluster::network::{Namespace, Sender, syn, tcp, udp};

/// The start of the IP header in a frame, and of the TCP header over IPv4 without options.
const IP: usize = 14;
const TCP: usize = 34;

type Step = PacketBuilderStep<TcpHeader>;

/// A frame that opens a connection, changed.
fn changed(destination: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = syn(destination, 22, 1);
    change(&mut frame);
    frame
}

/// A frame that opens a connection, with a tag of that kind before its protocol.
fn tagged(kind: u16) -> Vec<u8> {
    let [high, low] = kind.to_be_bytes();
    changed("10.2.0.8", |frame| drop(frame.splice(12..12, [high, low, 0, 5])))
}

/// A frame that opens a connection over IPv6, after an extension header.
fn extended() -> Vec<u8> {
    let mut frame = syn("fd00::9", 22, 1);
    // Hop-by-hop options: TCP follows, eight bytes in all, padding.
    frame.splice(IP + 40..IP + 40, [6, 0, 1, 4, 0, 0, 0, 0]);
    frame[IP + 6] = 0;
    frame[IP + 5] += 8;
    frame
}

/// Frames that are not counted, each to a separate address if possible.
fn others() -> Vec<(&'static str, Vec<u8>)> {
    let mut bytes = Vec::new();
    let arp = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let arp = arp.arp(
        etherparse::ArpPacket::new(
            etherparse::ArpHardwareId::ETHERNET,
            EtherType::IPV4,
            etherparse::ArpOperation::REQUEST,
            &[2, 0, 0, 0, 0, 1],
            &[10, 1, 0, 1],
            &[0; 6],
            &[10, 1, 0, 2],
        )
        .expect("a packet"),
    );
    arp.write(&mut bytes).expect("written");
    vec![
        ("SYN and ACK", tcp("10.2.0.1", 22, 1, |step: Step| step.syn().ack(2))),
        ("ACK", tcp("10.2.0.2", 22, 1, |step: Step| step.ack(2))),
        ("no flag", tcp("10.2.0.2", 22, 1, |step: Step| step)),
        ("RST", tcp("10.2.0.2", 22, 1, Step::rst)),
        ("FIN", tcp("10.2.0.2", 22, 1, Step::fin)),
        ("SYN and FIN", tcp("10.2.0.3", 22, 1, |step: Step| step.syn().fin())),
        ("SYN and RST", tcp("10.2.0.3", 22, 1, |step: Step| step.syn().rst())),
        ("another port", syn("10.2.0.4", 2222, 1)),
        ("the port as the source", changed("10.2.0.4", |frame| frame[TCP..TCP + 4].rotate_left(2))),
        ("UDP", udp("10.2.0.5", 22)),
        ("UDP over IPv6", udp("fd00::5", 22)),
        ("the first fragment", changed("10.2.0.6", |frame| frame[IP + 6] = 0x20)),
        ("the last fragment", changed("10.2.0.6", |frame| frame[IP + 7] = 1)),
        ("a VLAN tag", tagged(0x8100)),
        ("a tag of a provider", tagged(0x88a8)),
        ("half a TCP header", changed("10.2.0.9", |frame| frame.truncate(TCP + 10))),
        ("half an IP header", changed("10.2.0.9", |frame| frame.truncate(IP + 10))),
        ("longer than it is", changed("10.2.0.9", |frame| frame[IP + 3] += 1)),
        ("shorter than its headers", changed("10.2.0.9", |frame| frame[IP + 3] = 39)),
        ("another version of IP", changed("10.2.0.10", |frame| frame[IP] = 0x55)),
        ("a short IP header", changed("10.2.0.10", |frame| frame[IP] = 0x44)),
        ("a short TCP header", changed("10.2.0.10", |frame| frame[TCP + 12] = 0x40)),
        ("a long TCP header", changed("10.2.0.10", |frame| frame[TCP + 12] = 0xf0)),
        ("an extension header", extended()),
        ("ARP", bytes),
    ]
}

/// Frames that are counted, and the resulting counts.
fn opening() -> (Vec<Vec<u8>>, Vec<(String, u64)>) {
    let options = |step: Step| step.syn().options_raw(&[1; 40]).expect("options");
    let frames = vec![
        syn("10.1.0.2", 22, 1),
        // The same frame again is a retransmission; another sequence number is not.
        syn("10.1.0.2", 22, 1),
        syn("10.1.0.2", 22, 2),
        tcp("10.1.0.3", 22, 1, options),
        tcp("10.1.0.4", 22, 1, |step: Step| step.syn().ece().cwr()),
        syn("fd00::2", 22, 1),
        syn("fd00::2", 22, 1),
    ];
    (frames, counts(&[("10.1.0.2", 2), ("10.1.0.3", 1), ("10.1.0.4", 1), ("fd00::2", 1)]))
}

/// Sends all of them, and compares the counts.
fn sent_from_here(interface: Option<&str>) {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    let tracker = Tracker::start(&here, interface, true);
    for (what, frame) in others() {
        here.run(|| Sender::new("cap0").send(&frame));
        assert_eq!(tracker.settled(&here, "cap0"), [], "{what}, {interface:?}");
    }
    let (frames, expected) = opening();
    here.run(|| {
        let sender = Sender::new("cap0");
        for frame in &frames {
            sender.send(frame);
        }
    });
    assert_eq!(tracker.settled(&here, "cap0"), expected, "{interface:?}");
}

#[test]
fn only_packets_that_open_a_connection_are_counted() {
    sent_from_here(Some("cap0"));
}

#[test]
fn only_packets_that_open_a_connection_are_counted_through_any_interface() {
    sent_from_here(None);
}

#[test]
fn packets_that_arrive_are_not_counted() {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    let trackers = [Some("cap0"), None].map(|interface| Tracker::start(&here, interface, true));
    // Seen by the other end, which proves that it was sent.
    let peer = Tracker::start(&there, None, true);
    let (frames, expected) = opening();
    there.run(|| {
        let sender = Sender::new("eth0");
        for frame in &frames {
            sender.send(frame);
        }
    });
    assert_eq!(peer.settled(&there, "eth0"), expected);
    for tracker in &trackers {
        // A frame has arrived at a virtual device when the sender's call returns.
        assert_eq!(tracker.settled(&here, "cap0"), []);
    }
}

#[test]
fn connections_over_ipv6_can_be_left_out() {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    let tracker = Tracker::start(&here, None, false);
    let (frames, mut expected) = opening();
    here.run(|| {
        let sender = Sender::new("cap0");
        for frame in &frames {
            sender.send(frame);
        }
    });
    expected.retain(|(address, _)| !address.contains(':'));
    assert_eq!(tracker.settled(&here, "cap0"), expected);
}
