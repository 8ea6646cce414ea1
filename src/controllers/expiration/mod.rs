//! The expiration loop deletes Instances that are older than their Template allows, whether they are used or not.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Instance, its Template, its Tenant, its namespace |
//! | plan | the warning, then, after the deadline in it, the last mail, then the deletion |
//! | apply | the mail (an effect), or the deletion |
//! | report | the promise in `status.expiration`, the condition `Expiring`, events; the annotations that the Go operators read |
//!
//! Before a mail is sent, the promise that it makes is written into the status; once the mail server has accepted it,
//! that is written too: into the annotations, among them one that only this daemon may write, so that no second mail is sent
//! within an interval, then into the status. A process that dies before sends the same mail again,
//! with the same `Message-ID`. The deletion names the resource version of the Instance, so nothing is deleted that has
//! changed.

mod observe;
mod plan;
mod reconcile;
mod report;

#[cfg(test)]
mod tests;

pub use reconcile::ExpirationReconciler;

/// The settings of plans and reports.
pub type Settings = crate::controllers::cleanup::Settings<crate::config::ExpirationConfig>;
