//! The keys of the termination loop; see `docs/exams.md`.

use super::bound::POSITIVE;
use super::duration::ConfigDuration;
use super::keys::keys;
use super::network::Network;

keys! {
    /// The termination loop.
    pub struct TerminationConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool,
        /// The number of Instances that are reconciled at the same time, from 1 to 256. It does not limit the number of
        /// status URLs that are queried.
        pub concurrency: usize as 1..=256 = 4,
        /// The time limit of a query of a status URL, including all redirects.
        pub status_check_timeout: ConfigDuration where POSITIVE = ConfigDuration::from_secs(3),
        /// The time between two queries of a status URL that keeps its Instance, at least `5s`. It is also the longest
        /// delay before a failed query is repeated.
        pub status_check_interval: ConfigDuration where "5s".. = ConfigDuration::from_secs(86_400),
        /// The time after which a status URL that answers 404 or 410 is queried again, at least `5s`. The exam is over
        /// only if the second answer is also 404 or 410.
        pub confirm_after: ConfigDuration where "5s".. = ConfigDuration::from_secs(10),
        /// The networks that status URLs must not lead to, in addition to loopback, link-local and multicast addresses,
        /// which are always rejected.
        pub forbidden_cidrs: Vec<Network>,
        /// Exceptions from the forbidden networks: status URLs may lead to these.
        pub allow_cidrs: Vec<Network>,
        /// The PEM file with the certificate authorities to trust, reloaded when it changes; if empty, the operating
        /// system's authorities are trusted.
        pub ca_file: String,
    }
}
