//! Links, addresses and routes of network namespaces, through the kernel's rtnetlink protocol (rtnetlink(7)) and the
//! crate of the same name.
//!
//! | file | content |
//! |---|---|
//! | `socket.rs` | a socket that sends a request and waits for its answer |
//! | `datagrams.rs` | the socket below it, which detects messages that the library cannot parse |
//! | `namespace.rs` | network namespaces, and the thread that enters them |
//! | `link.rs` | links: list, create, change, delete |
//! | `address.rs`, `route.rs` | addresses; routes that lead into a range |
//! | `mac.rs` | hardware addresses that derive from a text |
//! | `events.rs` | events about links |
//! | `announce.rs` | announces an address to the neighbours |
//!
//! A socket stays in the namespace that it was opened in; a thread is in the namespace that it entered last. All work
//! is therefore done in a plain thread ([`in_thread`]) that ends afterwards, and no thread of the async runtime ever
//! leaves its namespace. The plain thread has its own runtime, which polls its sockets and starts no further threads.

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
