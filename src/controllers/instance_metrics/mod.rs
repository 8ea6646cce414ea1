//! Instance metrics: what the Instances in containers use on this node, from its container runtime.
//!
//! | file | what it is |
//! |---|---|
//! | `metrics_loop.rs` | the loop: asks the runtime in a fixed period, serves, says how it fares |
//! | `scrape.rs` | one round of requests to the runtime |
//! | `select.rs` | which pods and containers count: a pure function |
//! | `usage.rs` | the use of pods from the samples of two rounds: a pure function |
//! | `shared.rs` | the last result, which the service and `/metrics` read |
//! | `service.rs` | the gRPC service |
//! | `exposition.rs` | the same numbers in the text format of Prometheus |
//!
//! Nothing is read from or written to the cluster: the process needs no API server. The sandboxes of the runtime have
//! the labels of their pods, by which those of Instances are known.

mod exposition;
mod metrics_loop;
mod scrape;
mod select;
mod service;
mod shared;
pub mod telemetry;
mod usage;

pub use metrics_loop::InstanceMetricsLoop;
