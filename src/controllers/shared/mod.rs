//! What several loops share.
//!
//! | module | what it is |
//! |---|---|
//! | [`accounts`] | accounts and roles in Keycloak |
//! | [`children`] | the common part of what a loop makes for one object |
//! | [`nfs_volume`] | volumes on NFS: personal and shared |
//! | [`problems`] | what kept a reconcile from doing all of its work, as conditions and events |
//! | [`references`] | what refers to what: keys and indexes |

pub mod accounts;
pub mod children;
pub mod nfs_volume;
pub mod problems;
pub mod references;
