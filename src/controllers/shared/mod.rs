//! Code that several loops use.
//!
//! | module | contents |
//! |---|---|
//! | [`addresses`] | the addresses of Instances inside the cluster |
//! | [`children`] | the common part of the objects that a loop creates for one object |
//! | [`entrance`] | the users that may enter the machines of an Instance |
//! | [`environments`] | the environments of an Instance, and which of them are uploaded |
//! | [`job_pods`] | the pods of the Jobs that a loop creates |
//! | [`listener`] | the prerequisites of a replica loop's server: its address and its files |
//! | [`members`] | JSON objects as Go's decoder reads them |
//! | [`nfs_volume`] | volumes on NFS: personal and shared |
//! | [`pod_security`] | the security contexts of the pods that the loops create |
//! | [`problems`] | problems and failures of a reconcile as conditions and events |
//! | [`queries`] | queries to other servers, outside the workers, and their results |
//! | [`references`] | references between objects: keys and indexes |
//! | [`former`] | the objects that were taken under another selector |
//! | [`responsibility`] | the objects that this daemon is responsible for |
//! | [`rivals`] | the other installations in the marks of objects |
//! | [`service_names`] | Instances whose Services would have the same name |
//! | [`storage_limit`] | the limit of a pod's use of its node's disk |
//! | [`switched_off`] | the condition about fields of the spec that the configuration switches off |
//! | [`tenancy`] | Instances that name a Tenant other than the owner of their namespace |
//! | [`waits`] | the root cause when a claim, a Job or a namespace waits |

pub mod addresses;
pub mod children;
pub mod entrance;
pub mod environments;
#[cfg(test)]
pub mod fixtures;
pub mod former;
pub mod job_pods;
pub mod listener;
pub mod members;
pub mod nfs_volume;
pub mod pod_security;
pub mod problems;
pub mod queries;
pub mod references;
pub mod responsibility;
pub mod rivals;
pub mod service_names;
pub mod storage_limit;
pub mod switched_off;
pub mod tenancy;
pub mod waits;
