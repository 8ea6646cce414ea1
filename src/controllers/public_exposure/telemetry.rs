//! The metrics of the public exposure loop.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All of them.
    METRICS;
    Gauge => "public_exposure_pool_addresses" by {}
        "Number of public addresses that may be given to Instances"
        "0: `controllers.publicExposure.ipPool` is empty.";
    Gauge => "public_exposure_used_addresses" by {}
        "Number of public addresses on which Instances have ports"
        "Near `public_exposure_pool_addresses`: enlarge the pool.";
    Gauge => "public_exposure_used_ports" by {}
        "Number of public ports that Instances have; TCP and UDP count apart"
        "How much the exposure is used.";
}
