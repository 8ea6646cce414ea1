//! The rule for Instances (02 §15.1): what a Workspace lends to each of its users at the same time
//! is not exceeded by starting one more.

pub mod amounts;
pub mod quota;
pub mod reservations;
#[cfg(test)]
mod tests;
