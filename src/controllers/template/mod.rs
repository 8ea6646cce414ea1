//! The template loop reports the problems of Templates before a user starts an Instance.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Template, its Workspace, the shared volumes that it mounts, and the parts of the cluster that environments need |
//! | plan | the faults of its spec, and the obstacles of its environments (`api/requirements`); only the status is written |
//! | report | the conditions `Valid`, `Ready` and `Stalled`; an event for each fault; one patch of the status, if it differs |
//!
//! The loop only watches objects and writes the status. If the process dies, the next one reports the same.

mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

#[cfg(test)]
mod tests;

pub use reconcile::TemplateReconciler;
