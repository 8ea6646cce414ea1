//! Instance metrics: the resource use of Instances in containers on this node, from its container runtime.
//!
//! | file | contents |
//! |---|---|
//! | `metrics_loop.rs` | the loop: queries the runtime periodically, serves the results, reports its health |
//! | `scrape.rs` | one round of requests to the runtime |
//! | `select.rs` | the selection of pods and containers: a pure function |
//! | `usage.rs` | the use of pods from the samples of two rounds: a pure function |
//! | `shared.rs` | the last result, which the service and `/metrics` read |
//! | `service.rs` | the gRPC service |
//! | `exposition.rs` | the same numbers in the text format of Prometheus |
//!
//! Nothing is read from or written to the cluster, so the process needs no API server. The sandboxes of the runtime
//! have the labels of their pods, which identify the pods of Instances.

mod exposition;
mod metrics_loop;
mod scrape;
mod select;
mod service;
mod shared;
pub mod telemetry;
mod usage;

pub use metrics_loop::InstanceMetricsLoop;
