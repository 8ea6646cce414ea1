//! Start and stop of the process: the loops that run, the leader election, and the servers.
//!
//! ```text
//! start ── stores fill (every replica) ── lease ── workers (the leader) ── SIGTERM ── drain ── release
//! ```
//!
//! The process ends when the lease is lost: only a restart guarantees that no state of the former leader remains.

#[cfg(feature = "daemon")]
mod cluster;
#[cfg(feature = "daemon")]
mod configuration_file;
pub mod definitions;
#[cfg(feature = "daemon")]
mod former;
#[cfg(feature = "daemon")]
pub mod lease;
#[cfg(feature = "daemon")]
pub mod logging;
pub mod mirroring;
pub mod outages;
#[cfg(feature = "daemon")]
mod process;
#[cfg(feature = "daemon")]
mod run;
#[cfg(feature = "daemon")]
mod servers;
pub mod start_up;
#[cfg(feature = "daemon")]
mod telemetry;

#[cfg(test)]
pub use configuration_file::RELOADED;
#[cfg(feature = "daemon")]
pub use run::{EXIT_LEASE_LOST, Options, run};
