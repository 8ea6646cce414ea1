//! A runtime that is down, hangs or sends invalid data.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::{ask, lab_pod, only_metrics, series, start, until};
use crate::daemon::{Daemon, reserved_port};
use cluster::containerd::Containerd;
use cluster::network::Namespace;

/// The calls of a method that timed out.
fn unanswered(daemon: &Daemon, method: &str) -> u64 {
    let begin = format!("cri_client_requests_total{{operation=\"{method}\",code=\"DeadlineExceeded\"}} ");
    let metrics = daemon.metrics();
    metrics.lines().find_map(|line| line.strip_prefix(&begin)?.parse().ok()).unwrap_or(0)
}

/// The open files of a daemon.
fn open_files(daemon: &Daemon) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", daemon.id())).expect("it runs").count()
}

#[tokio::test]
async fn a_runtime_that_accepts_and_never_answers_times_out_and_is_reported() {
    let folder = TempDir::new().expect("a folder");
    let socket = folder.path().join("cri.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&accepted);
    std::thread::spawn(move || {
        // Incoming data is never read, and no connection is closed.
        for connection in listener.incoming().flatten() {
            kept.lock().expect("no panic").push(connection);
        }
    });
    let daemon = start(&socket, "updatePeriod: 100ms, connectionTimeout: 100ms");
    until("some rounds", async || (unanswered(&daemon, "Version") >= 5).then_some(())).await;
    let (_, ready) = daemon.ready();
    let sentence = format!(
        "[!] instanceMetrics: cannot read the use of containers: {} did not answer Version within 100ms. ",
        socket.display()
    );
    assert!(ready.contains(&sentence), "{ready}");
    assert_eq!(daemon.page("/readyz/instanceMetrics").0, 503);
    assert_eq!(daemon.page("/healthz").0, 200);
    let (files, memory) = (open_files(&daemon), daemon.size("VmRSS"));
    until("many rounds", async || (unanswered(&daemon, "Version") >= 60).then_some(())).await;
    let connections = accepted.lock().expect("no panic").len();
    assert!(connections >= 60, "each call has its own connection: {connections}");
    assert!(open_files(&daemon) <= files + 5, "{} open files, before {files}", open_files(&daemon));
    assert!(daemon.size("VmRSS") <= memory + 8, "{} MiB, before {memory}", daemon.size("VmRSS"));
    assert!(ask(&daemon, "pod").await.is_err());
    assert_eq!(daemon.log().matches("did not answer Version").count(), 1, "said once: {}", daemon.log());
}

#[tokio::test]
async fn the_figures_end_while_the_runtime_hangs_and_return_with_it() {
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1).expect("containerd");
    let pod = lab_pod("tenant-a", "pod");
    let sandbox = node.run_pod(&pod).await.expect("a pod");
    node.run_container(&pod, &sandbox, "app", &["0"]).await.expect("a container");
    let daemon = start(&node.socket(), "updatePeriod: 200ms, connectionTimeout: 500ms");
    let is_there = async || ask(&daemon, "pod").await.is_ok() && series(&daemon, "pod").len() == 3;
    until("the numbers", async || is_there().await.then_some(())).await;
    node.set_stopped(true).expect("stopped");
    let is_said = || daemon.ready().1.contains("did not answer");
    until("the problem", async || is_said().then_some(())).await;
    assert!(is_there().await, "a short silence takes nothing away");
    until("the end of the numbers", async || {
        (ask(&daemon, "pod").await.is_err() && series(&daemon, "pod").is_empty()).then_some(())
    })
    .await;
    node.set_stopped(false).expect("continued");
    until("the numbers again", async || is_there().await.then_some(())).await;
    daemon.wait_for("readiness", |daemon| daemon.ready().1.contains("[+] instanceMetrics: ready"));
}

#[tokio::test]
async fn a_runtime_that_starts_late_and_stops_is_reported() {
    let folder = TempDir::new().expect("a folder");
    let socket = folder.path().join("cri.sock");
    let daemon = start(&socket, "updatePeriod: 200ms");
    until("the socket that is missing", async || {
        let (_, ready) = daemon.ready();
        (ready.contains("[!] instanceMetrics: ") && ready.contains("No such file or directory")).then_some(())
    })
    .await;
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1).expect("containerd");
    std::os::unix::fs::symlink(node.socket(), &socket).expect("a link");
    let is_ready = || daemon.page("/readyz/instanceMetrics").0 == 200;
    until("readiness", async || is_ready().then_some(())).await;
    drop(node);
    until("the end of the runtime", async || (!is_ready()).then_some(())).await;
    assert_eq!(daemon.page("/healthz").0, 200);
}

#[tokio::test]
async fn an_occupied_port_is_reported_and_the_metrics_are_still_served() {
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1).expect("containerd");
    let pod = lab_pod("tenant-a", "pod");
    let sandbox = node.run_pod(&pod).await.expect("a pod");
    node.run_container(&pod, &sandbox, "app", &["0"]).await.expect("a container");
    let address = format!("127.0.0.1:{}", reserved_port());
    let taken = TcpListener::bind(&address).expect("the port is free");
    let keys = format!("updatePeriod: 200ms, runtimeEndpoint: \"{}\"", node.socket().display());
    let config = only_metrics(&address, &keys);
    let command = [env!("CARGO_BIN_EXE_crownlabs")];
    let nowhere = std::path::Path::new("/nonexistent/kubeconfig");
    let daemon = Daemon::launch(&command, &config, nowhere, "127.0.0.1".to_owned());
    until("the numbers", async || (series(&daemon, "pod").len() == 3).then_some(())).await;
    let sentence =
        format!("[!] instanceMetrics: controllers.instanceMetrics.listen: cannot listen on {address}");
    daemon.wait_for("the fault", |daemon| daemon.ready().1.contains(&sentence));
    drop(taken);
    until("the service", async || ask(&daemon, "pod").await.ok()).await;
    daemon.wait_for("readiness", |daemon| daemon.ready().1.contains("[+] instanceMetrics: ready"));
}
