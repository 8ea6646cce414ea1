//! Kinds of Kubernetes and other projects, with only the fields that a control loop reads. All other fields are skipped
//! during decoding.

mod admission;
mod core;
mod exposure;
mod gateway;
mod ingress;
mod job;
mod kubevirt;
mod mirror;
mod pod_network;
mod tenancy;

use serde::Deserialize;

pub use self::admission::*;
pub use self::core::*;
pub use self::exposure::*;
pub use self::gateway::*;
pub use self::ingress::*;
pub use self::job::*;
pub use self::kubevirt::*;
pub use self::mirror::*;
pub use self::pod_network::*;
pub use self::tenancy::*;
use crate::api::wire::kept;

pub(crate) use crate::api::object::kind;

/// Derives the traits of a part of another project's kind, which has only the fields that we read. Keys are in
/// `camelCase`. An absent field gets its default value; an `Option` or `Optional` with its default value is not
/// serialised.
macro_rules! foreign_part {
    ($($item:tt)*) => {
        #[serde_with::apply(
            Option => #[serde(skip_serializing_if = "Option::is_none")],
            Optional => #[serde(skip_serializing_if = "crate::api::wire::is_default")],
        )]
        #[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        $($item)*
    };
}
use foreign_part;

/// A spec or status without any field that we read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Unread {}
