//! The SSH bastion: the single host that gives Tenants access to their machines by SSH (`ssh -J`). Its SSH server runs
//! beside the daemon and reads the files that this loop writes. Every replica works for the server in its own pod.
//!
//! | file | contents |
//! |---|---|
//! | `key_file.rs` | the content of the file of all Tenants' public keys: a pure function of the Tenants |
//! | `writer.rs` | keeps that file up to date |
//! | `key_pairs.rs` | generates host keys, and the key pair of the web terminal |
//! | `secrets.rs` | stores the keys in Secrets, and writes the host keys into a folder |
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
