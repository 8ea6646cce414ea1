//! `crownlabs why` and `crownlabs status`: the state of an Instance and its next steps, and the Instances of a course.
//! The facts are those of [`api::why`](crate::api::why); here they are read from a cluster, and told in the words of
//! conditions and events.

pub mod course;
pub mod instance;
mod live;

pub use live::{status, why};
