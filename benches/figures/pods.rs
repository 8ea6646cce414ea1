//! Pod networks: many pods on one node at once. A pod is a network namespace with a process that sleeps, and the
//! container runtime is a socket that lists them. A real sandbox takes longer to start than its links take to create.

#[path = "../../tests/integration/pod_config_node/pools.rs"]
mod pools;
#[path = "../../tests/integration/pod_config_node/runtime.rs"]
#[allow(dead_code, reason = "the tests have the runtime do more")]
mod runtime;

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::fixtures::node;
use crate::harness::{Bench, Daemon, Figures};
use crate::idle_time;
use cluster::Options;
use cluster::config::only;
use cluster::network::Namespace;

const PODS: usize = 200;
const ATTACHMENTS: [&str; 2] = ["data", "mgmt"];
const NAMESPACE: &str = "crownlabs-system";
const NODE: &str = "node-1";
const RECORDS: &str = "/api/v1/namespaces/crownlabs-system/configmaps";

struct Pod {
    _namespace: Namespace,
    child: Child,
}

impl Pod {
    fn start() -> Result<Self> {
        let namespace = Namespace::new();
        let child = namespace.run(|| Command::new("sleep").arg("infinity").spawn())?;
        Ok(Self { _namespace: namespace, child })
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        // The process ends only here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// 200 pods with two attachments each: from the records of the leader to the report of the node; then an idle time;
/// then removal.
pub async fn many(figures: &mut Figures) -> Result<()> {
    let bench = Bench::start_with(Options { simulate: false, ..Options::default() }, &node(NODE)).await?;
    let (node, engine) = (Namespace::new(), runtime::Runtime::start(&bench.dir.join("cri.sock")));
    let pods = (0..PODS).map(|_| Pod::start()).collect::<Result<Vec<_>>>()?;
    for (number, pod) in pods.iter().enumerate() {
        engine.set_container(&uid(number), Some(pod.child.id()));
    }
    let keys = format!(
        "nodeName: {NODE}, nodeNamespace: {}, runtimeEndpoint: {}",
        node.path().display(),
        engine.socket().display()
    );
    let daemon = bench.daemon_with(&format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
server: {{metrics: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}}
leaderElection: {{enabled: false}}
{}",
        only(&[("podConfigNode", &keys)])
    ))?;
    daemon.await_idle()?;

    measured(&bench, &daemon, figures).await
}

async fn measured(bench: &Bench, daemon: &Daemon, figures: &mut Figures) -> Result<()> {
    let before = daemon.processor_seconds()?;
    write(bench, "POST", false).await?;
    let begin = Instant::now();
    await_states(bench, "plugged").await?;
    let links = PODS * ATTACHMENTS.len();
    figures.add(
        format!("{links} links of {PODS} pods: made and reported"),
        begin.elapsed().as_secs_f64(),
        "s",
        Some(5.0),
    );
    daemon.await_idle()?;
    let made = daemon.processor_seconds()? - before;
    figures.add(format!("{links} links of {PODS} pods: processor time"), made, "s", Some(2.0));

    let (before, mark, idle) =
        (daemon.processor_seconds()?, bench.cluster.audit().mark()?, idle_time(Duration::from_mins(2)));
    tokio::time::sleep(idle).await;
    let used = daemon.processor_seconds()? - before;
    let (entries, _) = bench.cluster.audit().read(mark)?;
    let writes =
        entries.iter().filter(|entry| entry.verb != "watch" && entry.user.contains(":crownlabs")).count();
    figures.add(format!("{links} links, idle for {idle:?}: processor time"), used, "s", Some(0.5));
    figures.add(
        format!("{links} links, idle for {idle:?}: requests other than watches"),
        crate::harness::count(writes),
        "",
        Some(0.0),
    );
    figures.add(format!("{links} links: peak memory"), daemon.peak_mebibytes()?, "MiB", Some(60.0));

    let before = daemon.processor_seconds()?;
    write(bench, "PUT", true).await?;
    let begin = Instant::now();
    await_states(bench, "released").await?;
    figures.add(
        format!("{links} links: removed and reported"),
        begin.elapsed().as_secs_f64(),
        "s",
        Some(10.0),
    );
    daemon.await_idle()?;
    figures.add(
        format!("{links} links: processor time of removal"),
        daemon.processor_seconds()? - before,
        "s",
        Some(2.0),
    );
    Ok(())
}

fn uid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// Writes the two pools.
async fn write(bench: &Bench, method: &str, release: bool) -> Result<()> {
    for (place, attachment) in ATTACHMENTS.iter().enumerate() {
        let bridge = format!("labbr{place}");
        let range = format!("10.{}.0.0/16", 77 + place);
        let pool = pools::pool("lab", &range, &format!("10.{}.0.1", 77 + place), &[&bridge]);
        let allocations: Vec<(String, Value)> = (0..PODS)
            .map(|number| {
                let address = format!("10.{}.{}.{}", 77 + place, number / 200, number % 200 + 2);
                let allocation = json!([{
                    "pod": format!("pod-{number}"), "node": NODE, "podConfig": "lab-net",
                    "podConfigUid": "0b0e33f4-3b0a-4b6e-9b39-5cb24bd9a2c1", "attachment": attachment, "bridge": bridge,
                    "address": address, "release": release,
                }]);
                (uid(number), allocation)
            })
            .collect();
        let allocations: Vec<(&str, Value)> =
            allocations.iter().map(|(uid, list)| (uid.as_str(), list.clone())).collect();
        let object = pools::config_map(NAMESPACE, &pool, &allocations);
        let name = object["metadata"]["name"].as_str().context("a name")?;
        let path = if method == "POST" { RECORDS.to_owned() } else { format!("{RECORDS}/{name}") };
        bench.send(method, &path, &object).await?;
    }
    Ok(())
}

/// Waits until the report says that every link has this state.
async fn await_states(bench: &Bench, state: &str) -> Result<()> {
    let path = format!("{RECORDS}/{}", pools::report_name(NODE));
    let wanted = format!("\"state\":\"{state}\"");
    let begin = Instant::now();
    loop {
        let report = bench.send("GET", &path, &Value::Null).await.unwrap_or_default();
        let data = report["data"].as_object().cloned().unwrap_or_default();
        let count: usize =
            data.values().filter_map(Value::as_str).map(|text| text.matches(&wanted).count()).sum();
        if count == PODS * ATTACHMENTS.len() {
            return Ok(());
        }
        ensure!(begin.elapsed() < Duration::from_mins(2), "{count} links are {state}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
