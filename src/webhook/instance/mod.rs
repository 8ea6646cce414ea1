//! The rules for Instances. An Instance must be for the Tenant that owns its namespace. Starting it must not exceed the
//! quota that the Workspace grants to each of its users. Only this daemon records the times of accepted mails.
//! Annotations that hold times have valid ones. New public ports must be possible. Managers may write only Instances of
//! their courses, if their rights end there. Only the owner shares an Instance, with people of its course.

pub mod managers;
pub mod names;
pub mod ports;
pub mod quota;
pub mod records;
pub mod reservations;
pub mod sharing;
pub mod tenant_ref;
#[cfg(test)]
mod tests;
pub mod times;
