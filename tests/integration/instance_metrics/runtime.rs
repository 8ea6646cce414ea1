//! The client of the container runtime interface.

use std::path::Path;
use std::time::Duration;

use crownlabs::testing::cri::messages::{ContainerFilter, PodSandboxFilter};
use crownlabs::testing::cri::{Cri, CriError, DEADLINE};

use crate::instance_metrics::until;
use cluster::containerd::{Containerd, Pod};
use cluster::network::Namespace;

/// The network namespace of a process.
fn network(process: &str) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/{process}/ns/net")).expect("the process runs")
}

#[tokio::test]
async fn pods_and_containers_are_found_with_their_processes() {
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1).expect("containerd");
    let endpoint = format!("unix://{}", node.socket().display());
    let (client, version) = Cri::connect(&endpoint, DEADLINE).await.expect("it answers");
    assert_eq!(version.runtime_name, "containerd");

    let pod = Pod::new("tenant-a", "pod-a").with_label("crownlabs.polito.it/instance", "a");
    let other = Pod::new("tenant-b", "pod-a");
    let sandbox = node.run_pod(&pod).await.expect("a pod");
    let other_sandbox = node.run_pod(&other).await.expect("another pod");
    let container = node.run_container(&pod, &sandbox, "app", &["0"]).await.expect("a container");

    let selector = [("crownlabs.polito.it/instance".to_owned(), "a".to_owned())].into();
    let filter = PodSandboxFilter { label_selector: selector, ..PodSandboxFilter::default() };
    let found = client.list_pod_sandboxes(filter).await.expect("sandboxes");
    assert_eq!(found.len(), 1, "{found:?}");
    let metadata = found[0].metadata.clone().expect("metadata");
    assert_eq!((metadata.namespace.as_str(), metadata.name.as_str()), ("tenant-a", "pod-a"));
    assert_eq!(found[0].labels["io.kubernetes.pod.name"], "pod-a");
    assert_eq!(client.list_pod_sandboxes(PodSandboxFilter::default()).await.expect("sandboxes").len(), 2);

    let filter = ContainerFilter { pod_sandbox_id: sandbox.clone(), ..ContainerFilter::default() };
    let found = client.list_containers(filter).await.expect("containers");
    let names: Vec<_> =
        found.iter().map(|found| (&found.id, &found.metadata.as_ref().unwrap().name)).collect();
    assert_eq!(names, [(&container, &"app".to_owned())]);

    // Both are in the network namespace of the pod, which differs from the node's and the other pod's.
    let outside = |process| node.process_outside(process).expect("it runs").to_string();
    let of_container = network(&outside(client.container_process(&container).await.expect("its process")));
    let of_sandbox = network(&outside(client.sandbox_process(&sandbox).await.expect("its process")));
    let of_other = network(&outside(client.sandbox_process(&other_sandbox).await.expect("its process")));
    assert_eq!(of_container, of_sandbox);
    assert_ne!(of_sandbox, of_other);
    assert_ne!(of_sandbox, network("self"));
    let inside = node.command(Path::new("readlink")).arg("/proc/self/ns/net").output().expect("a command");
    let of_node = String::from_utf8(inside.stdout).expect("a link");
    assert_ne!(of_node.trim(), of_sandbox.display().to_string());
    assert_ne!(of_node.trim(), network("self").display().to_string());

    let stats = client.list_container_stats().await.expect("stats");
    let ids: Vec<_> = stats.iter().map(|stats| stats.attributes.clone().expect("attributes").id).collect();
    assert_eq!(ids, std::slice::from_ref(&container));
    let one = client.container_stats(&container).await.expect("stats").expect("measured");
    assert!(one.cpu.and_then(|cpu| cpu.usage_core_nano_seconds).is_some(), "{one:?}");

    node.remove_container(&container).await.expect("removed");
    let error = client.container_process(&container).await.expect_err("it is gone");
    assert!(error.is_not_found(), "{error}");
    node.stop_pod(&sandbox).await.expect("stopped");
    let error = client.sandbox_process(&sandbox).await.expect_err("it does not run");
    assert_eq!(error, CriError::NotRunning(format!("sandbox {sandbox}")));
    node.remove_pod(&sandbox).await.expect("removed");
    let error = client.sandbox_process(&sandbox).await.expect_err("it is gone");
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test]
async fn the_connection_is_made_again_when_the_runtime_returns() {
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1).expect("containerd");
    let client = Cri::new(node.socket(), Duration::from_millis(500));
    until("an answer", async || client.version().await.ok()).await;
    // A stopped runtime accepts connections and answers nothing.
    node.set_stopped(true).expect("stopped");
    for _ in 0..3 {
        let error = client.version().await.expect_err("it hangs");
        assert!(matches!(error, CriError::Deadline { method: "Version", .. }), "{error}");
    }
    node.set_stopped(false).expect("continued");
    crate::instance_metrics::until("an answer", async || client.version().await.ok()).await;
    let socket = node.socket();
    drop(node);
    let error = client.version().await.expect_err("it is gone").to_string();
    assert!(error.starts_with(&format!("{} does not answer: ", socket.display())), "{error}");
}

#[tokio::test]
async fn two_nodes_do_not_affect_each_other() {
    let (one, two) = (Namespace::new(), Namespace::new());
    let nodes =
        [Containerd::start(&one, 1).expect("containerd"), Containerd::start(&two, 2).expect("containerd")];
    let pod = Pod::new("tenant-a", "pod-a");
    for (node, range) in nodes.iter().zip(["10.88.1.", "10.88.2."]) {
        node.run_pod(&pod).await.expect("a pod");
        let client = Cri::new(node.socket(), DEADLINE);
        let found = client.list_pod_sandboxes(PodSandboxFilter::default()).await.expect("sandboxes");
        assert_eq!(found.len(), 1);
        let ip = node.pod_ip(&found[0].id).await.expect("its status").expect("a network");
        assert!(ip.starts_with(range), "{ip}");
    }
}
