//! The SSH bastion: the one host through which Tenants reach their machines by SSH (`ssh -J`). Its SSH server runs
//! beside the daemon and reads what this loop writes. Every replica works for the server in its own pod.
//!
//! | file | what it has |
//! |---|---|
//! | `key_file.rs` | the content of the file of all Tenants' public keys: a pure function of the Tenants |
//! | `writer.rs` | keeps that file up to date |
//! | `key_pairs.rs` | generates host keys, and the key pair of the web terminal |
//! | `secrets.rs` | keeps them in Secrets, and writes the host keys into a folder |
//! | `bastion_loop.rs` | the loop: its stores, and the two tasks |

mod bastion_loop;
mod key_file;
mod key_pairs;
mod secrets;
pub mod telemetry;
#[cfg(test)]
mod tests;
mod writer;

pub use bastion_loop::BastionLoop;
