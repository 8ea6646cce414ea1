//! The image list loop reads container registries and writes their images into `ImageLists`. Teachers choose the images
//! of Templates from these lists.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads the `ImageList` from the store, if it exists, and the last query of its registry from memory |
//! | plan | whether the registry is read now or later; or the desired list |
//! | effects | the query, a separate task for each list, so that a registry that hangs delays only its own list; its result adds the list to the queue |
//! | report | the condition `Stale`, events, and the time of the last success while the list is stale |
//!
//! The loop manages the lists in the configuration, whether they exist or not, and no others. It writes only the spec
//! of a list, and leaves labels, annotations, owners and finalizers alone. A failed query does not change a list, and
//! the condition states the problem. If the list does not exist yet, it is created without images, so that the problem
//! is visible.

mod observe;
mod plan;
mod reconcile;
mod registries;
mod report;
pub mod telemetry;
#[cfg(test)]
mod tests;

pub use reconcile::ImageListReconciler;
