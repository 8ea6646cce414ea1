//! Reports what a standby waits for: the replica that leads, the lease, or the right to use it.

use k8s_openapi::api::coordination::v1::Lease;
use kube::core::Status;
use tracing::warn;

use super::Election;
use crate::config::LeaderElection;

/// The name in the readiness for requests that read the lease.
pub(super) const READS: &str = "Lease";
/// The name in the readiness for requests that write the lease.
pub(super) const WRITES: &str = "leader election";

/// Whether the API server does not allow a request.
pub(super) fn is_refusal(status: &Status) -> bool {
    matches!(status.code, 401 | 403)
}

impl Election {
    /// Reports that the API server refuses requests about the lease: once in the log, and under this name in the
    /// readiness until a request succeeds.
    pub(super) fn refused(&self, name: &'static str, status: &Status) {
        let LeaderElection { namespace, name: lease, .. } = &self.config;
        let sentence = format!(
            "this replica cannot lead, because the API server refuses access to the Lease {namespace}/{lease}: {}; create the \
             Role crownlabs-leader-election and its RoleBinding again, or correct leaderElection.name and \
             leaderElection.namespace",
            status.message
        );
        if !self.readiness.set_notice(name, Some(sentence.clone())) {
            warn!("{sentence}");
        }
    }

    /// What a standby waits for: the replica that leads, or the lease, which no replica holds.
    pub(super) fn awaited(&self, lease: Option<&Lease>) -> String {
        let LeaderElection { namespace, name, .. } = &self.config;
        match lease.map(|lease| self.other_holder(lease)) {
            Some(Some(holder)) => format!("the replica {holder} leads"),
            Some(None) => format!("waiting to lead: no replica holds the Lease {namespace}/{name}"),
            None => format!("waiting to lead: the Lease {namespace}/{name} does not exist yet"),
        }
    }
}
