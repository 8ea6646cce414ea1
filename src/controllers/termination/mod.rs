//! The termination loop queries the status URLs of exams, and stops Instances that are no longer needed.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Instance and its Template; from memory: the last query of its status URL |
//! | plan | whether the URL is queried now or later; or the stop of the Instance: labels and `spec.running` in one patch, valid only for the version that was seen |
//! | effects | the query, outside the workers, so that a URL that hangs delays only its own Instance; its result adds the Instance to the queue |
//! | report | times of the query and of the termination, the condition `StatusChecked`, events |
//!
//! An exam is over when its URL has said so twice, with some time in between, after its machine was ready for the first
//! time. The first of these answers is kept only in memory, so that no user can write it. After a restart of the
//! daemon, two answers are needed again.
//!
//! Only Instances with the label `crownlabs.polito.it/watch-for-instance-termination: "true"` are queried. The end of
//! an exam is written into the status before the Instance is stopped. If the process dies in between, the next one
//! stops the Instance without another query.

mod checks;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

pub mod telemetry;
#[cfg(test)]
mod tests;

pub use reconcile::{TerminationReconciler, status_client};
