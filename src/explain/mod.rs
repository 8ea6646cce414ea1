//! `crownlabs why` and `crownlabs status`: what an Instance waits for and what will happen to it, and who runs what in a course.
//! The sentences are those of conditions and events; the functions that choose and order them are pure.

pub mod course;
pub mod instance;
mod live;
mod span;

pub use live::{status, why};
