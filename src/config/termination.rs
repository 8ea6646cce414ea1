//! The keys of the termination loop; see `docs/exams.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::network::Network;

/// The termination loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TerminationConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of Instances that are reconciled at the same time, from 1 to 256; it does not limit the number of
    /// status URLs that are queried.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The time limit of a query of a status URL, with all redirects.
    pub status_check_timeout: ConfigDuration,
    /// The time between two queries of a status URL that keeps its Instance, at least `5s`; also the longest time
    /// until a query that failed is repeated.
    pub status_check_interval: ConfigDuration,
    /// The time after which a status URL that answers 404 or 410 is queried again, at least `5s`: only if the second answer
    /// is one of the two again, the exam is over.
    pub confirm_after: ConfigDuration,
    /// The networks that no status URL may lead to, besides loopback, link-local and multicast addresses, which are always
    /// refused.
    pub forbidden_cidrs: Vec<Network>,
    /// The networks that status URLs may lead to although they are forbidden.
    pub allow_cidrs: Vec<Network>,
    /// The file with the certificates of the authorities to trust, in PEM, which is read again when it
    /// changes; empty for those of the operating system.
    pub ca_file: String,
}

impl Default for TerminationConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            concurrency: 4,
            status_check_timeout: ConfigDuration::from_secs(3),
            status_check_interval: ConfigDuration::from_secs(86_400),
            confirm_after: ConfigDuration::from_secs(10),
            forbidden_cidrs: Vec::new(),
            allow_cidrs: Vec::new(),
            ca_file: String::new(),
        }
    }
}
