//! The shared volume loop creates the NFS volumes of Workspaces.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the volume, its `PersistentVolumeClaim` and `PersistentVolume`, its Job, and the Templates and Instances that use it |
//! | plan | label and finalizer on the volume; claim (which grows and never shrinks); Job that prepares it, once |
//! | apply | the shared engine |
//! | report | phase, server and path, conditions; one patch of the status, if it differs |
//!
//! The finalizer of a volume that is being deleted is removed once no Template or Instance mounts it, and it has no mirror. If the process
//! dies between two writes, the next reconcile plans the remaining ones from the existing objects.

mod children;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

#[cfg(test)]
mod tests;

pub use reconcile::SharedVolumeReconciler;
