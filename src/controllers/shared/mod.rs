//! Code that several loops use.
//!
//! | module | what it is |
//! |---|---|
//! | [`addresses`] | the addresses of Instances inside the cluster |
//! | [`children`] | the common part of the objects that a loop creates for one object |
//! | [`entrance`] | who may enter the machines of an Instance |
//! | [`environments`] | the environments of an Instance, and which of them are uploaded |
//! | [`listener`] | what the server of a replica loop waits for: its address and its files |
//! | [`members`] | objects of JSON as the decoder of Go reads them |
//! | [`nfs_volume`] | volumes on NFS: personal and shared |
//! | [`problems`] | problems and failures of a reconcile as conditions and events |
//! | [`queries`] | queries of other servers that run beside the workers, and their results |
//! | [`references`] | references between objects: keys and indexes |
//! | [`responsibility`] | which objects this daemon is responsible for |
//! | [`storage_limit`] | how much of the disk of its node a pod may use |
//! | [`tenancy`] | whose namespace is whose |

pub mod addresses;
pub mod children;
pub mod entrance;
pub mod environments;
#[cfg(test)]
pub mod fixtures;
pub mod listener;
pub mod members;
pub mod nfs_volume;
pub mod problems;
pub mod queries;
pub mod references;
pub mod responsibility;
pub mod storage_limit;
pub mod tenancy;
