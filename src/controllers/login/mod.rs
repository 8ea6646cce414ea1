//! The login of machines at their own hosts: answers the authentication requests of ingress-nginx and of Envoy.
//!
//! | file | contents |
//! |---|---|
//! | `serve.rs` | the loop: the HTTP server, its files and limits, the graceful shutdown |
//! | `request.rs` | a request for a machine, as the gateway describes it |
//! | `machines.rs` | the environments by the label of their host, and the users that may enter them |
//! | `door.rs` | the decision about a request, and the exchange of a code for a cookie |
//! | `codes.rs` | the codes that were exchanged, in a `ConfigMap` that all replicas share |
//! | `answer.rs` | the responses in the two protocols |
//! | `relay/` | the hosts of peers, whose requests all pass the login |
//!
//! The dashboard knows the users: it redirects their browsers here with a code
//! ([`machine_login`](super::shared::machine_login)). A page of a machine costs no request to the API server, because
//! Tenants, Templates and Instances come from stores. So a right that ends, and a logout, count with the next request; for
//! peers, also during a request.

mod answer;
mod codes;
mod door;
mod machines;
mod relay;
mod request;
mod serve;
pub mod telemetry;
#[cfg(test)]
mod tests;

pub use serve::LoginLoop;
