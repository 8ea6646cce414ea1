//! The workspace room: a namespace, rights and enrolment for each course (05 §13).
//!
//! | stage | what |
//! |---|---|
//! | observe | the Workspace, the objects that it owns, and the Tenants that name it, from the stores; its roles from Keycloak |
//! | plan | finalizer and label, namespace, bindings; who is promoted, who is struck off; which roles are missing |
//! | apply | the shared engine, and Keycloak |
//! | report | namespace, subscriptions, ready, conditions; one patch of the status, if it differs |
//!
//! If the process dies between any two writes, the next pass plans from what it finds. A Workspace
//! that is being deleted keeps its finalizer until no Tenant names it, its rights are gone and
//! Keycloak has no roles of it.

pub mod observe;
pub mod plan;
pub mod report;
mod room;
mod setup;
mod world;

pub use room::Room;
pub use setup::set_up;
pub use world::World;
