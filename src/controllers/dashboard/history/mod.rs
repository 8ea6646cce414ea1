//! The history of a machine, a person or a course: who did what and when, as far as the object and its events tell.

pub mod model;
pub mod read;
#[cfg(test)]
mod tests;
pub mod view;
