//! The inactivity loop stops Instances that nobody uses, and deletes those that cannot be stopped or stay stopped.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Instance, its Template, its Tenant, its namespace; and its last use in the latest round of queries, or by who asked to keep it |
//! | plan | a round of queries where the latest is too old; else the warning that is due, or, after the deadline, the last mail, then the stop or the deletion |
//! | apply | the round of queries and the mail (effects); the patch that stops the Instance, or the deletion |
//! | report | the promise in `status.inactivity` or `status.destruction`, the conditions `Inactive` and `Abandoned`, events; the annotations that the Go operator reads |
//!
//! Nobody is warned and nothing is stopped unless every source of metrics has answered for the whole time in
//! question. Before a mail is sent, the promise that it makes is written into the status; once the mail server has
//! accepted it, that is written too: into an annotation that only this daemon may write, so that no second mail is sent within
//! an interval, and into the status. A process that dies in between sends the same mail again, with the same
//! `Message-ID`. The stop and the deletion name the resource version of the Instance, so nothing happens to one that
//! has changed.

mod observe;
mod plan;
mod reconcile;
mod report;
mod rounds;
mod stores;

#[cfg(test)]
mod tests;

pub use reconcile::InactivityReconciler;

/// The settings of plans and reports.
pub type Settings = crate::controllers::cleanup::Settings<crate::config::InactivityConfig>;
