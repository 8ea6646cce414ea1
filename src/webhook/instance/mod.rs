//! The rules for Instances: each is for the Tenant whose namespace it is in, and starting one must not exceed the quota
//! that the Workspace grants to each of its users.

pub mod quota;
pub mod reservations;
pub mod tenant_ref;
#[cfg(test)]
mod tests;
