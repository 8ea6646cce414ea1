//! What happens to a person in a course.

use crate::controllers::dashboard::texts::template::table_key;

table_key! {
    /// What happens to a person in a course.
    pub enum Step {
        /// A Tenant is created with the role.
        New,
        /// A Tenant gets the role.
        Enrolled,
        /// A candidate gets the role.
        Approved,
        /// The role changes.
        Changed,
        /// The request of a candidate is rejected.
        Rejected,
        /// Nothing.
        Unchanged,
    }
}
