//! The exam agent: the HTTP interface by which exam servers create, watch and delete the Instances of students, and by which
//! the browsers of students are led to them.
//!
//! | file | what it is |
//! |---|---|
//! | `serve.rs` | the loop: the HTTP server, its limits, its metrics, the orderly end |
//! | `route.rs` | what a path and a query ask for |
//! | `origin.rs` | the address of the client behind proxies |
//! | `access.rs` | who may see, create, replace and delete what: one pure function |
//! | `body.rs` | the JSON that clients send |
//! | `write.rs` | what is written for it |
//! | `view.rs`, `page.rs` | the JSON and the pages that clients get |
//! | `answer.rs` | from a request to its answer, by requests to the API server |
//! | `cluster.rs`, `pace.rs` | these requests, and how many there may be in a second |
//! | `description.rs` | the description of the interface, as `OpenAPI` |
//!
//! Every replica serves, with or without the lease. Two that write the same Instance at once do as two users of kubectl: one
//! creation succeeds, and a change is for the version that was read, so nothing is lost, and nothing is there twice.
//!
//! Instances and Templates are read from the API server for each request, and from no store: whoever has created an Instance by
//! one replica sees it at once by any other, which a watch would show some time later; the rights are those of one namespace,
//! where a store would need those of the whole cluster; and nothing is kept in memory between two exams. What that costs is
//! bounded by the pace of the requests.

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
mod view;
mod write;

pub use serve::ExamAgentLoop;
