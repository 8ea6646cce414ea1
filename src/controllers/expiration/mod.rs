//! The expiration loop deletes Instances that are older than their Template allows, whether they are used or not.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Instance, its Template, its Tenant, its namespace |
//! | plan | the warning; after its deadline, the last mail and then the deletion |
//! | apply | the mail (an effect), or the deletion |
//! | report | the promise in `status.expiration`, the condition `Expiring`, events, and the annotations for the Go operators |
//!
//! Before a mail is sent, its promise is written into the status. Once the mail server has accepted the mail, this fact
//! is written into the annotations and then into the status. One of the annotations may only be written by this daemon,
//! so that no second mail is sent within an interval. A process that dies in between sends the same mail again, with
//! the same `Message-ID`. The deletion names the resource version of the Instance, so it fails if the Instance has
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
