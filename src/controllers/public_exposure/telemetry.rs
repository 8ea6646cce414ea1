//! The metrics of the public exposure loop.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All of them.
    METRICS;
    Gauge => "public_exposure_pool_addresses" by {}
        "Number of public addresses that can be assigned to Instances"
        "0: `controllers.publicExposure.ipPool` is empty.";
    Gauge => "public_exposure_used_addresses" by {}
        "Number of public addresses with ports of Instances"
        "Near `public_exposure_pool_addresses`: enlarge the pool.";
    Gauge => "public_exposure_used_ports" by {}
        "Number of public ports that Instances have; TCP and UDP count apart"
        "The usage of public exposures.";
}
