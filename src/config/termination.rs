//! The keys of the termination loop; see `docs/exams.md`.

use super::duration::ConfigDuration;
use super::keys::keys;
use super::network::Network;

keys! {
    /// The termination loop.
    pub struct TerminationConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool,
        /// The number of Instances that are reconciled at the same time, from 1 to 256; it does not limit the number of
        /// status URLs that are queried.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 4,
        /// The time limit of a query of a status URL, with all redirects.
        pub status_check_timeout: ConfigDuration = ConfigDuration::from_secs(3),
        /// The time between two queries of a status URL that keeps its Instance, at least `5s`; also the longest time
        /// until a query that failed is repeated.
        pub status_check_interval: ConfigDuration = ConfigDuration::from_secs(86_400),
        /// The time after which a status URL that answers 404 or 410 is queried again, at least `5s`: only if the
        /// second answer is one of the two again, the exam is over.
        pub confirm_after: ConfigDuration = ConfigDuration::from_secs(10),
        /// The networks that no status URL may lead to, besides loopback, link-local and multicast addresses, which are
        /// always refused.
        pub forbidden_cidrs: Vec<Network>,
        /// The networks that status URLs may lead to although they are forbidden.
        pub allow_cidrs: Vec<Network>,
        /// The file with the certificates of the authorities to trust, in PEM, which is read again when it
        /// changes; empty for those of the operating system.
        pub ca_file: String,
    }
}
