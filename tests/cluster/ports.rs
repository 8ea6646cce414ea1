//! Ports on loopback that are reserved for one test process.
//!
//! A port that is found by binding to port 0 and released again may be given to another server at once. These ports
//! lie below the kernel's range for port 0 and outgoing connections (32768 and up), and a lock on a file reserves each
//! of them for one process of the machine.

use std::fs::{self, File};
use std::net::TcpListener;
use std::process;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail};
use parking_lot::Mutex;

use super::assets;

/// The first port.
const FIRST: u16 = 20_000;
/// The number of ports.
const COUNT: u32 = 10_000;
/// The distance of the first ports of two processes with consecutive identifiers.
const STRIDE: u32 = 61;

/// The place of the next port to try. Processes begin at different places.
static NEXT: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(process::id().wrapping_mul(STRIDE)));
/// The ports that this process keeps until it ends.
static KEPT: Mutex<Vec<Port>> = Mutex::new(Vec::new());

/// A port that no other test of this machine gets until it is dropped. A server that is restarted finds it free.
pub struct Port {
    number: u16,
    /// The lock on this file is the reservation.
    _lock: File,
}

impl Port {
    /// Reserves a free port. Fails if there is none.
    pub fn reserve() -> Result<Self> {
        let dir = assets::cache_dir()?.join("ports");
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        for _ in 0..COUNT {
            let place = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
            let number = FIRST + u16::try_from(place)?;
            let lock = File::create(dir.join(format!("{number}.lock")))?;
            if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("no free port from {FIRST} on: {COUNT} are in use")
    }

    /// The number of the port.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// Reserves a port until this process ends and returns its number. Fails if no port is free.
pub fn reserve_port() -> Result<u16> {
    let port = Port::reserve()?;
    let number = port.number();
    KEPT.lock().push(port);
    Ok(number)
}

/// The ports of a control plane.
pub struct Ports {
    /// The port of etcd for the API server.
    pub etcd: Port,
    /// The port of etcd for its peers.
    pub etcd_peer: Port,
    /// The port of the API server.
    pub kube_apiserver: Port,
    /// The port of the issuer of users' tokens.
    pub issuer: Port,
}

impl Ports {
    /// Reserves the ports.
    pub fn reserve() -> Result<Self> {
        let [etcd, etcd_peer] = [Port::reserve()?, Port::reserve()?];
        Ok(Self { etcd, etcd_peer, kube_apiserver: Port::reserve()?, issuer: Port::reserve()? })
    }
}
