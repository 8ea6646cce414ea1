//! Web SSH: terminals of lab machines in the browser. A WebSocket on one side, a shell by SSH on the other.
//!
//! | file | what it is |
//! |---|---|
//! | `serve.rs` | the loop: the HTTP server, whose pages may open terminals, the orderly end |
//! | `slots.rs` | how many terminals may be open, and how many browsers may wait |
//! | `message.rs` | the messages of both directions, in JSON |
//! | `text.rs` | the output of a shell as text, in pieces that cut no character |
//! | `access.rs` | whether a user may, and the address of the machine |
//! | `session.rs` | one terminal from its first message to its end |
//! | `bridge.rs` | the part of it in which the shell runs |
//!
//! The daemon logs in at machines with a key that opens all of them, so it takes nobody's word: the API server says who a
//! token is of, and is asked for Instance and Template with that token; the Tenants are those of its own store, by their
//! specs. Nor does it believe what users can write: the address is that
//! of the Service that the daemon has made, not the one in the status of the Instance.

mod access;
mod bridge;
mod message;
mod serve;
mod session;
mod slots;
pub mod telemetry;
mod text;

pub use serve::WebSshLoop;
