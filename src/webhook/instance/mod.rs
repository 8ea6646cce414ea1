//! The rule for Instances: starting one must not exceed the quota that the Workspace grants to each of its
//! users.

pub mod quota;
pub mod reservations;
#[cfg(test)]
mod tests;
pub mod usage;
