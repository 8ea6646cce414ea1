//! The network of a node: its pods, and addresses outside of the cluster. Each pod is a network namespace. Every end of
//! a connection has servers.
//!
//! ```text
//! pods ── node ── outside
//! ```

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cluster::network::Namespace;

/// The address of the node.
pub const NODE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
/// The port of DNS, with UDP.
const DNS: u16 = 53;
/// The ports of the servers: DNS, and others with TCP.
pub const PORTS: [u16; 5] = [22, DNS, 80, 443, 6080];
/// A connection fails if there is no response in this time.
const LIMIT: Duration = Duration::from_secs(1);
/// A server waits this long for a request before it checks whether it should stop.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection: the names of its source and its destination, and the port.
pub type Connection = (&'static str, &'static str, u16);

/// One end of connections, with its servers.
struct End {
    name: &'static str,
    address: Ipv4Addr,
    namespace: Arc<Namespace>,
    listeners: Vec<TcpListener>,
    dns: UdpSocket,
}

impl End {
    /// Starts to listen on all ports of an address that the namespace has.
    fn new(name: &'static str, address: Ipv4Addr, namespace: &Arc<Namespace>) -> Self {
        let listen = || -> io::Result<(Vec<TcpListener>, UdpSocket)> {
            let with_tcp = PORTS.into_iter().filter(|port| *port != DNS);
            let listeners: Vec<_> =
                with_tcp.map(|port| TcpListener::bind((address, port))).collect::<io::Result<_>>()?;
            listeners.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
            let dns = UdpSocket::bind((address, DNS))?;
            dns.set_read_timeout(Some(PAUSE))?;
            Ok((listeners, dns))
        };
        let (listeners, dns) = namespace.run(listen).expect("the servers");
        Self { name, address, namespace: Arc::clone(namespace), listeners, dns }
    }

    /// Accepts connections and answers queries until `is_over`.
    fn serve(&self, is_over: &AtomicBool) {
        let mut query = [0; 16];
        while !is_over.load(Ordering::Relaxed) {
            for listener in &self.listeners {
                while listener.accept().is_ok() {}
            }
            if let Ok((length, client)) = self.dns.recv_from(&mut query) {
                // The client fails without a response.
                let _ = self.dns.send_to(&query[..length], client);
            }
        }
    }

    /// Whether this end can connect to another one. Moves this thread into its namespace.
    fn connects(&self, other: &Self, port: u16) -> bool {
        self.namespace.enter();
        let server = SocketAddr::from((other.address, port));
        let connected =
            if port == DNS { query(server) } else { TcpStream::connect_timeout(&server, LIMIT).map(drop) };
        connected.is_ok()
    }
}

/// Sends a query and waits for the response.
fn query(server: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_read_timeout(Some(LIMIT))?;
    socket.connect(server)?;
    socket.send(b"query")?;
    socket.recv(&mut [0; 16]).map(drop)
}

/// The network. Its namespaces end when it is dropped.
pub struct Network {
    /// The namespace of the node, which routes the packets.
    pub node: Arc<Namespace>,
    outside: Arc<Namespace>,
    ends: Vec<End>,
}

impl Network {
    /// Creates a node without pods that can reach the outside. Needs root.
    pub fn create() -> Self {
        let (node, outside) = (Arc::new(Namespace::new()), Arc::new(Namespace::new()));
        node.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("the node routes");
        node.connect("outside", &outside);
        node.ip("route add default dev outside");
        let mut network = Self { node, outside, ends: Vec::new() };
        network.add_node("node", NODE);
        route_through_node(&network.outside);
        network
    }

    /// Adds a pod.
    pub fn add_pod(&mut self, name: &'static str, address: Ipv4Addr) {
        let (pod, device) = (Arc::new(Namespace::new()), format!("pod{}", self.ends.len()));
        self.node.connect(&device, &pod);
        self.node.ip(&format!("route add {address} dev {device}"));
        pod.ip(&format!("addr add {address}/32 dev eth0"));
        route_through_node(&pod);
        self.ends.push(End::new(name, address, &pod));
    }

    /// Adds an address of the node.
    pub fn add_node(&mut self, name: &'static str, address: Ipv4Addr) {
        self.node.ip(&format!("addr add {address}/32 dev lo"));
        self.ends.push(End::new(name, address, &self.node));
    }

    /// Adds an address outside of the cluster.
    pub fn add_outside(&mut self, name: &'static str, address: Ipv4Addr) {
        self.outside.ip(&format!("addr add {address}/32 dev eth0"));
        self.ends.push(End::new(name, address, &self.outside));
    }

    /// The names of all ends.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.ends.iter().map(|end| end.name)
    }

    /// Tries connections, all at the same time. Returns whether each one is established.
    pub fn connect(&self, connections: impl Iterator<Item = Connection>) -> Vec<bool> {
        let end = |name: &str| self.ends.iter().find(|end| end.name == name).expect(name);
        let connections: Vec<_> = connections.map(|(from, to, port)| (end(from), end(to), port)).collect();
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            for end in &self.ends {
                scope.spawn(move || end.serve(is_over));
            }
            let attempts: Vec<_> = connections
                .into_iter()
                .map(|(from, to, port)| scope.spawn(move || from.connects(to, port)))
                .collect();
            let results: Vec<_> = attempts.into_iter().map(thread::ScopedJoinHandle::join).collect();
            // Before a panic, which waits for the servers.
            is_over.store(true, Ordering::Relaxed);
            results.into_iter().map(|result| result.expect("the attempt ends")).collect()
        })
    }
}

/// Sends all packets of a namespace to the node.
fn route_through_node(namespace: &Namespace) {
    namespace.ip(&format!("route add {NODE} dev eth0"));
    namespace.ip(&format!("route add default via {NODE}"));
}
