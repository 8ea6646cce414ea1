//! Network namespaces, connections between them, and a sender of frames in them.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use etherparse::{PacketBuilder, PacketBuilderStep, TcpHeader};
use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, SockaddrStorage, sendto, socket,
};

/// A network namespace. It ends when this value is dropped and no thread or process is in it.
pub struct Namespace(File);

impl Namespace {
    /// A namespace with a loopback device. Panics if the rights are missing, because nothing could be tested then.
    #[expect(clippy::new_without_default, reason = "it asks the kernel")]
    pub fn new() -> Self {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)
                .expect("the test creates network namespaces, so it must run as root");
            File::open("/proc/thread-self/ns/net").expect("the namespace of this thread")
        };
        let namespace = Self(thread::spawn(make).join().expect("a namespace"));
        namespace.ip("link set lo up");
        namespace
    }

    /// The namespace of a process.
    pub fn of(process: u32) -> Self {
        Self(File::open(format!("/proc/{process}/ns/net")).expect("the process runs"))
    }

    /// A path under which another process finds this namespace, such as `nsenter --net=PATH`.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// Moves this thread into the namespace, and with it the threads and processes that it starts from now on.
    pub fn enter(&self) {
        setns(&self.0, CloneFlags::CLONE_NEWNET).expect("the namespace is entered");
    }

    /// Runs `work` in a thread that is in this namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            self.enter();
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join().expect("the work in the namespace"))
    }

    /// Runs the command `ip`, and returns what it prints. Panics when it fails.
    pub fn ip(&self, arguments: &str) -> String {
        let output = self.run(|| Command::new("ip").args(arguments.split(' ')).output().expect("ip runs"));
        assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Creates two devices that are the ends of a cable, `device` here and `eth0` there, both up.
    pub fn connect(&self, device: &str, other: &Self) {
        let there = other.path();
        self.ip(&format!("link add {device} type veth peer name eth0 netns {}", there.display()));
        self.ip(&format!("link set {device} up"));
        other.ip("link set eth0 up");
        // The kernel activates them with a short delay, and drops earlier frames.
        let begin = Instant::now();
        while !self.ip(&format!("link show dev {device}")).contains("state UP") {
            assert!(begin.elapsed() < Duration::from_secs(30), "{device} is not up");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Forwards the connections that a listener accepts to a port on the loopback device of this thread's namespace. The
/// listener can be in another namespace.
pub fn forward(listener: TcpListener, port: u16) {
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { continue };
                thread::spawn(move || {
                    // A broken connection ends both directions.
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
}

/// Sends frames out of a device.
pub struct Sender {
    /// The packet socket.
    pub socket: OwnedFd,
    /// The address of the device.
    pub device: LinkAddr,
}

impl Sender {
    /// A sender at a device in the namespace of this thread.
    pub fn new(device: &str) -> Self {
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None);
        let is_wanted = |name: &str, address: &Option<SockaddrStorage>| {
            name == device && address.as_ref().and_then(SockaddrLike::family) == Some(AddressFamily::Packet)
        };
        let mut devices = getifaddrs().expect("the devices");
        let found = devices.find(|found| is_wanted(&found.interface_name, &found.address));
        let address = found.and_then(|found| found.address).expect("the device");
        Self {
            socket: socket.expect("a packet socket: the test must run as root"),
            device: *address.as_link_addr().expect("the address of a link"),
        }
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) {
        let sent = sendto(self.socket.as_raw_fd(), frame, &self.device, MsgFlags::empty()).expect("sent");
        assert_eq!(sent, frame.len());
    }
}

/// The beginning of a frame between two addresses of the same kind.
fn between(source: IpAddr, destination: IpAddr) -> PacketBuilderStep<etherparse::IpHeaders> {
    let start = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            start.ipv4(source.octets(), destination.octets(), 64)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            start.ipv6(source.octets(), destination.octets(), 64)
        }
        mixed => panic!("no packet goes between {mixed:?}"),
    }
}

/// A source of the kind of a destination.
fn source(destination: IpAddr) -> IpAddr {
    if destination.is_ipv4() { "10.1.0.1" } else { "fd00::1" }.parse().expect("an address")
}

/// A frame with a TCP packet to `destination`, whose header `change` completes.
pub fn tcp(
    destination: &str,
    port: u16,
    sequence: u32,
    change: impl FnOnce(PacketBuilderStep<TcpHeader>) -> PacketBuilderStep<TcpHeader>,
) -> Vec<u8> {
    let destination: IpAddr = destination.parse().expect("an address");
    let step = between(source(destination), destination).tcp(40_000, port, sequence, 64_240);
    let mut frame = Vec::new();
    change(step).write(&mut frame, &[]).expect("written");
    frame
}

/// A frame that opens a connection.
pub fn syn(destination: &str, port: u16, sequence: u32) -> Vec<u8> {
    tcp(destination, port, sequence, PacketBuilderStep::<TcpHeader>::syn)
}

/// A frame with a UDP packet.
pub fn udp(destination: &str, port: u16) -> Vec<u8> {
    let destination: IpAddr = destination.parse().expect("an address");
    let mut frame = Vec::new();
    between(source(destination), destination).udp(40_000, port).write(&mut frame, b"text").expect("written");
    frame
}
