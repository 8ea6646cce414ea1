//! The instance loop: lab machines, from an Instance and its Template.
//!
//! | stage | what |
//! |---|---|
//! | observe | the Instance, its Template, Tenant, course managers, mounts, and the objects that it owns, from the stores |
//! | plan | labels and power-off time on the Instance; for each environment its Service, Ingress or route, claim or Secret, and workload |
//! | apply | the shared engine: creates what is missing, repairs what is enforced, removes what is ours and no longer wanted |
//! | report | phase, addresses, node, ready time, conditions; one patch of the status, if it differs |
//!
//! If the process dies between any two writes, the next reconcile plans from what it finds. Nothing is
//! remembered outside of the cluster.

mod cloud_init;
mod container;
mod environment;
mod exposure;
mod machine;
mod mounts;
mod observe;
mod phase;
mod plan;
mod pretty_name;
mod reconcile;
mod refusal;
mod report;
mod resources;
mod stores;
mod workload;

pub use reconcile::InstanceReconciler;
