//! The instance loop creates the Services, Ingresses, volumes and workloads of Instances.
//!
//! | stage | action |
//! |---|---|
//! | observe | reads from the stores: the Instance, its Template, Tenant, the managers of the Workspace, shared volumes, and the objects that the Instance owns |
//! | plan | labels and power-off time on the Instance; for each environment its Service, Ingress or route, claim or Secret, and workload |
//! | apply | the shared engine: creates missing objects, repairs enforced fields, deletes owned objects that the plan removes |
//! | report | phase, addresses, node, ready time, conditions; one patch of the status, if it differs |
//!
//! If the process dies between any two writes, the next reconcile plans the rest from what exists. All state
//! is in the cluster.

mod access;
mod cause;
mod children;
mod cloud_init;
mod container;
mod environment;
mod events;
mod exam_network;
mod exposure;
mod exposure_status;
mod gauges;
mod host_key;
mod machine;
mod mirrors;
mod mounts;
mod observe;
mod phase;
mod plan;
mod pretty_name;
mod reconcile;
mod report;
mod requirements;
mod restart;
mod route_policy;
mod stores;
pub mod telemetry;
mod told;
mod validate;
mod workload;

pub use reconcile::InstanceReconciler;
