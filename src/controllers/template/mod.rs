//! The template loop says on Templates what is wrong with them, before somebody starts an Instance.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Template, its Workspace, the shared volumes that it mounts, nodes and storage classes |
//! | plan | the faults of its spec, and why its environments cannot start on this cluster now; nothing is written but the status |
//! | report | the conditions `Valid`, `Ready` and `Stalled`; an event for each fault; one patch of the status, if it differs |
//!
//! It watches, and sends no other request. If the process dies, the next one says the same.

mod node_room;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

#[cfg(test)]
mod tests;

pub use reconcile::TemplateReconciler;
