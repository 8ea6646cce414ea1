//! The loop of shared volumes: network folders of courses.
//!
//! | stage | what |
//! |---|---|
//! | observe | the volume, its claim, the PersistentVolume behind that, its Job, and who uses it, from the stores |
//! | plan | label and finalizer on the volume; claim (which grows and never shrinks); Job that prepares it, once |
//! | apply | the shared engine |
//! | report | phase, server and path, conditions; one patch of the status, if it differs |
//!
//! A volume that is being deleted loses its finalizer once no Template mounts it and no Instance has been made
//! to. If the process dies between any two writes, the next reconcile plans from what it finds.

mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

#[cfg(test)]
mod tests;

pub use reconcile::SharedVolumeReconciler;
