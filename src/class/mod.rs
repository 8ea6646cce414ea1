//! Actions on the machines of a class: start, stop, collect, delete. The dashboard and `crownlabs class` share them.
//!
//! | file | content |
//! |---|---|
//! | `model.rs` | the terms: verb, identifier, selection, row |
//! | `cluster.rs` | the requests of an action, as the user who starts it |
//! | `read.rs` | reads the people of a course and their machines |
//! | `plan.rs` | the rows of an action: pure functions of the cluster |
//! | `run.rs` | sends the changes, 32 at a time |
//!
//! Nothing is stored. The name of a new machine derives from the identifier of the action, and an annotation of each
//! changed machine names the action, so an action that was interrupted or sent twice can be repeated: it changes each
//! machine once. A later action takes precedence over an earlier one.

pub mod cluster;
pub mod model;
pub mod plan;
pub mod read;
pub mod run;
#[cfg(test)]
mod tests;
