//! Ports on loopback that are reserved for one cluster: a server that is restarted must find its port free.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process;

use anyhow::{Context as _, Result, bail};

/// The number of ports in a block.
const SIZE: u16 = 4;
/// The first port of the first block. Blocks lie below the kernel's range for outgoing connections (32768 and up),
/// which could otherwise occupy a port while its server is down.
const FIRST: u16 = 20_000;
/// The number of blocks.
const BLOCKS: u16 = 2_500;

/// A block of ports that no other test process of this machine uses until it is dropped.
pub struct Ports {
    first: u16,
    /// The lock on this file is the reservation.
    _lock: File,
}

impl Ports {
    /// Reserves a block whose ports are all free. Fails when there is none.
    pub fn reserve(cache: &Path) -> Result<Self> {
        let dir = cache.join("ports");
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let start = u16::try_from(process::id() % u32::from(BLOCKS)).unwrap_or_default();
        for offset in 0..BLOCKS {
            let first = FIRST + (start + offset) % BLOCKS * SIZE;
            let lock = File::create(dir.join(format!("{first}.lock")))?;
            if lock.try_lock().is_ok() && (first..first + SIZE).all(is_free) {
                return Ok(Self { first, _lock: lock });
            }
        }
        bail!("no free ports between {FIRST} and {}", FIRST + BLOCKS * SIZE)
    }

    /// The first port of the block, for a server other than a control plane.
    pub fn first(&self) -> u16 {
        self.first
    }

    /// The port at which etcd serves the API server.
    pub fn etcd(&self) -> u16 {
        self.first
    }

    /// The port at which etcd would serve its peers.
    pub fn etcd_peer(&self) -> u16 {
        self.first + 1
    }

    /// The port of the API server.
    pub fn kube_apiserver(&self) -> u16 {
        self.first + 2
    }

    /// The port of the issuer of users' tokens.
    pub fn issuer(&self) -> u16 {
        self.first + 3
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}
