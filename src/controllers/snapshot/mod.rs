//! The snapshot loop makes images of the disks of stopped virtual machines.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the snapshot, the Instance, its Template, the Job of the snapshot, and everything that uses the disk |
//! | plan | the decision: nothing, wait, create the Job, or end; before a refusal, Instance and Template are read from the API server |
//! | apply | first the status is written, which fails if the snapshot has changed meanwhile; then the Job is created |
//! | report | phase and condition; on a failed snapshot, an annotation with the generation of its spec |
//!
//! An existing Job contains all the state that the next process needs. If the process dies between two writes, no
//! snapshot is lost or made twice. A snapshot that has ended is not made again.

mod children;
mod decide;
mod image;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;
mod trouble;

#[cfg(test)]
mod tests;

pub use reconcile::SnapshotReconciler;
