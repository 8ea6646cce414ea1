//! Kinds of Kubernetes and of other projects, with those of their fields that a control loop reads. All other
//! fields are skipped while decoding.

mod admission;
mod core;
mod exposure;
mod gateway;
mod ingress;
mod job;
mod kubevirt;
mod pod_network;
mod tenancy;

pub use self::admission::*;
pub use self::core::*;
pub use self::exposure::*;
pub use self::gateway::*;
pub use self::ingress::*;
pub use self::job::*;
pub use self::kubevirt::*;
pub use self::pod_network::*;
pub use self::tenancy::*;

pub(crate) use crate::api::object::kind;

/// A spec or status of which we read nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Unread {}
