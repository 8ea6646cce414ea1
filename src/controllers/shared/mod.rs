//! Code that several loops use.
//!
//! | module | what it is |
//! |---|---|
//! | [`account_work`] | the work of a loop in Keycloak, without a worker that waits for it |
//! | [`accounts`] | accounts and roles in Keycloak |
//! | [`addresses`] | the addresses of Instances inside the cluster |
//! | [`children`] | the common part of the objects that a loop creates for one object |
//! | [`delivery`] | how a mail reaches its Tenant, and who is told where it does not |
//! | [`durations`] | durations as text |
//! | [`ending`] | how an Instance comes to its end: warnings, deadline, action |
//! | [`ending_stores`] | the stores of the loops that end Instances after a time |
//! | [`entrance`] | who may enter the machines of an Instance |
//! | [`environments`] | the environments of an Instance, and which of them are uploaded |
//! | [`internal_errors`] | a metric of the loops of Tenants and Workspaces |
//! | [`mail_log`] | which mails were accepted, and when |
//! | [`nfs_volume`] | volumes on NFS: personal and shared |
//! | [`notifier`] | the mails of a loop, and the gauges about its promises |
//! | [`outage`] | whether Keycloak answers: the circuit breaker in front of it |
//! | [`pod_network`] | what the two loops of pod networks tell each other |
//! | [`problems`] | problems and failures of a reconcile as conditions and events |
//! | [`promise`] | what was promised to a Tenant, and what is due next |
//! | [`promises`] | the gauges about the promises of a loop |
//! | [`references`] | references between objects: keys and indexes |
//! | [`responsibility`] | which objects this daemon is responsible for |
//! | [`tenancy`] | whose namespace is whose |

pub mod account_work;
pub mod accounts;
pub mod addresses;
pub mod children;
#[cfg(test)]
pub mod contract;
pub mod delivery;
pub mod durations;
pub mod ending;
pub mod ending_stores;
pub mod entrance;
pub mod environments;
#[cfg(test)]
pub mod fixtures;
pub mod internal_errors;
pub mod listener;
pub mod mail_log;
pub mod nfs_volume;
pub mod notifier;
pub mod outage;
pub mod pod_network;
pub mod problems;
pub mod promise;
pub mod promises;
pub mod references;
pub mod responsibility;
pub mod tenancy;
