//! The exam agent: an HTTP interface that lets exam servers create, watch and delete the Instances of students. It
//! also redirects the browsers of students to their Instances.
//!
//! | file | contents |
//! |---|---|
//! | `serve.rs` | the loop: the HTTP server, its limits, its metrics, the graceful shutdown |
//! | `route.rs` | the targets of paths, and the labels in queries |
//! | `origin.rs` | the address of the client behind proxies |
//! | `access.rs` | the rights of clients: one pure function |
//! | `body.rs` | the JSON that clients send |
//! | `write.rs` | the object or patch for a request |
//! | `view.rs`, `page.rs` | the JSON and the pages that clients get |
//! | `answer.rs` | the handling of a request, from the target to the response |
//! | `cluster.rs`, `pace.rs` | the requests to the API server, and their rate limit |
//! | `token.rs` | the tokens that let browsers open desktops without a login |
//! | `turns.rs` | the order of requests that write one Instance |
//! | `stores.rs` | the stores that answer clients outside the allow-list |
//! | `description.rs` | the description of the interface, as `OpenAPI` |
//!
//! Every replica serves, with or without the lease. Two replicas that write the same Instance at once behave like two
//! users of kubectl: one creation succeeds, and each change names the version that was read. No change is lost, and no
//! object is created twice.
//!
//! A request of a client in the allow-list reads from and writes to the API server. A client that has created an
//! Instance through one replica sees it at once through any other replica; a watch would show it only some time later.
//! The rate limit bounds the cost. All other clients are answered from stores of the one namespace, which need rights
//! in that namespace only. They cause no requests, however many they are.

mod access;
mod answer;
mod body;
mod cluster;
mod description;
mod origin;
mod pace;
mod page;
mod route;
mod serve;
mod stores;
pub mod telemetry;
mod token;
mod turns;
mod view;
mod write;

pub use serve::ExamAgentLoop;
