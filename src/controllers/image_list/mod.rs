//! The image list loop reads container registries, and writes what they offer into `ImageLists`, from which teachers choose
//! the images of Templates.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads the `ImageList` from the store, if there is one, and from memory the last query of its registry |
//! | plan | whether the registry is read now, or when; or the list as it must be |
//! | effects | the query runs beside the workers, each in a task of its own, so that a registry that hangs delays only its list; its result adds the list to the queue |
//! | report | the condition `Stale`, events, the time of the last success while the list is stale |
//!
//! The lists are those that the configuration names, whether they exist or not; no other is touched. Of a list, only the spec
//! is written: labels, annotations, owners and finalizers are left to others. A query that fails changes no list: the
//! condition says what is wrong. A list that does not exist yet is then made without images, so that somebody sees it.

mod observe;
mod plan;
mod reconcile;
mod registries;
mod report;
mod stores;

pub mod telemetry;
#[cfg(test)]
mod tests;

pub use reconcile::ImageListReconciler;
