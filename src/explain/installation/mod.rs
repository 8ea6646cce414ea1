//! `crownlabs status` without a Workspace: the state of an installation, and `crownlabs --version`.
//!
//! | module | contents |
//! |---|---|
//! | `read` | reads the parts through the API server, with the rights of the user |
//! | `parse` | CRDs as they are read |
//! | `objects` | the objects of CrownLabs by state, and their problems |
//! | `text`, `value` | the output for people and for programs |

mod objects;
mod parse;
mod read;
mod text;
mod value;

use std::collections::BTreeMap;

pub use self::objects::{KindCount, Problem};
pub use self::read::{daemon_pods, read};
pub use self::text::text;
pub use self::value::value;
use crate::runtime::outages::OutageState;
pub use crate::runtime::readiness::pods::{DaemonPod, LeaderLease};

/// The number of problems that are shown without `--all`.
const SHOWN_PROBLEMS: usize = 10;

/// The state of an installation, as far as it could be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Installation {
    /// The version of the API server.
    pub api_server: String,
    /// The Leases of daemons.
    pub leases: Vec<LeaderLease>,
    /// The pods of daemons, leaders first.
    pub pods: Vec<DaemonPod>,
    /// The CRDs of `CrownLabs`.
    pub definitions: Vec<Definition>,
    /// The objects of each kind by state.
    pub kinds: Vec<KindCount>,
    /// The problems of objects, oldest first.
    pub problems: Vec<Problem>,
    /// The parts that could not be read, or not completely.
    pub not_read: Vec<NotRead>,
}

/// A CRD of `CrownLabs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Whether it is installed.
    pub is_installed: bool,
    /// Whether the API server serves it.
    pub is_established: bool,
    /// The versions that are served.
    pub served: Vec<String>,
    /// The version in which objects are stored.
    pub stored: String,
}

/// A part that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRead {
    /// The part.
    pub what: String,
    /// The reason.
    pub reason: String,
}

/// Returns the versions of daemons, each with the number of its pods.
pub fn versions(pods: &[DaemonPod]) -> BTreeMap<String, usize> {
    let mut versions = BTreeMap::new();
    for pod in pods {
        *versions.entry(pod.version()).or_default() += 1;
    }
    versions
}

/// The servers outside the cluster, each with the longest outage that a pod reports.
type Servers<'a> = BTreeMap<(&'a str, &'a str), Option<&'a OutageState>>;

impl Installation {
    /// Returns the servers outside the cluster that the pods report.
    fn servers(&self) -> Servers<'_> {
        let mut servers = Servers::new();
        for server in self.pods.iter().filter_map(|pod| pod.state.as_ref()).flat_map(|state| &state.servers) {
            let known = servers.entry((&*server.system, &*server.server)).or_default();
            let seconds = |outage: Option<&OutageState>| outage.map(|outage| outage.seconds);
            let found = server.outage.as_ref();
            if seconds(found) > seconds(*known) {
                *known = found;
            }
        }
        servers
    }
}

#[cfg(test)]
mod reads;
#[cfg(test)]
mod tests;
