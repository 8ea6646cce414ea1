//! Counts the connections that this host, or this pod, opens to a TCP port, by looking at its packets.
//!
//! | file | content |
//! |---|---|
//! | `packet.rs` | which packets open a connection |
//! | `filter.rs` | the same decision as a BPF program for the kernel |
//! | `geometry.rs`, `block.rs` | the layout of the ring into which the kernel writes packets |
//! | `ring.rs` | the packet socket and the ring; the only `unsafe` code |
//! | `thread.rs` | the thread that captures and counts |
//! | `repeats.rs` | detects packets that repeat a counted one |
//! | `counter.rs`, `series.rs` | the counts, and their text for Prometheus |
//! | `table.rs`, `open.rs` | the connections that are open now, from the kernel's table of sockets, and their text |
//!
//! A dedicated thread sleeps until the kernel hands over a block of packets, and counts the connections in it. Only
//! outgoing packets count, so a packet that passes `lo`, or leaves one device and arrives at another, counts once.

#[cfg(feature = "daemon")]
mod block;
mod counter;
#[cfg(feature = "daemon")]
mod filter;
#[cfg(feature = "daemon")]
mod geometry;
mod open;
mod packet;
#[cfg(feature = "daemon")]
mod repeats;
#[cfg(feature = "daemon")]
mod ring;
mod series;
mod table;
pub mod telemetry;
#[cfg(test)]
mod tests;
#[cfg(feature = "daemon")]
mod thread;

pub use counter::ConnectionCounter;
#[cfg(feature = "daemon")]
pub use filter::program;
pub use open::OpenConnections;
pub use packet::Tracked;
#[cfg(feature = "daemon")]
pub use thread::{Capture, Settings, State, THREAD};
