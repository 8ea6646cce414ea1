//! The state of a replica, for programs: the health server returns it, and `crownlabs status` reads it.

use serde::{Deserialize, Serialize};

use super::{LoopState, Readiness};
use crate::runtime::outages::ServerState;

/// The version of this program, and the commit of its source.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CROWNLABS_REVISION"), ")");

/// The path of the state at the health server.
pub const PATH: &str = "/status";

/// The state of a replica. Fields that another version does not have are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaState {
    /// Its version, as in [`VERSION`].
    pub version: String,
    /// Whether it is ready.
    pub ready: bool,
    /// Its loops.
    pub loops: Vec<LoopReport>,
    /// Faults of its watches and of the cluster. The replica stays ready.
    pub faults: Vec<Fault>,
    /// The servers outside the cluster.
    pub servers: Vec<ServerState>,
}

/// The state of a loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoopReport {
    /// Its name.
    pub name: String,
    /// `ready`, `waiting` or `failing`. A loop of a standby is `ready`.
    pub state: String,
    /// The state as a sentence, with the missing prerequisites.
    pub message: String,
}

/// A fault that does not belong to a loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fault {
    /// Its subject, such as `watch of pods` or `CRDs`.
    pub about: String,
    /// The sentence about it.
    pub message: String,
}

impl LoopState {
    /// The state as one word.
    fn word(&self) -> &'static str {
        match self.mark() {
            '+' => "ready",
            '!' => "failing",
            _ => "waiting",
        }
    }
}

impl Readiness {
    /// Returns the state of the replica, with the same facts as [`Readiness::report`].
    pub fn state(&self) -> ReplicaState {
        let report = |(name, state): (&&str, &LoopState)| LoopReport {
            name: (*name).to_owned(),
            state: state.word().to_owned(),
            message: self.sentence(state),
        };
        let fault = |((is_notice, name), message): (&(bool, &str), &String)| Fault {
            about: if *is_notice { (*name).to_owned() } else { format!("watch of {name}") },
            message: message.clone(),
        };
        let (ready, _) = self.report();
        ReplicaState {
            version: VERSION.to_owned(),
            ready,
            loops: self.loops.lock().iter().map(report).collect(),
            faults: self.faults.lock().iter().map(fault).collect(),
            servers: self.outages.states(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runtime::outages::System;

    #[test]
    fn the_state_has_the_version_the_loops_the_faults_and_the_servers() {
        let readiness = Readiness::default();
        readiness.complete();
        readiness.set("instance", LoopState::Ready);
        readiness.set("tenant", LoopState::WaitingForCrd(vec!["tenants.x".to_owned()]));
        readiness.set("sshTracker", LoopState::Failing("the interface eth7 is missing".to_owned()));
        readiness.set_watch("pods", Some("broken for 61 s".to_owned()));
        readiness.set_notice("CRDs", Some("too old".to_owned()));
        readiness.outages.failed(System::Mail, "mail.example.com:25", &"connection refused");
        let state = readiness.state();
        let expected = json!({
            "version": VERSION,
            "ready": false,
            "loops": [
                {"name": "instance", "state": "ready", "message": "ready"},
                {"name": "sshTracker", "state": "failing", "message": "the interface eth7 is missing"},
                {"name": "tenant", "state": "waiting", "message": "waiting for CRDs that are not installed: tenants.x"},
            ],
            "faults": [
                {"about": "watch of pods", "message": "broken for 61 s"},
                {"about": "CRDs", "message": "too old"},
            ],
            "servers": [{"system": "mail server", "server": "mail.example.com:25", "outage":
                {"seconds": 0, "effect": "mails wait, and deadlines move", "error": "connection refused"}}],
        });
        assert_eq!(serde_json::to_value(&state).expect("JSON"), expected);
        assert_eq!(serde_json::from_value::<ReplicaState>(expected).expect("the same type"), state);
        let older: ReplicaState = serde_json::from_value(json!({"more": 1})).expect("another version");
        assert_eq!(older, ReplicaState::default());
    }
}
