//! Web SSH: terminals of lab machines in the browser. Each terminal connects a WebSocket with a shell over SSH.
//!
//! | file | contents |
//! |---|---|
//! | `serve.rs` | the loop: the HTTP server, the allowed origins, the graceful shutdown |
//! | `slots.rs` | the limits of open terminals and of waiting browsers |
//! | `message.rs` | the messages of both directions, in JSON |
//! | `text.rs` | the conversion of a shell's output to text, in pieces that split no character |
//! | `access/` | the access decision, its repetition while a terminal is open, and the address of the machine |
//! | `session.rs` | one terminal from its first message to its end |
//! | `bridge.rs` | the data transfer of an open terminal |
//!
//! The daemon logs in to machines with a key that opens all of them, so it does not trust the request. It asks the API
//! server for the user of the token, or for the user whom the account of the token impersonates, and reads the Instance
//! and the Template as that user. Tenants come from its own store, by their specs. It does not trust data that users can
//! write, either: the address is the one of the Service that the daemon has created, and not the one in the status of
//! the Instance.

mod access;
mod bridge;
mod message;
mod serve;
mod session;
mod slots;
pub mod telemetry;
mod text;

pub use serve::WebSshLoop;
