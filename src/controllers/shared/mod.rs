//! Code that several loops use.
//!
//! | module | what it is |
//! |---|---|
//! | [`accounts`] | accounts and roles in Keycloak |
//! | [`children`] | the common part of the objects that a loop creates for one object |
//! | [`durations`] | durations as text |
//! | [`environments`] | the environments of an Instance, and which of them are uploaded |
//! | [`nfs_volume`] | volumes on NFS: personal and shared |
//! | [`problems`] | problems and failures of a reconcile as conditions and events |
//! | [`references`] | references between objects: keys and indexes |

pub mod accounts;
pub mod children;
pub mod deadlines;
pub mod durations;
pub mod ending;
pub mod environments;
pub mod nfs_volume;
pub mod problems;
pub mod promise;
pub mod references;
