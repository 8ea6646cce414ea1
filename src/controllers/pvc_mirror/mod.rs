//! The mirror loop provisions mirrors: claims that get the volume of a claim in another namespace, their origin.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the claim, its namespace, the origin with its `PersistentVolume`, and the volumes of mirrors with the name of the claim |
//! | plan | the `PersistentVolume` of an unbound mirror, if the origin permits its namespace; the removal of volumes whose mirror is gone |
//! | apply | the shared engine, after the claim, its namespace and the origin are read again |
//! | report | events; the loop writes no status |
//!
//! The volume of a mirror has the same source as the volume of the origin, so its removal deletes no data. The objects of
//! this loop are claims of any owner, so every condition is checked here, and not where claims are created: users can
//! create claims in their sandboxes.

mod decide;
mod observe;
mod permitted;
mod plan;
mod reconcile;
mod report;
mod stores;
#[cfg(test)]
mod tests;

pub use reconcile::PvcMirrorReconciler;
