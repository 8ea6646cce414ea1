//! Network namespaces: the bastion, two machines behind it, and the computer of a user.
//!
//! ```text
//! outside ── bastion ── switch ── one, two
//!               │
//!          this process
//! ```

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// The beginning of the names of all namespaces, before the process id.
const PREFIX: &str = "crownlabs-test-";
/// The namespaces, by the last part of their names.
const MEMBERS: [&str; 5] = ["outside", "bastion", "switch", "one", "two"];

/// The address of the bastion for the user.
pub const BASTION: &str = "10.98.0.1";
/// The addresses of the machines, which only the bastion reaches.
pub const ONE: &str = "10.99.0.11";
pub const TWO: &str = "10.99.0.12";

/// The namespaces of one test. They are removed when it is dropped.
pub struct Network {
    prefix: String,
    /// The address of the bastion for this process.
    pub bastion: String,
    /// The address of this process for the bastion.
    pub host: String,
}

impl Network {
    /// Creates the namespaces and the links between them. Needs root.
    pub fn create() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        remove_abandoned();
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // A network of four addresses for each test, in the range for tests of network devices (RFC 2544).
        let subnet = (process * 4 + count) % (1 << 15) * 4;
        let first = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + subnet;
        let address = |n: u32| Ipv4Addr::from(first + n).to_string();
        let network =
            Self { prefix: format!("{PREFIX}{process}-{count}-"), bastion: address(2), host: address(1) };
        network.accounts();
        for member in MEMBERS {
            ip(&format!("netns add {}", network.name(member)));
            network.ip(member, "link set lo up");
        }
        network.link(("outside", "eth0"), ("bastion", "out0"));
        network.give("outside", "eth0", "10.98.0.2/24");
        network.give("bastion", "out0", "10.98.0.1/24");
        network.ip("switch", "link add br0 type bridge");
        network.ip("switch", "link set br0 up");
        for (member, address) in [("bastion", "10.99.0.1"), ("one", ONE), ("two", TWO)] {
            network.link((member, "eth0"), ("switch", member));
            network.ip("switch", &format!("link set {member} master br0 up"));
            network.give(member, "eth0", &format!("{address}/24"));
        }
        let device = format!("clt{subnet}");
        ip(&format!("link add {device} type veth peer name host0 netns {}", network.name("bastion")));
        ip(&format!("addr add {}/30 dev {device}", network.host));
        ip(&format!("link set {device} up"));
        network.give("bastion", "host0", &format!("{}/30", network.bastion));
        network
    }

    /// The name of a namespace.
    pub fn name(&self, member: &str) -> String {
        format!("{}{member}", self.prefix)
    }

    /// A command that runs in a namespace as the user with the id 1000.
    pub fn command(&self, member: &str, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(member)]);
        command.args(["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--no-new-privs"]);
        // Killed when the thread that started it ends, that is with its test.
        command.args(["--inh-caps=-all", "--pdeathsig=KILL", "--"]).arg(program);
        command
    }

    /// Lets every user listen on low ports in a namespace.
    pub fn allow_low_ports(&self, member: &str) {
        let line = "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start";
        let status =
            Command::new("ip").args(["netns", "exec", &self.name(member), "sh", "-c", line]).status();
        assert!(status.expect("ip runs").success(), "{line}");
    }

    /// Accounts: `ip netns exec` shows the files of this folder in `/etc`.
    fn accounts(&self) {
        let user =
            |name: &str, shell: &str| format!("root:x:0:0::/:/bin/sh\n{name}:x:1000:1000::/tmp:{shell}\n");
        for (member, passwd) in [
            ("bastion", user("bastion", "/usr/sbin/nologin")),
            ("one", user("crownlabs", "/bin/sh")),
            ("two", user("crownlabs", "/bin/sh")),
            ("outside", user("ada", "/bin/sh")),
        ] {
            let folder = self.etc(member);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("passwd"), passwd).expect("written");
            // Without the group `tty`: a server that does not run as root cannot give terminals to it.
            fs::write(folder.join("group"), "root:x:0:\n").expect("written");
        }
    }

    fn etc(&self, member: &str) -> PathBuf {
        Path::new("/etc/netns").join(self.name(member))
    }

    fn link(&self, (a, a_device): (&str, &str), (b, b_device): (&str, &str)) {
        let (a, b) = (self.name(a), self.name(b));
        ip(&format!("link add {a_device} netns {a} type veth peer name {b_device} netns {b}"));
    }

    fn give(&self, member: &str, device: &str, address: &str) {
        self.ip(member, &format!("addr add {address} dev {device}"));
        self.ip(member, &format!("link set {device} up"));
    }

    /// Runs `ip` in a namespace.
    pub fn ip(&self, member: &str, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.name(member)));
    }

    /// Forwards connections from the bastion's namespace to a port of this machine's loopback. Returns the port at
    /// [`Network::host`].
    pub fn forward(&self, port: u16) -> u16 {
        let listener = TcpListener::bind((self.host.as_str(), 0)).expect("a socket");
        let own = listener.local_addr().expect("an address").port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    relay(&client, &server).expect("both can be cloned");
                }
            }
        });
        own
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for member in MEMBERS {
            remove(&self.name(member));
        }
    }
}

/// Copies in both directions, each in its own thread.
fn relay(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    for (from, to) in [(client, server), (server, client)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {said} (network namespaces need root)");
}

/// Removes a namespace and its accounts, if they exist.
fn remove(name: &str) {
    let _ = Command::new("ip").args(["netns", "delete", name]).output();
    let _ = fs::remove_dir_all(Path::new("/etc/netns").join(name));
}

/// Removes the namespaces of processes that were killed.
fn remove_abandoned() {
    let names = [Path::new("/run/netns"), Path::new("/etc/netns")].map(fs::read_dir);
    for entry in names.into_iter().flatten().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            remove(&name);
        }
    }
}
