//! The public exposure loop makes ports of Instances reachable on addresses of a pool.
//!
//! | stage | action |
//! |---|---|
//! | observe | reads from the stores: the Instance, its Template, and the Service and `NetworkPolicy` with its names; validates the requested ports; gets address and ports from the allocator, which tracks the claims of all Services |
//! | plan | Service, then `NetworkPolicy`; or their removal |
//! | apply | the shared engine |
//! | report | `status.publicExposure` and the condition `PublicExposureReady`; one patch, if they differ |
//!
//! All allocations are stored in the Services themselves. If the process dies before a Service is written, the next
//! reconcile allocates again. If it dies afterwards, the store of the next process shows the claim. A pending write of
//! a dead process may arrive late and claim a port that was allocated again. In that case, the younger Service moves.

mod addresses;
mod allocator;
mod children;
mod names;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;
pub mod telemetry;
mod validate;

pub use reconcile::PublicExposureReconciler;

use crate::config::pool::Pool;
use crate::config::{ConfigDuration, PublicExposureConfig};

/// The settings of the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The configuration of the loop.
    pub config: PublicExposureConfig,
    /// The addresses that can be allocated.
    pub pool: Pool,
    /// How long a Service may be without an address before it counts as ignored.
    pub stalled_after: ConfigDuration,
}

#[cfg(test)]
mod tests;
