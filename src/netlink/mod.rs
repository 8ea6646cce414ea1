//! Links, addresses and routes of network namespaces, by the kernel's own protocol (rtnetlink(7)), which the crate of that name
//! speaks.
//!
//! | file | what it is |
//! |---|---|
//! | `socket.rs` | a socket that sends a request and waits for its answer |
//! | `datagrams.rs` | the socket below it, which notices what the library cannot read |
//! | `namespace.rs` | network namespaces, and the thread that enters them |
//! | `link.rs` | links: list, create, change, delete |
//! | `address.rs`, `route.rs` | addresses; which routes lead into a range |
//! | `mac.rs` | hardware addresses that derive from a text |
//! | `events.rs` | events about links |
//! | `announce.rs` | announces an address to the neighbours |
//!
//! Sockets belong to the namespace in which they were opened, threads to that which they entered last. So everything
//! here is done in a plain thread ([`in_thread`]), which ends with its work: no thread of the async runtime ever leaves
//! its namespace. The thread has a runtime of its own, which waits for its sockets and starts no further threads.

mod address;
mod announce;
mod datagrams;
mod events;
mod link;
mod mac;
mod namespace;
mod route;
mod socket;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use announce::announce;
pub use events::{Event, Events};
pub use link::{Link, NewLink, Pair};
pub use mac::Mac;
pub use namespace::{Namespace, NamespaceThread, in_thread};
pub use route::Route;
pub use socket::Socket;
