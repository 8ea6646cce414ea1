//! The metrics of the SSH bastion.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All metrics of the SSH bastion.
    METRICS;
    Gauge => "bastion_keys" by {}
        "Number of public keys of Tenants that the SSH bastion accepts"
        "0 with Tenants who have keys: the file is not written. The log says why.";
    Gauge => "bastion_keys_skipped" by {}
        "Number of public keys of Tenants that the SSH bastion cannot use"
        "The condition `InvalidPublicKeys` of the Tenants names them.";
}
