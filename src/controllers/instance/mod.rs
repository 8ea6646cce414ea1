//! The instance room: lab machines, from an Instance and its Template (02).
//!
//! | stage | what |
//! |---|---|
//! | observe | the Instance, its Template, Tenant, course managers, mounts, and the objects that it owns, from the stores |
//! | plan | labels and stamp on the Instance; for each environment its Service, Ingress or route, claim or Secret, and workload |
//! | apply | the shared engine: create what is missing, repair what is enforced, remove what is ours and no longer wanted |
//! | report | phase, addresses, node, ready time, conditions; one patch of the status, if it differs |
//!
//! If the process dies between any two writes, the next pass plans from what it finds. Nothing is
//! remembered outside of the cluster.

pub mod cloud_init;
pub mod container;
pub mod environment;
pub mod exposure;
pub mod machine;
pub mod mounts;
pub mod observe;
pub mod phase;
pub mod plan;
pub mod pretty_name;
pub mod report;
pub mod resources;
mod room;
mod setup;
pub mod world;

pub use room::Room;
pub use setup::set_up;
pub use world::World;
