//! The loop over public exposure: ports of an Instance on an address of the pool.
//!
//! | stage | what |
//! |---|---|
//! | observe | the Instance, its Template, and the Service and `NetworkPolicy` that stand under its names, from the stores; what it asks for, validated; address and ports from the allocator, which knows every claim: shown by the store, or given a moment ago |
//! | plan | Service, then `NetworkPolicy`; or their removal |
//! | apply | the shared engine |
//! | report | `status.publicExposure` and the condition `PublicExposureReady`; one patch, if they differ |
//!
//! Everything that is allocated stands in the Services themselves. If the process dies before one is written,
//! the next reconcile allocates again; after it, the store of the next process shows the claim. One whose
//! write was under way when its process died may come late and meet another: then the younger of the
//! two moves.

mod addresses;
mod allocator;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;
mod validate;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

pub use reconcile::PublicExposureReconciler;

use crate::config::pool::Pool;

/// What the loop depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The addresses that may be given.
    pub pool: Pool,
    /// The ports that are given where any will do.
    pub automatic: RangeInclusive<u16>,
    /// The annotations of every Service.
    pub annotations: BTreeMap<String, String>,
    /// The labels of every Service, beside our own.
    pub labels: BTreeMap<String, String>,
    /// The annotation that tells the load balancer which address to give.
    pub address_key: String,
    /// Whether an exposure is ready only once the load balancer has given the address.
    pub wait_for_address: bool,
}

#[cfg(test)]
mod tests;
