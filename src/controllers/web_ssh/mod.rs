//! Web SSH: terminals of lab machines in the browser. A WebSocket on one side, a shell by SSH on the other.
//!
//! | file | what it is |
//! |---|---|
//! | `serve.rs` | the loop: the HTTP server, the number of open terminals, the orderly end |
//! | `message.rs` | the messages of both directions, in JSON |
//! | `text.rs` | the output of a shell as text, in pieces that cut no character |
//! | `access.rs` | whether a user may, and the address of the machine |
//! | `session.rs` | one terminal from its first message to its end |
//! | `bridge.rs` | the part of it in which the shell runs |
//!
//! The daemon logs in at machines with a key that opens all of them, so it never decides by itself who may: it reads the
//! Instance from the API server with the user's own token. Nor does it believe what users can write: the address is that
//! of the Service that the daemon has made, not the one in the status of the Instance.

mod access;
mod bridge;
mod message;
mod serve;
mod session;
mod text;

pub use serve::WebSshLoop;
