//! Start-up and shut-down: which loops run, who leads, what is served.
//!
//! ```text
//! start ── stores fill (every replica) ── lease ── workers (the leader) ── SIGTERM ── drain ── release
//! ```
//!
//! The process ends when the lease is lost: a restart is the one way back that needs no proof that
//! nothing of the former leader is left.

#[cfg(feature = "daemon")]
mod cluster;
#[cfg(feature = "daemon")]
mod configuration_file;
#[cfg(feature = "daemon")]
mod definitions;
#[cfg(feature = "daemon")]
pub mod lease;
#[cfg(feature = "daemon")]
pub mod logging;
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
