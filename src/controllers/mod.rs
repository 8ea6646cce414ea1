//! The control loops. Each loop is a folder with the same files:
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | an overview of the loop, as a table |
//! | `stores.rs` | the stores that it reads, and the objects that each change adds to the queue |
//! | `children.rs` | the children that it makes for one object, and their stores |
//! | `observe.rs` | the state that the plan and the report of one object depend on |
//! | `plan.rs` and its parts | the plan: pure functions |
//! | `report.rs` | status, conditions and events: a pure function |
//! | `reconcile.rs` | the implementation of `Reconciler`, which the driver in `runtime` calls |
//!
//! | folder or file | shared by several loops |
//! |---|---|
//! | [`setup`] | the dependencies of loops |
//! | [`accounts`] | the work of Tenants and Workspaces in Keycloak |
//! | [`cleanup`] | the ending of Instances by the inactivity and expiration loops: warnings, promises, mails |
//! | [`pod_network`] | the records that the two pod network loops exchange |
//! | [`shared`] | the rest |

#[cfg(not(feature = "daemon"))]
mod absent;
pub mod accounts;
#[cfg(feature = "daemon")]
pub mod bastion;
pub mod cleanup;
#[cfg(feature = "daemon")]
pub mod dashboard;
#[cfg(feature = "daemon")]
pub mod exam_agent;
#[cfg(test)]
pub mod example;
pub mod expiration;
pub mod image_list;
pub mod inactivity;
pub mod instance;
#[cfg(feature = "daemon")]
pub mod instance_metrics;
#[cfg(feature = "daemon")]
pub mod login;
pub mod pod_config;
#[cfg(feature = "daemon")]
pub mod pod_config_node;
pub mod pod_network;
pub mod public_exposure;
pub mod pvc_mirror;
pub mod setup;
pub mod shared;
pub mod shared_volume;
pub mod snapshot;
#[cfg(feature = "daemon")]
pub mod ssh_tracker;
pub mod submission;
pub mod template;
pub mod tenant;
pub mod termination;
#[cfg(feature = "daemon")]
pub mod web_ssh;
pub mod workspace;

#[cfg(not(feature = "daemon"))]
pub use absent::{
    bastion, dashboard, exam_agent, instance_metrics, login, pod_config_node, ssh_tracker, web_ssh,
};
