//! `crownlabs status` without a Workspace: the state of an installation, and `crownlabs --version`.
//!
//! | module | contents |
//! |---|---|
//! | `read` | reads the parts through the API server, with the rights of the user |
//! | `parse` | Leases, pods and CRDs as they are read |
//! | `objects` | the objects of CrownLabs by state, and their problems |
//! | `text`, `value` | the output for people and for programs |

mod objects;
mod parse;
mod read;
mod text;
mod value;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use self::objects::{KindCount, Problem};
pub use self::read::{daemon_pods, read};
pub use self::text::text;
pub use self::value::value;
use crate::runtime::outages::OutageState;
use crate::runtime::readiness::state::ReplicaState;

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

/// The Lease of a daemon.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaderLease {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The selector of the daemon.
    pub selector: String,
    /// The identity of the holder; empty if it was released.
    pub holder: String,
    /// When the holder acquired it.
    pub since: Option<Time>,
    /// When it was renewed last.
    pub renewed: Option<Time>,
    /// The time in seconds after which it expires unless it is renewed.
    pub seconds: i64,
}

impl LeaderLease {
    /// The pod of the holder, or its host. An identity is the name of the pod, and a random part.
    pub fn pod(&self) -> &str {
        self.holder.rsplit_once('_').map_or(&*self.holder, |(pod, _)| pod)
    }

    /// Whether a daemon holds it.
    pub fn is_held(&self, now: Timestamp) -> bool {
        let age = |renewed: &Time| now.duration_since(renewed.0).as_secs();
        !self.holder.is_empty() && self.renewed.as_ref().is_some_and(|renewed| age(renewed) <= self.seconds)
    }
}

/// A pod of the daemon.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DaemonPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// The port of its health server, if it has one.
    pub port: Option<u16>,
    /// Whether its condition `Ready` is true.
    pub is_ready: bool,
    /// How often its containers were restarted.
    pub restarts: u64,
    /// Whether it holds a Lease.
    pub leads: bool,
    /// The state that it reports; `None` if it could not be read.
    pub state: Option<ReplicaState>,
}

impl DaemonPod {
    /// The version of the daemon; the image if the version could not be read.
    pub fn version(&self) -> String {
        let known =
            self.state.as_ref().map(|state| state.version.as_str()).filter(|version| !version.is_empty());
        known.map_or_else(|| format!("image {}", self.image), str::to_owned)
    }
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
