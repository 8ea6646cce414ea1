//! Kinds of Kubernetes and of other projects, with those of their fields that a control loop reads. All other
//! fields are skipped while decoding.

mod admission;
mod core;
mod exposure;
mod gateway;
mod job;
mod kubevirt;
mod tenancy;

pub use self::admission::*;
pub use self::core::*;
pub use self::exposure::*;
pub use self::gateway::*;
pub use self::job::*;
pub use self::kubevirt::*;
pub use self::tenancy::*;

/// Declares a kind: a marker type that implements `Kind`, and an alias for `Object` of it.
macro_rules! kind {
    ($(#[$doc:meta])* $marker:ident, $alias:ident, $group:literal, $version:literal, $kind:literal,
     $plural:literal, namespaced: $namespaced:literal, $spec:ty, $status:ty $(, body: $body:literal)? $(, encoded: $encoded:literal)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $marker;

        $(#[$doc])*
        #[allow(dead_code, reason = "not every kind is named by its objects")]
        pub type $alias = crate::api::Object<$marker>;

        impl crate::api::Kind for $marker {
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const KIND: &'static str = $kind;
            const PLURAL: &'static str = $plural;
            const NAMESPACED: bool = $namespaced;
            $(const BODY: &'static str = $body;)?
            $(const ENCODED: bool = $encoded;)?
            type Spec = $spec;
            type Status = $status;
        }
    };
}
pub(crate) use kind;

/// A spec or status of which we read nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Unread {}
