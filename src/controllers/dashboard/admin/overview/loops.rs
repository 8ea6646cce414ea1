//! The states of the loops, from the states that the pods of an installation report: pure functions.

use std::collections::{BTreeMap, BTreeSet};

use crate::controllers::dashboard::texts::template::table_key;
use crate::runtime::outages::OutageState;
use crate::runtime::readiness::pods::DaemonPod;

table_key! {
    /// The state of a loop. The page shows them in this order: problems come first.
    pub enum LoopState {
        /// It fails.
        Failing,
        /// It waits for prerequisites.
        Waiting,
        /// A newer version of the daemon reports a state that this one does not know.
        Unknown,
        /// It works.
        Ready,
    }
}

impl LoopState {
    /// Returns the state that a pod reports as a word.
    fn named(word: &str) -> Self {
        match word {
            "ready" => Self::Ready,
            "waiting" => Self::Waiting,
            "failing" => Self::Failing,
            _ => Self::Unknown,
        }
    }

    /// Returns the class of its badge.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Ready => "good",
            Self::Waiting => "busy",
            Self::Failing => "bad",
            Self::Unknown => "quiet",
        }
    }
}

/// A part that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRead {
    /// The part: `leases`, `pods`, or the name of a pod.
    pub what: String,
    /// The reason.
    pub reason: String,
}

/// A loop with the same state in some pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Its state.
    pub state: LoopState,
    /// Its name.
    pub name: String,
    /// The state as a sentence, with the missing prerequisites.
    pub message: String,
}

/// A fault that a pod reports, which does not belong to a loop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Its subject.
    pub about: String,
    /// The sentence about it.
    pub message: String,
}

/// The loops of an installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loops {
    /// The loops, each with the names of its pods.
    pub rows: Vec<(Row, Vec<String>)>,
    /// The faults.
    pub faults: BTreeSet<Fault>,
    /// The servers outside of the cluster, each with its longest outage.
    pub servers: BTreeMap<(String, String), Option<OutageState>>,
    /// The versions of the pods.
    pub versions: BTreeSet<String>,
    /// The pod that leads; empty if none does.
    pub leader: String,
    /// The parts that could not be read.
    pub not_read: Vec<NotRead>,
}

impl Loops {
    /// Returns the loops of these pods. A loop of a standby that also runs in the leader is shown only if it is not ready.
    pub fn of(pods: &[DaemonPod], not_read: Vec<NotRead>) -> Self {
        let mut loops = Self { not_read, ..Self::default() };
        let states = || pods.iter().filter_map(|pod| Some((pod, pod.state.as_ref()?)));
        let led: BTreeSet<&str> = states()
            .filter(|(pod, _)| pod.leads)
            .flat_map(|(_, state)| state.loops.iter().map(|report| report.name.as_str()))
            .collect();
        let mut rows: BTreeMap<Row, Vec<String>> = BTreeMap::new();
        for (pod, state) in states() {
            for report in &state.loops {
                let of_loop = LoopState::named(&report.state);
                let is_shown =
                    pod.leads || of_loop != LoopState::Ready || !led.contains(report.name.as_str());
                if is_shown {
                    let (name, message) = (report.name.clone(), report.message.clone());
                    rows.entry(Row { state: of_loop, name, message }).or_default().push(pod.name.clone());
                }
            }
            let fault = |fault: &crate::runtime::readiness::state::Fault| Fault {
                about: fault.about.clone(),
                message: fault.message.clone(),
            };
            loops.faults.extend(state.faults.iter().map(fault));
            for server in &state.servers {
                let known = loops.servers.entry((server.system.clone(), server.server.clone())).or_default();
                let seconds = |outage: &Option<OutageState>| outage.as_ref().map(|outage| outage.seconds);
                if seconds(&server.outage) > seconds(known) {
                    known.clone_from(&server.outage);
                }
            }
        }
        loops.rows = rows.into_iter().collect();
        loops.versions = pods.iter().map(DaemonPod::version).collect();
        loops.leader = pods.iter().find(|pod| pod.leads).map_or_else(String::new, |pod| pod.name.clone());
        loops
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::runtime::outages::ServerState;
    use crate::runtime::readiness::state::{LoopReport, ReplicaState};

    fn pod(name: &str, leads: bool, loops: &[(&str, &str, &str)], outage: Option<u64>) -> DaemonPod {
        let report = |(name, state, message): &(&str, &str, &str)| LoopReport {
            name: (*name).to_owned(),
            state: (*state).to_owned(),
            message: (*message).to_owned(),
        };
        let server = ServerState {
            system: "mail server".to_owned(),
            server: "smtp:25".to_owned(),
            outage: outage.map(|seconds| OutageState { seconds, ..OutageState::default() }),
        };
        let state = ReplicaState {
            version: "1 (abc)".to_owned(),
            loops: loops.iter().map(report).collect(),
            servers: vec![server],
            ..ReplicaState::default()
        };
        DaemonPod { name: name.to_owned(), leads, state: Some(state), ..DaemonPod::default() }
    }

    #[test]
    fn a_loop_that_needs_attention_comes_first_and_a_ready_standby_is_left_out() {
        let waits = "waiting for CRDs that are not installed: imagelists.crownlabs.polito.it";
        let pods = [
            pod("a", true, &[("instance", "ready", "ready"), ("imageList", "waiting", waits)], Some(5)),
            pod("b", false, &[("instance", "ready", "ready"), ("imageList", "waiting", waits)], Some(85)),
            pod("c", false, &[("dashboard", "failing", "the port is in use"), ("x", "paused", "")], None),
            DaemonPod { name: "d".to_owned(), image: "crownlabs:2".to_owned(), ..DaemonPod::default() },
        ];
        let loops = Loops::of(&pods, Vec::new());
        let rows: Vec<_> =
            loops.rows.iter().map(|(row, pods)| (row.name.as_str(), row.state, pods.join(" "))).collect();
        let expected = [
            ("dashboard", LoopState::Failing, "c"),
            ("imageList", LoopState::Waiting, "a b"),
            ("x", LoopState::Unknown, "c"),
            ("instance", LoopState::Ready, "a"),
        ];
        assert_eq!(rows, expected.map(|(name, state, pods)| (name, state, pods.to_owned())));
        assert_eq!(loops.leader, "a");
        let outages: Vec<_> = loops.servers.values().flatten().map(|outage| outage.seconds).collect();
        assert_eq!(outages, [85], "the longest outage of a server");
        let versions = ["1 (abc)", "image crownlabs:2"].map(str::to_owned);
        assert_eq!(loops.versions, BTreeSet::from(versions));
    }

    #[test]
    fn without_pods_nothing_is_known() {
        assert_eq!(Loops::of(&[], Vec::new()), Loops::default());
    }
}
