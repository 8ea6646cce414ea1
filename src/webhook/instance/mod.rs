//! The rules for Instances: each is for the Tenant whose namespace it is in, starting one must not exceed the quota that the
//! Workspace grants to each of its users, and only this daemon writes when mails about it were accepted.

pub mod names;
pub mod quota;
pub mod records;
pub mod reservations;
pub mod tenant_ref;
#[cfg(test)]
mod tests;
