//! Code that several loops use.
//!
//! | module | contents |
//! |---|---|
//! | [`addresses`] | the addresses of Instances inside the cluster |
//! | [`children`] | the common part of the objects that a loop creates for one object |
//! | [`connections`] | the open connections of people who do not own the machine |
//! | [`cookies`] | the format of cookies of one host |
//! | [`ended_session`] | the annotation of a Tenant that names an ended session |
//! | [`egress`] | the rules of `NetworkPolicies` about outgoing traffic |
//! | [`course_managers`] | the bindings of managers, in the whole cluster or in personal namespaces |
//! | [`entrance`] | the users that may enter the machines of an Instance |
//! | [`environments`] | the environments of an Instance, and which of them are uploaded |
//! | [`job_pods`] | the pods of the Jobs that a loop creates |
//! | [`listener`] | the prerequisites of a replica loop's server: its address and its files |
//! | [`machine_host`] | the host names of machines |
//! | [`machine_login`] | the login to a machine at its own host |
//! | [`machine_path`] | the path of a machine's web interface |
//! | [`members`] | JSON objects as Go's decoder reads them |
//! | [`mirrors`] | mirrors of claims in other namespaces |
//! | [`nfs_volume`] | volumes on NFS: personal and shared |
//! | [`peers`] | the people with whom the owner of an Instance shares it |
//! | [`pod_security`] | the security contexts of the pods that the loops create |
//! | [`problems`] | problems and failures of a reconcile as conditions and events |
//! | [`queries`] | queries to other servers, outside the workers, and their results |
//! | [`references`] | references between objects: keys and indexes |
//! | [`former`] | the objects that were taken under another selector |
//! | [`responsibility`] | the objects that this daemon is responsible for |
//! | [`rivals`] | the other installations in the marks of objects |
//! | [`sealing`] | the keys that seal cookies |
//! | [`service_names`] | Instances whose Services would have the same name |
//! | [`storage_limit`] | the limit of a pod's use of its node's disk |
//! | [`switched_off`] | the condition about fields of the spec that the configuration switches off |
//! | [`tenancy`] | Instances that name a Tenant other than the owner of their namespace |
//! | [`waits`] | the root cause when a claim, a Job or a namespace waits |
//! | [`web_terminal`] | the last messages of terminals in the browser |

pub mod addresses;
pub mod children;
pub mod connections;
pub mod cookies;
pub mod course_managers;
pub mod egress;
pub mod ended_session;
pub mod entrance;
pub mod environments;
#[cfg(test)]
pub mod fixtures;
pub mod former;
pub mod job_pods;
pub mod listener;
pub mod machine_host;
pub mod machine_login;
pub mod machine_path;
pub mod members;
pub mod mirrors;
pub mod nfs_volume;
pub mod peers;
pub mod pod_security;
pub mod problems;
pub mod queries;
pub mod references;
pub mod responsibility;
pub mod rivals;
pub mod sealing;
pub mod service_names;
pub mod storage_limit;
pub mod switched_off;
pub mod tenancy;
pub mod waits;
pub mod web_terminal;
