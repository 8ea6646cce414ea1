//! The exam agent: the HTTP interface by which exam servers create, watch and delete the Instances of students, and by which
//! the browsers of students are led to them.
//!
//! | file | what it is |
//! |---|---|
//! | `serve.rs` | the loop: the HTTP server, its limits, its metrics, the orderly end |
//! | `route.rs` | the targets of paths, and the labels in queries |
//! | `origin.rs` | the address of the client behind proxies |
//! | `access.rs` | the rights of clients: one pure function |
//! | `body.rs` | the JSON that clients send |
//! | `write.rs` | the object or patch that it asks for |
//! | `view.rs`, `page.rs` | the JSON and the pages that clients get |
//! | `answer.rs` | from a request to its answer |
//! | `cluster.rs`, `pace.rs` | the requests to the API server, and how many there may be in a second |
//! | `turns.rs` | the order of requests that write one Instance |
//! | `stores.rs` | the stores from which clients outside of the allow-list are answered |
//! | `description.rs` | the description of the interface, as `OpenAPI` |
//!
//! Every replica serves, with or without the lease. Two that write the same Instance at once do as two users of kubectl: one
//! creation succeeds, and a change is for the version that was read, so nothing is lost, and nothing is there twice.
//!
//! Each request of a client in the allow-list reads from and writes to the API server: a client that has created an Instance
//! by one replica sees it at once by any other, which a watch would show some time later. The pace of the requests bounds
//! that cost. All others are answered from stores of the one namespace, for which the rights there are enough: however many
//! they are, they cause no request.

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
mod turns;
mod view;
mod write;

pub use serve::ExamAgentLoop;
