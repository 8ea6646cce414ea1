//! The pods of daemons and their Leases, as the API server returns them. `crownlabs status` and the dashboard show them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::state::ReplicaState;
use crate::api::labels::LEASE_SELECTOR;

/// The selector of the namespaces and pods of installations, as parameters of a list.
pub const PART_OF: &str = "labelSelector=app.kubernetes.io%2Fpart-of%3Dcrownlabs";
/// The name of the port of the health server.
const HEALTH: &str = "health";

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

/// The text at a pointer; empty if there is none.
pub fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The items of the list at a pointer.
pub fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a condition is true.
pub fn holds(value: &Value, type_: &str) -> bool {
    list(value, "/status/conditions")
        .any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// The Lease of a daemon; `None` if another program has written it.
pub fn lease(lease: &Value) -> Option<LeaderLease> {
    let selector = lease["metadata"]["annotations"][LEASE_SELECTOR].as_str()?.to_owned();
    let time = |pointer: &str| Some(Time(lease.pointer(pointer)?.as_str()?.parse().ok()?));
    Some(LeaderLease {
        namespace: text(lease, "/metadata/namespace"),
        name: text(lease, "/metadata/name"),
        selector,
        holder: text(lease, "/spec/holderIdentity"),
        since: time("/spec/acquireTime"),
        renewed: time("/spec/renewTime"),
        seconds: lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or_default(),
    })
}

/// A pod that runs the daemon; `None` for other pods, and for pods that have ended.
pub fn pod(pod: &Value) -> Option<DaemonPod> {
    let runs = |container: &&Value| {
        ["/command", "/args"].iter().any(|key| list(container, key).any(|word| word == "run"))
    };
    let container = list(pod, "/spec/containers").find(runs)?;
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let port = list(container, "/ports").find(|port| port["name"] == HEALTH);
    let port = port.and_then(|port| u16::try_from(port["containerPort"].as_u64()?).ok());
    let restarts =
        list(pod, "/status/containerStatuses").filter_map(|status| status["restartCount"].as_u64());
    Some(DaemonPod {
        namespace: text(pod, "/metadata/namespace"),
        name: text(pod, "/metadata/name"),
        image: text(container, "/image"),
        port,
        is_ready: holds(pod, "Ready"),
        restarts: restarts.sum(),
        leads: false,
        state: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::time;

    #[test]
    fn only_a_lease_with_a_selector_is_the_lease_of_a_daemon() {
        let mut value = json!({"metadata": {"namespace": "labs", "name": "crownlabs"}, "spec": {
            "holderIdentity": "crownlabs-0_1", "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000001Z", "renewTime": "2026-01-02T00:00:00.000000Z"}});
        assert_eq!(lease(&value), None);
        value["metadata"]["annotations"] = json!({LEASE_SELECTOR: "a=b"});
        let expected = LeaderLease {
            namespace: "labs".to_owned(),
            name: "crownlabs".to_owned(),
            selector: "a=b".to_owned(),
            holder: "crownlabs-0_1".to_owned(),
            since: Some(Time(time("2026-01-01T00:00:00.000001Z"))),
            renewed: Some(Time(time("2026-01-02T00:00:00Z"))),
            seconds: 15,
        };
        assert_eq!(lease(&value), Some(expected));
    }

    #[test]
    fn the_container_of_the_daemon_has_the_image_and_the_port() {
        let mut value = json!({
            "metadata": {"namespace": "labs", "name": "crownlabs-0"},
            "spec": {"containers": [
                {"name": "proxy", "image": "proxy:1", "ports": [{"name": "health", "containerPort": 1}]},
                {"name": "crownlabs", "image": "crownlabs:1", "args": ["run", "--config", "x"],
                    "ports": [{"name": "metrics", "containerPort": 8080}, {"name": "health", "containerPort": 8081}]},
            ]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"restartCount": 2}, {"restartCount": 1}]},
        });
        let expected = DaemonPod {
            namespace: "labs".to_owned(),
            name: "crownlabs-0".to_owned(),
            image: "crownlabs:1".to_owned(),
            port: Some(8081),
            is_ready: true,
            restarts: 3,
            ..DaemonPod::default()
        };
        assert_eq!(pod(&value), Some(expected));
        value["spec"]["containers"][1]["ports"] = Value::Null;
        assert_eq!(pod(&value).expect("a pod").port, None, "the health server is off");
        value["status"]["phase"] = "Failed".into();
        assert_eq!(pod(&value), None);
        value["status"]["phase"] = "Running".into();
        value["spec"]["containers"][1]["args"] = json!(["man"]);
        assert_eq!(pod(&value), None);
    }
}
