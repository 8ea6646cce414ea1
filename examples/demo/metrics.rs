//! The resource usage of a lab machine in a container: `METRICS=1`.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tonic::Code;

use crate::node::{METRICS, Node, Running};
use crate::people::wait;
use crate::{NAMESPACE, run};
use cluster::Cluster;
use cluster::containerd::{ContainerStats, Containerd};
use cluster::instance_metrics::{ContainerMetrics, ask};
use cluster::prometheus::page;

/// The Instance.
const NAME: &str = "wireshark-2";
/// The label of its pod with the name of the Instance.
const LABEL: &str = "crownlabs.polito.it/instance";
/// The address of the service that desktops call.
const SERVICE: &str = "127.0.0.1:18087";
/// The usage of the application: percent of a processor, bytes of memory, and bytes of files.
const APPLICATION: (&str, [&str; 3]) = ("wireshark", ["40", "67108864", "16777216"]);
/// The usage of the desktop's server, which does not count.
const DESKTOP: (&str, [&str; 3]) = ("xvnc", ["10", "33554432", "0"]);
/// The period over which both report the processor usage.
const PERIOD: Duration = Duration::from_secs(5);

const OBJECT: &str = "apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {name: wireshark-2, namespace: tenant-ada-rossi}
spec:
  template.crownlabs.polito.it/TemplateRef: {name: wireshark, namespace: workspace-netlab}
  tenant.crownlabs.polito.it/TenantRef: {name: ada.rossi}
";

/// Resource usage.
struct Use {
    /// The processor usage, in percent of one processor.
    percent: f64,
    memory: u64,
    files: u64,
}

/// Runs the pod of an Instance, compares the figures of the node's daemon with those of the container runtime, and ends
/// the pod.
pub fn show(node: &Node, cluster: &Cluster) -> Result<()> {
    println!("\nthe resource usage of a lab machine in a container\n");
    cluster.apply(OBJECT)?;
    let object = wait(&format!("a pod of {NAME}"), || {
        let mut pods = cluster.list("pods", NAMESPACE)?.into_iter();
        let is_its = |pod: &Value| pod["metadata"]["labels"][LABEL] == NAME;
        Ok(pods.find(|pod| is_its(pod) && pod["status"]["phase"] == "Running"))
    })?;
    let (names, pod) = run_pod(node, &object)?;
    let (of_application, of_desktop) = (APPLICATION.1[0], DESKTOP.1[0]);
    println!(
        "  {} is to use {of_application} % of a processor and 64 MiB of memory, and to write 16 MiB\n  {}, its desktop, \
         is to use {of_desktop} % and 32 MiB, which is not counted\n",
        APPLICATION.0, DESKTOP.0
    );
    let keys = format!("listen: \"{SERVICE}\", updatePeriod: 1s");
    let mut daemon = node.daemon("instanceMetrics", &keys, None)?;
    wait("numbers of the daemon", || {
        daemon.check()?;
        let found = answer(node, &pod.name).ok().filter(|found| found.disk_bytes > 0);
        Ok(found.filter(|found| found.cpu_perc > 0.0))
    })?;
    let (found, containers) =
        wait("the same numbers from the daemon and from the container runtime", || {
            daemon.check()?;
            let (found, containers) = node.runtime.block_on(compare(&node.containerd, &pod))?;
            let position = names.iter().position(|name| name == APPLICATION.0).unwrap_or_default();
            let expected = containers.get(position).context("a container")?;
            Ok(is_near(&found, expected).then_some((found, containers)))
        })?;
    table(&names, &containers, &pod.name, &found);
    println!("\nthe desktop asks the service instmetrics.InstanceMetrics at {SERVICE} for this pod:");
    let ContainerMetrics { cpu_perc, mem_bytes, disk_bytes } = answer(node, &pod.name)?;
    println!("  cpu_perc: {cpu_perc}, mem_bytes: {mem_bytes}, disk_bytes: {disk_bytes}");
    println!("\n$ curl -s http://{METRICS}/metrics | grep ^crownlabs_instance_");
    let series = series()?;
    ensure!(series.len() == 3, "three series of one pod, not {series:?}");
    println!("{}", series.join("\n"));
    end(node, cluster, &pod)
}

/// Runs the containers of the pod of the Instance; returns their names, too.
fn run_pod(node: &Node, object: &Value) -> Result<(Vec<String>, Running)> {
    let containers = object["spec"]["containers"].as_array().context("containers of the pod")?;
    let names = containers.iter().map(|container| container["name"].as_str().unwrap_or_default().to_owned());
    let names: Vec<String> = names.collect();
    let load = |name: &str| {
        let known = [&APPLICATION, &DESKTOP].into_iter().find(|(known, _)| *known == name);
        known.map_or(&["0"][..], |(_, load)| &load[..])
    };
    let containers: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), load(name))).collect();
    let pod = node.run_pod(object, &containers)?;
    ensure!(names.iter().any(|name| name == APPLICATION.0), "the pod has no container {}", APPLICATION.0);
    Ok((names, pod))
}

/// The answer of the service about a pod.
fn answer(node: &Node, pod: &str) -> Result<ContainerMetrics> {
    let answer = node.runtime.block_on(ask(SERVICE, pod))?;
    Ok(answer?)
}

/// The lines of the page of metrics about Instances.
fn series() -> Result<Vec<String>> {
    let page = page(METRICS, "/metrics")?;
    Ok(page.lines().filter(|line| line.starts_with("crownlabs_instance_")).map(str::to_owned).collect())
}

/// The usage of a pod according to the service, and of each of its containers according to the container runtime,
/// over the same time.
async fn compare(runtime: &Containerd, pod: &Running) -> Result<(Use, Vec<Use>)> {
    let stats = async || {
        let mut all = Vec::new();
        for container in &pod.containers {
            all.push(runtime.container_stats(container).await?.context("a container that was measured")?);
        }
        anyhow::Ok(all)
    };
    let (begin, before) = (Instant::now(), stats().await?);
    let mut answers = Vec::new();
    while begin.elapsed() < PERIOD {
        tokio::time::sleep(Duration::from_millis(250)).await;
        answers.push(ask(SERVICE, &pod.name).await??);
    }
    let after = stats().await?;
    let shares = answers.iter().map(|answer| f64::from(answer.cpu_perc)).sum::<f64>();
    let last = answers.last().context("an answer")?;
    let count = float(u64::try_from(answers.len())?);
    let found = Use { percent: shares / count, memory: last.mem_bytes, files: last.disk_bytes };
    let containers = before.iter().zip(&after).map(|(before, after)| used(before, after));
    Ok((found, containers.collect::<Result<_>>()?))
}

/// The usage of a container between two measurements of the runtime.
fn used(before: &ContainerStats, after: &ContainerStats) -> Result<Use> {
    let processor = |stats: &ContainerStats| {
        let cpu = stats.cpu?;
        Some((cpu.usage_core_nano_seconds?.value, u64::try_from(cpu.timestamp).ok()?))
    };
    let (used, begin) = processor(before).context("the use of processors")?;
    let (used_then, end) = processor(after).context("the use of processors")?;
    Ok(Use {
        percent: float(used_then.saturating_sub(used)) * 100.0 / float(end.saturating_sub(begin).max(1)),
        memory: after.memory.and_then(|memory| memory.working_set_bytes).map_or(0, |bytes| bytes.value),
        files: after.writable_layer.and_then(|layer| layer.used_bytes).map_or(0, |bytes| bytes.value),
    })
}

/// Whether all three differ by at most 5 %.
fn is_near(found: &Use, expected: &Use) -> bool {
    let is_near = |found: f64, expected: f64| (found - expected).abs() <= expected * 0.05;
    is_near(found.percent, expected.percent)
        && is_near(float(found.memory), float(expected.memory))
        && is_near(float(found.files), float(expected.files))
}

/// Prints both figures.
fn table(names: &[String], containers: &[Use], pod: &str, found: &Use) {
    let row = |name: &str, of: &Use| {
        let mebibytes = |bytes: u64| float(bytes) / 1_048_576.0;
        let (memory, files) = (mebibytes(of.memory), mebibytes(of.files));
        println!("  {name:<36}{:>10.1} %{memory:>10.1} MiB{files:>10.1} MiB", of.percent);
    };
    println!("{:<38}{:>12}{:>14}{:>14}", "the container runtime says", "processors", "memory", "files");
    for (name, of) in names.iter().zip(containers) {
        row(name, of);
    }
    println!("the daemon of the node, which measures every second, says");
    row(pod, found);
}

/// Deletes the Instance, ends its containers, and waits until the daemon no longer reports them.
fn end(node: &Node, cluster: &Cluster, pod: &Running) -> Result<()> {
    println!("\ndeleting {NAME} …");
    run(cluster, &["delete", "instance", "-n", NAMESPACE, NAME])?;
    node.stop_pod(pod)?;
    let begin = Instant::now();
    let refused = wait("the end of the numbers", || {
        let answer = node.runtime.block_on(ask(SERVICE, &pod.name))?;
        Ok(answer.err().filter(|_| series().is_ok_and(|series| series.is_empty())))
    })?;
    let after = begin.elapsed().as_secs_f64();
    ensure!(refused.code() == Code::NotFound, "the service refuses to answer: {refused}");
    println!(
        "{after:.1} s after its containers ended, the page of metrics no longer lists them, and the service says:"
    );
    println!("  NOT_FOUND: {}", refused.message());
    Ok(())
}

/// A number with 16 significant digits.
#[expect(clippy::cast_precision_loss, reason = "it is compared with a tolerance")]
fn float(number: u64) -> f64 {
    number as f64
}
