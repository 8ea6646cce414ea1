//! The leader side of pod networks: which running pods get which additional interfaces, and with which addresses. The nodes
//! make them (`podConfigNode`); `controllers::pod_network` has the records by which they work together.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: all `PodConfig`s of the namespace with their pods, the pools, the reports and the nodes; what is decided about ranges and bridges in the whole cluster |
//! | plan | finalizer; the next state of each pool, as one write for the version that was seen; sample Deployment |
//! | apply | the shared engine |
//! | report | phase, interfaces of the pods, conditions, events; one patch of the status, if it differs |
//!
//! No address is kept in memory: each is in the record of its pool before a node reads of it. If the process dies before
//! that write, the next reconcile allocates again; two writes for the same version of a record cannot both succeed.
//!
//! [`ranges`], [`validate`], [`claims`], [`records`], [`allocator`] and [`pools`] are pure functions; [`cache`] keeps what
//! follows from the stores, so that it is not computed for each reconcile.

mod allocator;
mod cache;
mod claims;
mod observe;
mod plan;
mod pools;
mod ranges;
mod reconcile;
mod records;
mod report;
mod sample;
mod stores;
pub mod telemetry;
mod validate;

#[cfg(test)]
mod tests;

pub use reconcile::PodConfigReconciler;
