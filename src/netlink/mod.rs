//! Links, addresses and routes of network namespaces, by the kernel's own protocol (rtnetlink(7)), which the crate of that name
//! speaks.
//!
//! | file | what it is |
//! |---|---|
//! | `socket.rs` | a socket that sends a request and waits for its answer |
//! | `datagrams.rs` | the socket below it, which notices what the library cannot read |
//! | `namespace.rs` | network namespaces, and the thread that enters them |
//! | `link.rs` | links: list, create, change, delete |
//! | `range.rs` | ranges of addresses |
//! | `address.rs`, `route.rs` | addresses; which routes lead into a range |
//! | `mac.rs` | hardware addresses that derive from a text |
//! | `events.rs` | events about links |
//! | `announce.rs` | announces an address to the neighbours |
//!
//! Sockets belong to the namespace in which they were opened, threads to that which they entered last. So everything
//! here is done in a plain thread ([`in_thread`]), which ends with its work: no thread of the async runtime ever leaves
//! its namespace. The thread has a runtime of its own, which waits for its sockets and starts no further threads.

#[cfg(feature = "daemon")]
mod address;
#[cfg(feature = "daemon")]
mod announce;
#[cfg(feature = "daemon")]
mod datagrams;
#[cfg(feature = "daemon")]
mod events;
#[cfg(feature = "daemon")]
mod link;
#[cfg(feature = "daemon")]
mod mac;
#[cfg(feature = "daemon")]
mod namespace;
mod range;
#[cfg(feature = "daemon")]
mod route;
#[cfg(feature = "daemon")]
mod socket;
#[cfg(test)]
mod tests;

#[cfg(feature = "daemon")]
pub use address::Address;
#[cfg(feature = "daemon")]
pub use announce::announce;
#[cfg(feature = "daemon")]
pub use events::{Event, Events};
#[cfg(feature = "daemon")]
pub use link::{Link, NewLink, Pair};
#[cfg(feature = "daemon")]
pub use mac::Mac;
#[cfg(feature = "daemon")]
pub use namespace::{Namespace, NamespaceThread, in_thread};
pub use range::{gateway, overlap};
#[cfg(feature = "daemon")]
pub use route::Route;
#[cfg(feature = "daemon")]
pub use socket::Socket;
