//! The inactivity loop stops unused Instances, and deletes unused Instances that cannot be stopped or that stay
//! stopped.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads the Instance, its Template, Tenant and namespace from the stores, and its last use from the latest round of queries or from a request to keep it |
//! | plan | a round of queries if the latest one is too old; otherwise the next warning or, after the deadline, the last mail and then the stop or the deletion |
//! | apply | the round of queries and the mail (effects); the patch that stops the Instance, or the deletion |
//! | report | the promise in `status.inactivity` or `status.destruction`, the conditions `Inactive` and `Abandoned`, events, and the annotations for the Go operator |
//!
//! No warning is sent and no Instance is stopped unless every source of metrics has answered for the whole period.
//! Before a mail is sent, its promise is written into the status. Once the mail server has accepted the mail, this fact
//! is written into an annotation that only this daemon may write, so that no second mail is sent within an interval,
//! and into the status. A process that dies in between sends the same mail again, with the same `Message-ID`. The stop
//! and the deletion name the resource version of the Instance, so they fail if the Instance has changed.

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
