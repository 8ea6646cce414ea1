//! Which figures there are, and whether they are right.

use std::time::Duration;

use crownlabs::testing::cri::messages::ContainerStats;
use crownlabs::testing::cri::{Cri, DEADLINE};
use tonic::Code;

use super::{ask, call, lab_pod, series, start, until};
use cluster::containerd::{Containerd, Pod};
use cluster::network::Namespace;

/// Whether two numbers differ by at most 5 %.
fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected * 0.05
}

/// A number with 16 significant digits.
#[expect(clippy::cast_precision_loss, reason = "it is compared with a tolerance")]
fn float(number: u64) -> f64 {
    number as f64
}

/// The processor time of a container and its time stamp, in nanoseconds.
fn processor(stats: &ContainerStats) -> (u64, u64) {
    let cpu = stats.cpu.expect("measured");
    let used = cpu.usage_core_nano_seconds.expect("measured");
    (used, cpu.timestamp.try_into().expect("after 1970"))
}

#[tokio::test]
async fn the_figures_equal_those_of_the_runtime() {
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1).expect("containerd");
    let client = Cri::new(node.socket(), DEADLINE);
    let pod = lab_pod("tenant-a", "busy");
    let sandbox = node.run_pod(&pod).await.expect("a pod");
    let (memory, file) = ((64 << 20).to_string(), (16 << 20).to_string());
    let arguments = ["40", memory.as_str(), file.as_str()];
    let container = node.run_container(&pod, &sandbox, "app", &arguments).await.expect("a container");
    let daemon = start(&node.socket(), "updatePeriod: 1s");

    let stats = async || client.container_stats(&container).await.expect("an answer").expect("measured");
    // On a busy machine, the share varies, so both measure the same seconds.
    until("the same use of processors", async || {
        let (used, begin) = processor(&stats().await);
        let mut shares = Vec::new();
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            shares.extend(ask(&daemon, "busy").await.map(|found| f64::from(found.cpu_perc)));
        }
        let (used_then, end) = processor(&stats().await);
        let expected = float(used_then - used) * 100.0 / float(end - begin);
        let found = shares.iter().sum::<f64>() / float(shares.len().try_into().expect("few"));
        println!("processors: {found:.1} %, the runtime says {expected:.1} %");
        (is_near(found, expected) && expected > 5.0).then_some(())
    })
    .await;

    until("the same memory and files", async || {
        let (stats, found) = (stats().await, ask(&daemon, "busy").await.ok()?);
        let memory = stats.memory?.working_set_bytes?;
        let disk = stats.writable_layer?.used_bytes?;
        println!("memory: {}, {memory}; files: {}, {disk}", found.mem_bytes, found.disk_bytes);
        let near = |found: u64, expected: u64| is_near(float(found), float(expected));
        let is_there = memory >= 64 << 20 && disk >= 16 << 20;
        (is_there && near(found.mem_bytes, memory) && near(found.disk_bytes, disk)).then_some(())
    })
    .await;
    // The same on the page of metrics.
    let found = series(&daemon, "busy");
    let labels = r#"{namespace="tenant-a",pod="busy",instance="lab"}"#;
    for family in ["cpu_percent", "memory_working_set_bytes", "disk_bytes"] {
        let begin = format!("{family}{labels} ");
        assert_eq!(found.iter().filter(|line| line.starts_with(&begin)).count(), 1, "{family}: {found:?}");
    }
}

#[tokio::test]
async fn only_applications_are_counted() {
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1).expect("containerd");
    let mib = |count: u64| (count << 20).to_string();
    let run = async |pod: &Pod, containers: &[(&str, u64)]| {
        let sandbox = node.run_pod(pod).await.expect("a pod");
        for (name, size) in containers {
            let arguments = ["0", &mib(*size)];
            node.run_container(pod, &sandbox, name, &arguments).await.expect("a container");
        }
    };
    run(&lab_pod("tenant-a", "two"), &[("app", 20), ("db", 30), ("xvnc", 99), ("websockify", 99)]).await;
    run(&lab_pod("tenant-a", "downloads"), &[("content-downloader", 9)]).await;
    run(&lab_pod("tenant-a", "machine").with_label("kubevirt.io", "virt-launcher"), &[("compute", 9)]).await;
    run(&Pod::new("kube-system", "dns"), &[("dns", 9)]).await;
    // A user creates a pod with the label and the name of another user's pod.
    run(&lab_pod("sandbox-eve", "two"), &[("app", 99)]).await;
    run(&lab_pod("sandbox-eve", "forged"), &[("app", 9)]).await;
    // The same name in two namespaces: the newest pod is reported.
    run(&lab_pod("tenant-a", "same"), &[("app", 10)]).await;
    run(&lab_pod("tenant-b", "same"), &[("app", 50)]).await;
    let daemon = start(&node.socket(), "updatePeriod: 200ms");

    let size = async |pod: &str| ask(&daemon, pod).await.ok().map(|found| found.mem_bytes >> 20);
    let is = |found: Option<u64>, expected: u64| found.is_some_and(|found| found.abs_diff(expected) <= 2);
    until("the sum of two containers", async || is(size("two").await, 50).then_some(())).await;
    until("the newest of one name", async || is(size("same").await, 50).then_some(())).await;
    assert_eq!(series(&daemon, "two").len(), 3, "one pod: {:?}", series(&daemon, "two"));
    assert_eq!(series(&daemon, "same").len(), 6, "both are on the page: {:?}", series(&daemon, "same"));
    for pod in ["downloads", "machine", "dns", "forged", "other"] {
        let refused = ask(&daemon, pod).await.expect_err(pod);
        let message = format!("no existing application container for requested PodName {pod}");
        assert_eq!((refused.code(), refused.message()), (Code::NotFound, &*message));
        assert!(series(&daemon, pod).is_empty(), "{pod}");
    }
    let refused = ask(&daemon, "").await.expect_err("no name");
    let message = "wrong request: valid CustomMetricsRequest required";
    assert_eq!((refused.code(), refused.message()), (Code::InvalidArgument, message));
    let refused = call(&daemon, "/instmetrics.InstanceMetrics/Other", "two").await.expect_err("no method");
    assert_eq!(refused.code(), Code::Unimplemented);
    let long = "x".repeat(5_000);
    let refused = ask(&daemon, &long).await.expect_err("too long");
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
}

#[tokio::test]
async fn deleted_pods_are_not_reported_any_more() {
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1).expect("containerd");
    let (one, two) = (lab_pod("tenant-a", "one"), lab_pod("tenant-a", "two"));
    let (of_one, of_two) =
        (node.run_pod(&one).await.expect("a pod"), node.run_pod(&two).await.expect("a pod"));
    let container = node.run_container(&one, &of_one, "app", &["0"]).await.expect("a container");
    node.run_container(&two, &of_two, "app", &["0"]).await.expect("a container");
    let mut daemon = start(&node.socket(), "updatePeriod: 200ms");
    let is_there = async |pod: &str| ask(&daemon, pod).await.is_ok() && series(&daemon, pod).len() == 3;
    let is_gone = async |pod: &str| ask(&daemon, pod).await.is_err() && series(&daemon, pod).is_empty();
    until("both", async || (is_there("one").await && is_there("two").await).then_some(())).await;
    // Readiness comes with the first round.
    daemon.wait_for("readiness", |daemon| {
        let (status, ready) = daemon.ready();
        status == 200 && ready.contains("[+] instanceMetrics: ready")
    });
    assert_eq!(daemon.page("/readyz/instanceMetrics").0, 200);

    let begin = std::time::Instant::now();
    node.remove_container(&container).await.expect("removed");
    until("the end of a container", async || is_gone("one").await.then_some(())).await;
    assert!(begin.elapsed() < Duration::from_secs(30), "promised: {:?}", begin.elapsed());
    assert!(is_there("two").await, "the other stays");
    // Another container of the same pod.
    node.run_container(&one, &of_one, "app", &["0"]).await.expect("a container");
    until("another container", async || is_there("one").await.then_some(())).await;
    node.stop_pod(&of_two).await.expect("stopped");
    until("the end of a pod", async || is_gone("two").await.then_some(())).await;
    assert!(is_there("one").await, "the other stays");

    daemon.signal("TERM");
    assert!(daemon.wait(crate::lab::PATIENCE).expect("it ends").success());
    assert!(!daemon.log().contains("did not end in time"), "{}", daemon.log());
}
