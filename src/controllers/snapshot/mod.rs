//! The snapshot loop: images made from the disks of stopped virtual machines.
//!
//! | stage | what |
//! |---|---|
//! | observe | the snapshot, the Instance, its Template, the Job of the snapshot, and what keeps the disk busy, from the stores |
//! | plan | what is decided: nothing, waiting, the Job, or an end; a refusal only after Instance and Template were read anew |
//! | apply | first the status says that the Job is about to be made, which fails if the snapshot has changed meanwhile; then the Job |
//! | report | phase and condition; on a snapshot that failed, for which generation of its spec |
//!
//! A Job that is there tells a successor all it needs, so dying between any two writes neither loses a snapshot
//! nor makes one twice. What has ended stays ended.

mod decide;
mod image;
mod job;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

#[cfg(test)]
mod tests;

pub use reconcile::SnapshotReconciler;
