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

use serde::{Deserialize, Deserializer};

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

/// Makes a struct a part of a kind of others, with those of its fields that we read. Keys are in `camelCase`. Any field may be
/// absent, and then has its default value; an `Option` and an `Optional` are not written then.
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

/// Reads a list, or `null`, of which only some elements are kept.
fn kept<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    is_kept: impl FnMut(&T) -> bool,
) -> Result<Vec<T>, D::Error> {
    let mut list = Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default();
    list.retain(is_kept);
    list.shrink_to_fit();
    Ok(list)
}

/// A spec or status of which we read nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Unread {}
