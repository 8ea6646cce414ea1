//! `crownlabs why` and `crownlabs status`: the state of an Instance and its next steps, and the Instances of a course.
//! The sentences are those of conditions and events; the functions that choose and order them are pure.

pub mod course;
mod events;
pub mod instance;
mod live;
mod span;

pub use live::{status, why};
