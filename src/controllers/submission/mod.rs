//! The submission loop uploads the content of exams that have ended.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Instance, its Template, its workloads and disks, its pods and virtual machines, its Jobs |
//! | plan | the decision: wait until the Instance is off, create a Job for each environment with a destination, replace a failed Job, or set the labels that end the request |
//! | apply | the Jobs; labels in one patch, valid only for the version that was seen; after the request, the mail with the receipts |
//! | report | number of attempts, time and receipt of the upload for each environment, the condition `Submitted`, events |
//!
//! The condition `Submitted` is `Unknown` while a request is open. A request begins with the label
//! `crownlabs.polito.it/instance-submission-requested: "true"` and ends when the labels state its result. A finished
//! Job stays until its result is in the status. If the process dies, the next one can see which steps are done: a
//! successful upload is not repeated, and a failed one is retried no more often than configured.

mod children;
mod decide;
mod observe;
mod plan;
mod receipt;
mod receipt_mail;
mod reconcile;
mod report;
mod stores;

#[cfg(test)]
mod tests;

use crate::api::openings::Site;
use crate::config::SubmissionConfig;

pub use reconcile::SubmissionReconciler;

/// The settings of the plans and reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The configuration of the loop.
    pub config: SubmissionConfig,
    /// Where users see their Instances, for the link in mails.
    pub site: Site,
    /// Whether receipts are sent by mail.
    pub sends: bool,
}
