//! Reads of an installation from an API server whose responses the tests provide.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{NotRead, read};
use crate::api::crd::{crds, has_status};
use crate::api::labels::LEASE_SELECTOR;
use crate::fixtures::time;
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::client::first_listed;

const NOW: &str = "2026-01-02T00:05:00Z";
const URL: &str = "https://labs:6443/";

fn path(asked: &Asked) -> &str {
    asked.line.trim_start_matches("GET ").split('?').next().unwrap_or_default()
}

/// The number of kinds whose objects have a status.
fn kinds() -> usize {
    crds().iter().filter(|definition| has_status(definition)).count()
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"namespace": "labs", "name": name},
        "spec": {"containers": [{"image": "crownlabs:1", "args": ["run"],
            "ports": [{"name": "health", "containerPort": 8081}]}]},
        "status": {"phase": "Running"},
    })
}

/// A cluster with an installation in the namespace `labs`. The state of its standby may not be read, its CRDs are gone,
/// and one Instance has a problem.
fn answer(asked: &Asked) -> (u16, Value) {
    let list = |items: Value| (200, json!({"items": items}));
    let lease = json!({
        "metadata": {"namespace": "labs", "name": "crownlabs", "annotations": {LEASE_SELECTOR: "a=b"}},
        "spec": {"holderIdentity": "crownlabs-1_17f1", "leaseDurationSeconds": 15,
            "renewTime": "2026-01-02T00:04:58.000000Z"},
    });
    let node = json!({"metadata": {"namespace": "kube-node-lease", "name": "node-1"}});
    let condition = json!({"type": "Reconciled", "status": "False", "reason": "TemplateNotFound", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let broken = json!({"metadata": {"namespace": "tenant-ada", "name": "box"},
        "status": {"phase": "CreationLoopBackoff", "conditions": [condition]}});
    match path(asked) {
        "/version" => (200, json!({"gitVersion": "v1.36.1"})),
        "/apis/coordination.k8s.io/v1/leases" => list(json!([node, lease])),
        "/api/v1/namespaces" => list(json!([{"metadata": {"name": "nodes"}}])),
        "/api/v1/namespaces/labs/pods" => list(json!([pod("crownlabs-0"), pod("crownlabs-1")])),
        "/api/v1/namespaces/labs/pods/crownlabs-1:8081/proxy/status" => {
            (200, json!({"version": "0.1.0 (abc)"}))
        }
        path if path.contains("/proxy/") => refused(403, "Forbidden", "pods is forbidden"),
        path if path.contains("/customresourcedefinitions/") => refused(404, "NotFound", "no such CRD"),
        path if path.ends_with("/instances") => list(json!([broken])),
        _ => list(json!([])),
    }
}

#[tokio::test]
async fn an_installation_is_found_by_its_lease_and_its_pods_are_asked() {
    let server = ApiServer::start(answer).await;
    let found = read(&server.client(), URL, None, time(NOW)).await.expect("read");
    assert_eq!((&*found.api_server, found.leases.len()), ("v1.36.1", 1));
    let pods: Vec<_> = found.pods.iter().map(|pod| (&*pod.name, pod.leads, pod.version())).collect();
    let expected = [
        ("crownlabs-1", true, "0.1.0 (abc)".to_owned()),
        ("crownlabs-0", false, "image crownlabs:1".to_owned()),
    ];
    assert_eq!(pods, expected);
    let reason = "you are not allowed to get pods/proxy in namespace labs".to_owned();
    assert_eq!(found.not_read, [NotRead { what: "state of crownlabs-0".to_owned(), reason }]);
    assert_eq!((found.definitions.len(), found.kinds.len()), (crds().len(), kinds()));
    assert!(found.definitions.iter().all(|definition| !definition.is_installed));
    let instances = found.kinds.iter().find(|count| count.kind == "Instance").expect("counted");
    assert_eq!(instances.states, BTreeMap::from([("CreationLoopBackoff".to_owned(), 1)]));
    let problems: Vec<String> = found.problems.iter().map(|problem| problem.about().place()).collect();
    assert_eq!(problems, ["tenant-ada/box"]);
    let lines = server.lines();
    let selected = "pods?limit=500&labelSelector=app.kubernetes.io%2Fpart-of%3Dcrownlabs";
    for namespace in ["labs", "nodes"] {
        let line = format!("GET /api/v1/namespaces/{namespace}/{selected}");
        assert!(lines.contains(&line), "{line} is not in {lines:?}");
    }
    read(&server.client(), URL, Some("labs"), time(NOW)).await.expect("read");
    let lines = server.lines();
    assert!(!lines.iter().any(|line| line.contains("/namespaces/nodes/")), "{lines:?}");
}

#[tokio::test]
async fn parts_that_may_not_be_read_are_listed_with_the_reason() {
    let server = ApiServer::start(|asked| match path(asked) {
        "/version" => (200, json!({"gitVersion": "v1.36.1"})),
        _ => refused(403, "Forbidden", "not for you"),
    })
    .await;
    let found = read(&server.client(), URL, None, time(NOW)).await.expect("read");
    let names: Vec<&str> = found.not_read.iter().map(|unread| &*unread.what).collect();
    assert_eq!(names[..3], ["Leases", "namespaces", "CRDs"]);
    assert!(names.contains(&"instances") && names.len() == 3 + kinds(), "{names:?}");
    for NotRead { what, reason } in &found.not_read {
        assert_eq!(reason, "the API server rejected the request: not for you", "{what}");
    }
}

#[tokio::test]
async fn an_api_server_that_rejects_every_request_is_an_error() {
    let server = ApiServer::start(|_| refused(503, "ServiceUnavailable", "starting")).await;
    let error = read(&server.client(), URL, None, time(NOW)).await.expect_err("no version");
    assert_eq!(error.to_string(), "the API server https://labs:6443/ rejects the request: starting");
}

#[tokio::test]
async fn a_list_is_read_up_to_its_bound() {
    let server =
        ApiServer::start(|_| (200, json!({"items": [1, 2], "metadata": {"continue": "more"}}))).await;
    for (most, requests) in [(1, 1), (2, 1), (3, 2), (5, 3)] {
        let mut count = 0;
        let is_whole = first_listed(&server.client(), "/api/v1/pods", "", most, |_| count += 1).await;
        assert!(!is_whole.expect("read"), "{most}");
        assert_eq!((count, server.lines().len()), (2 * requests, requests), "{most}");
    }
}
