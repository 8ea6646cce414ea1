//! The submission loop uploads the content of exams that have ended.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Instance, its Template, its workloads and disks, its pods and virtual machines, its Jobs |
//! | plan | the decision: wait until the Instance is off, create a Job for each environment with a destination, replace one that has failed, or set the labels that end the request |
//! | apply | the Jobs; labels in one patch, valid only for the version that was seen |
//! | report | number of attempts and time of the upload for each environment, the condition `Submitted`, events |
//!
//! The condition `Submitted` is `Unknown` while a request is open, from the label
//! `crownlabs.polito.it/instance-submission-requested: "true"` until the labels say how it has ended. A Job that has
//! finished stays until its result is in the status. So whenever the process dies, the next one finds which of the steps
//! have been done: a successful upload is not repeated, and a failed one not more often than configured.

mod children;
mod decide;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

#[cfg(test)]
mod tests;

pub use reconcile::SubmissionReconciler;
