//! `crownlabs why` and `crownlabs status`: the state of an Instance and its next steps, and the Instances of a course.
//! The facts come from [`api::why`](crate::api::why). This module reads them from a cluster and phrases them like
//! conditions and events.

pub mod course;
pub mod instance;
mod live;

pub use live::{status, why};
