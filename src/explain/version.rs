//! `crownlabs --version`: the versions of the daemon and of the API server.

use std::fmt::Write;
use std::time::Duration;

use tokio::time::timeout;

use super::installation::{DaemonPod, NotRead, daemon_pods, versions};
use super::live::connect;
use super::words::count;
use crate::api::shown::message;
use crate::manager::start_up::{ClusterOptions, version};
use crate::runtime::clock;

/// The time limit for the version of the API server.
const FIRST: Duration = Duration::from_secs(5);
/// The time limit for the pods of the daemon.
const REST: Duration = Duration::from_secs(10);

/// Returns a line for each version in a cluster. A version that cannot be read has a line with the reason. Empty if the
/// options name no cluster and none is configured.
///
/// # Errors
/// When the cluster that the options name cannot be used.
pub async fn cluster_versions(cluster: &ClusterOptions) -> anyhow::Result<String> {
    let is_named = cluster.kubeconfig.is_some() || cluster.context.is_some();
    let (client, url) = match connect(cluster).await {
        Ok(connected) => connected,
        Err(error) if is_named => return Err(error),
        Err(_) => return Ok(String::new()),
    };
    let late = |limit: Duration| format!("no answer within {} s", limit.as_secs());
    let api_server = match version(&client, &url, FIRST).await {
        Ok(version) => version,
        Err(error) => return Ok(not_read("API server", &error.to_string())),
    };
    let pods = timeout(REST, daemon_pods(&client, clock::now())).await;
    let (pods, unread) =
        pods.unwrap_or_else(|_| (Vec::new(), vec![NotRead { what: "pods".to_owned(), reason: late(REST) }]));
    Ok(text(&api_server, &pods, &unread))
}

fn not_read(what: &str, reason: &str) -> String {
    format!("{}\n", message(&format!("{what} not read: {reason}")))
}

fn text(api_server: &str, pods: &[DaemonPod], unread: &[NotRead]) -> String {
    let mut text = String::new();
    for (version, number) in versions(pods) {
        let _ = writeln!(text, "{}", message(&format!("daemon {version}, {}", count(number, "pod"))));
    }
    if pods.is_empty() && unread.is_empty() {
        text.push_str("daemon not found\n");
    }
    text.extend(
        unread.iter().map(|NotRead { what, reason }| not_read("daemon", &format!("{what}: {reason}"))),
    );
    let _ = writeln!(text, "{}", message(&format!("API server {api_server}")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::readiness::state::ReplicaState;
    use crate::runtime::silent::SilentServer;

    #[test]
    fn each_version_is_a_line_and_unread_parts_have_their_reason() {
        let state = |version: &str| ReplicaState { version: version.to_owned(), ..ReplicaState::default() };
        let pod = |state: Option<ReplicaState>| DaemonPod {
            image: "crownlabs:1".to_owned(),
            state,
            ..DaemonPod::default()
        };
        let pods = [pod(Some(state("0.1.0 (abc)"))), pod(Some(state("0.1.0 (abc)"))), pod(None)];
        let unread = [NotRead { what: "state of b".to_owned(), reason: "no answer within 5 s".to_owned() }];
        let expected = "\
daemon 0.1.0 (abc), 2 pods
daemon image crownlabs:1, 1 pod
daemon not read: state of b: no answer within 5 s
API server v1.36.1
";
        assert_eq!(text("v1.36.1", &pods, &unread), expected);
        assert_eq!(text("v1.36.1", &[], &[]), "daemon not found\nAPI server v1.36.1\n");
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_does_not_answer_is_given_up_after_five_seconds() {
        let server = SilentServer::start();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kubeconfig");
        let url = server.config().cluster_url;
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url.to_string()}}],
            "users": [{"name": "u", "user": {}}],
        });
        std::fs::write(&file, kubeconfig.to_string()).expect("written");
        let cluster = ClusterOptions { kubeconfig: Some(file.clone()), ..ClusterOptions::default() };
        let begin = tokio::time::Instant::now();
        let text = cluster_versions(&cluster).await.expect("the file is valid");
        let why = "no answer within 5 s; check the address, and that no firewall drops the packets";
        let expected = format!("API server not read: the API server {url} cannot be reached: {why}\n");
        assert_eq!(text, expected);
        assert_eq!(begin.elapsed().as_secs(), 5);
        std::fs::remove_file(&file).expect("removed");
        let error = cluster_versions(&cluster).await.expect_err("the file is missing");
        assert!(error.to_string().contains("kubeconfig"), "{error}");
    }
}
