//! Ports on loopback that stay ours: a server that is stopped and started again must find its port free.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process;

use anyhow::{Context as _, Result, bail};

/// Ports of one block.
const SIZE: u16 = 4;
/// Blocks lie below the kernel's range for outgoing connections (32768 and up), which would otherwise take a
/// port while its server is down.
const FIRST: u16 = 20_000;
const BLOCKS: u16 = 2_500;

/// A block of ports, reserved among the test processes of this machine for as long as it lives.
pub struct Ports {
    first: u16,
    /// Holds the reservation.
    _lock: File,
}

impl Ports {
    /// Reserves a block whose ports are all free.
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

    /// The first of the block, for a server that is no control plane.
    pub fn first(&self) -> u16 {
        self.first
    }

    /// Where etcd serves the API server.
    pub fn etcd(&self) -> u16 {
        self.first
    }

    /// Where etcd would serve its peers.
    pub fn etcd_peer(&self) -> u16 {
        self.first + 1
    }

    /// Where the API server listens.
    pub fn kube_apiserver(&self) -> u16 {
        self.first + 2
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}
