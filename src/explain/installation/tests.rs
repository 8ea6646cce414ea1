use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::time;
use crate::runtime::outages::ServerState;
use crate::runtime::readiness::state::{Fault, LoopReport, ReplicaState, VERSION};

const NOW: &str = "2026-01-02T00:05:00Z";

fn condition(reason: &str, message: &str, since: &str) -> crate::api::condition::Condition {
    let value = json!({"type": "Ready", "status": "False", "reason": reason, "message": message,
        "lastTransitionTime": since});
    serde_json::from_value(value).expect("a condition")
}

fn problem(name: &str, reason: &str, since: &str) -> Problem {
    let (kind, namespace) = ("Instance".to_owned(), "tenant-ada".to_owned());
    Problem { kind, namespace, name: name.to_owned(), condition: condition(reason, "it is broken", since) }
}

fn state(loops: &[[&str; 3]]) -> ReplicaState {
    let report = |[name, state, message]: &[&str; 3]| LoopReport {
        name: (*name).to_owned(),
        state: (*state).to_owned(),
        message: (*message).to_owned(),
    };
    ReplicaState {
        version: "0.1.0 (abc)".to_owned(),
        loops: loops.iter().map(report).collect(),
        ..ReplicaState::default()
    }
}

fn pod(name: &str, leads: bool, state: ReplicaState) -> DaemonPod {
    DaemonPod {
        namespace: "labs".to_owned(),
        name: name.to_owned(),
        image: "crownlabs:0.1.0".to_owned(),
        port: Some(8081),
        is_ready: leads,
        restarts: 2,
        leads,
        state: Some(state),
    }
}

/// An installation with a leader, a standby that waits for a CRD, and a mail server that does not answer.
fn installation() -> Installation {
    let outage = OutageState {
        seconds: 85,
        effect: "mails wait, and deadlines move".to_owned(),
        error: "connection refused".to_owned(),
    };
    let (system, server) = ("mail server".to_owned(), "smtp:25".to_owned());
    let leader = ReplicaState {
        faults: vec![Fault { about: "CRDs".to_owned(), message: "too old".to_owned() }],
        servers: vec![ServerState { system, server, outage: Some(outage) }],
        ..state(&[["instance", "ready", "ready"], ["tenant", "ready", "ready"]])
    };
    let standby = state(&[["instance", "ready", "standby"], ["tenant", "waiting", "waiting for CRDs"]]);
    let lease = LeaderLease {
        namespace: "labs".to_owned(),
        name: "crownlabs".to_owned(),
        selector: "a=b".to_owned(),
        holder: "crownlabs-0_17f1".to_owned(),
        since: Some(Time(time("2026-01-01T00:00:00Z"))),
        renewed: Some(Time(time("2026-01-02T00:04:58Z"))),
        seconds: 15,
    };
    let known = Definition {
        name: "tenants.x".to_owned(),
        is_installed: true,
        is_established: true,
        served: vec!["v1alpha2".to_owned(), "v1beta1".to_owned()],
        stored: "v1alpha2".to_owned(),
    };
    let missing = Definition { name: "podconfigs.y".to_owned(), ..Definition::default() };
    let states = [("Off".to_owned(), 1), ("Ready".to_owned(), 2)];
    Installation {
        api_server: "v1.36.1".to_owned(),
        leases: vec![lease],
        pods: vec![pod("crownlabs-0", true, leader), pod("crownlabs-1", false, standby)],
        definitions: vec![known, missing],
        kinds: vec![KindCount { kind: "Instance".to_owned(), states: BTreeMap::from(states) }],
        problems: vec![problem("box", "TemplateNotFound", "2026-01-01T00:00:00Z")],
        not_read: vec![NotRead { what: "Leases".to_owned(), reason: "no answer within 10 s".to_owned() }],
    }
}

#[test]
fn the_text_has_a_section_for_each_part() {
    let expected = format!(
        "\
Client       {VERSION}
API server   v1.36.1
Leader       crownlabs-0, for 1 d, renewed 2 s ago (Lease labs/crownlabs, selector a=b)

Pods:
  POD                VERSION       READY   RESTARTS   ROLE
  labs/crownlabs-0   0.1.0 (abc)   yes     2          leader
  labs/crownlabs-1   0.1.0 (abc)   no      2

Loops:
  LOOP       STATE     POD           MESSAGE
  instance   ready     crownlabs-0   ready
  tenant     ready     crownlabs-0   ready
  tenant     waiting   crownlabs-1   waiting for CRDs

Faults:
  crownlabs-0: CRDs: too old

Systems outside of the cluster:
  SYSTEM        SERVER    STATE
  mail server   smtp:25   failing for 85 s, mails wait, and deadlines move: connection refused

CRDs:
  CRD            VERSIONS                     STATE
  tenants.x      v1alpha2 (stored), v1beta1   established
  podconfigs.y                                not installed

Objects:
  KIND       TOTAL   STATES
  Instance   3       Off 1, Ready 2

Problems, oldest first:
  Instance tenant-ada/box: it is broken (Ready: TemplateNotFound, for 1 d); can act: teacher

Not read:
  Leases: no answer within 10 s
"
    );
    assert_eq!(text(&installation(), false, time(NOW)), expected);
    let all = text(&installation(), true, time(NOW));
    assert!(all.contains("  instance   ready     crownlabs-1   standby\n"), "{all}");
}

#[test]
fn parts_without_content_are_left_out() {
    let expected = format!(
        "Client       {VERSION}\nAPI server   v1.36.1\nLeader       unknown: no Lease of a daemon was found\n"
    );
    let empty = Installation { api_server: "v1.36.1".to_owned(), ..Installation::default() };
    assert_eq!(text(&empty, true, time(NOW)), expected);
}

#[test]
fn a_lease_that_is_not_held_has_no_leader() {
    let mut found = installation();
    let line = |found: &Installation| text(found, false, time(NOW)).lines().nth(2).map(str::to_owned);
    let of = "(Lease labs/crownlabs, selector a=b)";
    found.leases[0].renewed = Some(Time(time("2026-01-02T00:04:00Z")));
    assert_eq!(line(&found), Some(format!("Leader       none: it has expired 1 min ago {of}")));
    found.leases[0].holder = String::new();
    assert_eq!(line(&found), Some(format!("Leader       none: it was released 1 min ago {of}")));
}

#[test]
fn the_same_state_of_several_pods_is_one_row() {
    let node = |name: &str| pod(name, false, state(&[["podConfigNode", "ready", "ready"]]));
    let found = Installation { pods: vec![node("a"), node("b")], ..Installation::default() };
    let text = text(&found, false, time(NOW));
    let row = "  podConfigNode   ready   2 pods   ready\n";
    assert!(text.contains(row) && text.matches("podConfigNode").count() == 1, "{text}");
}

#[test]
fn ten_problems_are_shown_unless_all_are_requested() {
    let mut found = installation();
    found.problems = (0..12).map(|number| problem(&format!("box-{number}"), "Made up", NOW)).collect();
    let some = text(&found, false, time(NOW));
    assert!(some.contains("Problems, oldest first (10 of 12; --all shows all):\n"), "{some}");
    assert!(some.contains("box-9:") && !some.contains("box-10:"), "{some}");
    let all = text(&found, true, time(NOW));
    assert!(all.contains("Problems, oldest first:\n") && all.contains("box-11:"), "{all}");
    let counted = |all: bool| {
        let value = value(&found, all, time(NOW));
        (value["problems"].as_array().map(Vec::len), value["problemsTotal"].as_u64())
    };
    assert_eq!((counted(false), counted(true)), ((Some(10), Some(12)), (Some(12), Some(12))));
}

#[test]
fn the_value_has_all_parts_as_objects() {
    let of = |name: &str, loop_: &str, state: &str, message: &str| json!({"namespace": "labs", "pod": name, "loop": loop_, "state": state, "message": message});
    let pod = |name: &str, leads: bool| {
        json!({"namespace": "labs", "name": name, "image": "crownlabs:0.1.0", "version": "0.1.0 (abc)",
            "ready": leads, "restarts": 2, "leads": leads})
    };
    let expected = json!({
        "clientVersion": VERSION,
        "apiServerVersion": "v1.36.1",
        "leases": [{"namespace": "labs", "name": "crownlabs", "selector": "a=b", "held": true,
            "holder": "crownlabs-0_17f1", "pod": "crownlabs-0", "since": "2026-01-01T00:00:00Z",
            "renewed": "2026-01-02T00:04:58Z"}],
        "pods": [pod("crownlabs-0", true), pod("crownlabs-1", false)],
        "loops": [
            of("crownlabs-0", "instance", "ready", "ready"),
            of("crownlabs-0", "tenant", "ready", "ready"),
            of("crownlabs-1", "instance", "ready", "standby"),
            of("crownlabs-1", "tenant", "waiting", "waiting for CRDs"),
        ],
        "faults": [{"namespace": "labs", "pod": "crownlabs-0", "about": "CRDs", "message": "too old"}],
        "outsideSystems": [{"system": "mail server", "server": "smtp:25", "works": false,
            "since": "2026-01-02T00:03:35Z", "effect": "mails wait, and deadlines move",
            "error": "connection refused"}],
        "definitions": [
            {"name": "tenants.x", "installed": true, "established": true, "served": ["v1alpha2", "v1beta1"],
                "stored": "v1alpha2"},
            {"name": "podconfigs.y", "installed": false, "established": false, "served": [], "stored": null},
        ],
        "objects": [{"kind": "Instance", "total": 3, "states": {"Off": 1, "Ready": 2}}],
        "problems": [{"kind": "Instance", "namespace": "tenant-ada", "name": "box", "cause": null,
            "condition": "Ready", "status": "False", "reason": "TemplateNotFound", "message": "it is broken",
            "since": "2026-01-01T00:00:00Z", "whoCanAct": ["teacher"]}],
        "problemsTotal": 1,
        "notRead": [{"what": "Leases", "reason": "no answer within 10 s"}],
    });
    assert_eq!(value(&installation(), false, time(NOW)), expected);
    let mut found = installation();
    found.pods[1].state = None;
    let value = value(&found, false, time(NOW));
    assert_eq!(value["pods"][1]["version"], Value::Null, "the version is not known");
}

#[test]
fn a_lease_is_held_until_it_expires_or_is_released() {
    let lease = LeaderLease {
        holder: "crownlabs-0_17f1".to_owned(),
        renewed: Some(Time(time("2026-01-01T00:00:00Z"))),
        seconds: 15,
        ..LeaderLease::default()
    };
    assert_eq!(lease.pod(), "crownlabs-0");
    for (now, is_held) in [("2026-01-01T00:00:15Z", true), ("2026-01-01T00:00:16Z", false)] {
        assert_eq!(lease.is_held(time(now)), is_held, "{now}");
    }
    let released = LeaderLease { holder: String::new(), ..lease };
    assert!(!released.is_held(time("2026-01-01T00:00:00Z")));
}

#[test]
fn a_server_that_fails_for_one_replica_is_shown_as_failing() {
    let pod = |seconds: Option<u64>| {
        let outage = seconds.map(|seconds| OutageState { seconds, ..OutageState::default() });
        let server = ServerState { system: "Keycloak".to_owned(), server: "https://kc".to_owned(), outage };
        let state =
            ReplicaState { version: "1".to_owned(), servers: vec![server], ..ReplicaState::default() };
        DaemonPod { state: Some(state), ..DaemonPod::default() }
    };
    let silent = DaemonPod { image: "crownlabs:2".to_owned(), ..DaemonPod::default() };
    let pods = vec![pod(Some(3)), pod(None), pod(Some(85)), silent];
    let found = Installation { pods, ..Installation::default() };
    let servers = found.servers();
    let outage = servers[&("Keycloak", "https://kc")];
    assert_eq!((servers.len(), outage.map(|outage| outage.seconds)), (1, Some(85)));
    let expected = [("1".to_owned(), 3), ("image crownlabs:2".to_owned(), 1)];
    assert_eq!(versions(&found.pods), expected.into());
}
