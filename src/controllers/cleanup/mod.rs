//! How an Instance comes to its end after a time: what the loops of inactivity and expiration share.
//!
//! | module | what it is |
//! |---|---|
//! | [`delivery`] | how a mail reaches its Tenant, and who is told where it does not |
//! | [`ending`] | how an Instance comes to its end: warnings, deadline, action |
//! | [`mail_log`] | which mails were accepted, and when |
//! | [`notifier`] | the mails of a loop, and the gauges about its promises |
//! | [`promise`] | what was promised to a Tenant, and what is due next |
//! | [`promises`] | the gauges about the promises of a loop |
//! | [`stores`] | the stores of the loops that end Instances after a time |

#[cfg(test)]
pub mod contract;
pub mod delivery;
pub mod ending;
pub mod mail_log;
pub mod notifier;
pub mod promise;
pub mod promises;
pub mod stores;
