//! The leader side of pod networks. It decides which running pods get additional interfaces, and assigns their
//! addresses. The nodes create the interfaces (`podConfigNode`). Both sides exchange the records of
//! `controllers::pod_network`.
//!
//! | stage | action |
//! |---|---|
//! | observe | reads from the stores: all `PodConfig`s of the namespace with their pods, the pools, the reports and the nodes; the decisions about ranges and bridges in the whole cluster |
//! | plan | finalizer; the next state of each pool, as one write against the observed version; sample Deployment |
//! | apply | the shared engine |
//! | report | phase, interfaces of the pods, conditions, events; one patch of the status, if it differs |
//!
//! No address is kept in memory: each is in the record of its pool before a node reads it. If the process dies before
//! that write, the next reconcile allocates again. Two writes against the same version of a record cannot both succeed.
//!
//! [`ranges`], [`validate`], [`claims`], [`records`], [`allocator`] and [`pools`] are pure functions; [`cache`] holds
//! data derived from the stores, so that it is not computed for each reconcile.

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
