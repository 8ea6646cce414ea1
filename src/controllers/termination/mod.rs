//! The termination loop queries the status URL of exams, and stops Instances that are not needed any more.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Instance and its Template; from memory: the last query of its status URL |
//! | plan | whether the URL is queried now, or when; or that the Instance is stopped: labels and `spec.running` in one patch, valid only for the version that was seen |
//! | effects | the query runs beside the workers, so that a URL that hangs delays only its Instance; its result adds the Instance to the queue |
//! | report | times of the query and of the termination, the condition `StatusChecked`, events |
//!
//! An exam is over when its URL has said so twice, with some time in between, since its machine was ready for the first
//! time. The first such answer is remembered in memory only, so a restart begins to count anew, and nobody can write it.
//!
//! Only Instances with the label `crownlabs.polito.it/watch-for-instance-termination: "true"` are queried. That an exam
//! is over is written into the status before the Instance is stopped. So if the process dies in between, the next one
//! stops it without another query.

mod checks;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

pub mod telemetry;
#[cfg(test)]
mod tests;

pub use reconcile::TerminationReconciler;
