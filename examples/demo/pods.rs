//! Networks plugged into running pods: `PODCONFIG=1`.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::node::{Node, Running};
use crate::people::wait;
use crate::{PATIENCE, run};
use cluster::Cluster;
use cluster::network::Namespace;
use cluster::processes::Process;

/// The namespace of the sample.
const NAMESPACE: &str = "cnf-test";
/// The sample.
const NAME: &str = "podconfig-sample-a";
/// The kind.
const KIND: &str = "podconfigs.podconfig.opdev.io";

/// The keys below `controllers`.
pub fn controllers() -> String {
    "  podConfig: {enabled: true}\n".to_owned()
}

/// Applies the sample, runs its pods, shows that they reach each other, and deletes it.
pub fn show(node: &Node, cluster: &Cluster, root: &Path) -> Result<()> {
    println!("\nnetworks for running pods\n");
    let _daemon = daemon(node, cluster)?;
    let sample = |name: &str| root.join("manifests/samples/podconfig").join(name);
    cluster.apply_files(&[&sample("00-namespace.yaml"), &sample("podconfig-a.yaml")])?;
    let pods = run_pods(node, cluster)?;
    let status = wait("both pods have both links", || {
        let object = cluster.get(KIND, NAMESPACE, NAME)?;
        Ok(object.map(|object| object["status"].clone()).filter(|status| status["phase"] == "configured"))
    })?;
    run(cluster, &["wait", "--for=condition=Ready", "-n", NAMESPACE, KIND, NAME])?;
    let mut links = Vec::new();
    for pod in status["podConfigurations"].as_array().context("pods in the status")? {
        let name = pod["podName"].as_str().unwrap_or_default();
        println!("{name}");
        let first = pod["configList"][0].as_str().context("a link in the status")?;
        links.push((name.to_owned(), Link::parse(first)?));
        for text in pod["configList"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            println!("  {text}");
        }
    }
    let [(one, from), (other, to)] = &links[..] else { anyhow::bail!("two pods, not {links:?}") };
    println!("\n$ ip -brief addr show in {one}");
    print!("{}", inside(node, from)?.ip("-brief addr show"));
    echo(&inside(node, from)?, &inside(node, to)?, to.address)?;
    println!("{one} and {other} reach each other at {} and {}", from.address, to.address);
    println!("\ndeleting {NAME} …");
    run(cluster, &["delete", "-n", NAMESPACE, KIND, NAME])?;
    for pod in &pods {
        let left = node.network.ip("-brief link show");
        ensure!(!left.contains(&from.host) && !left.contains(&to.host), "links are left:\n{left}");
        node.stop_pod(pod)?;
    }
    println!("none of its links is left on the node:");
    print!("{}", node.network.ip("-brief link show"));
    Ok(())
}

/// Starts the daemon of the node.
fn daemon(node: &Node, cluster: &Cluster) -> Result<Process> {
    let nodes = cluster.list("nodes", "")?;
    let name = nodes.first().and_then(|node| node["metadata"]["name"].as_str()).context("a node")?;
    node.daemon("podConfigNode", &format!("nodeName: {name}"), Some(cluster))
}

/// Runs the pods of the sample.
fn run_pods(node: &Node, cluster: &Cluster) -> Result<Vec<Running>> {
    let pods = wait("two pods of the sample", || {
        let mut pods = cluster.list("pods", NAMESPACE)?;
        pods.retain(|pod| {
            pod["metadata"]["labels"]["podconfig"] == NAME && pod["status"]["phase"] == "Running"
        });
        Ok((pods.len() == 2).then_some(pods))
    })?;
    let running = pods.iter().map(|object| node.run_pod(object, &[("cnf-example", &["0"])]));
    let running = running.collect::<Result<_>>()?;
    println!();
    Ok(running)
}

/// The network namespace of the pod of a link. The number of one of the pod's processes is in its name.
fn inside(node: &Node, link: &Link) -> Result<Namespace> {
    let outside = node.containerd.process_outside(link.process).context("the process of a pod")?;
    Ok(Namespace::of(outside))
}

/// A link, as the status of a `PodConfig` describes it.
#[derive(Debug)]
struct Link {
    address: IpAddr,
    host: String,
    process: u32,
}

impl Link {
    /// Reads a text such as `{podVethName:pc04711 podIPAddr:192.168.100.2/24 peerVethName:hpc04711 bridge:pcbr0}`.
    fn parse(text: &str) -> Result<Self> {
        let member = |key: &str| {
            let members = text.trim_matches(['{', '}']).split(' ');
            members
                .filter_map(|member| member.split_once(':'))
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value)
        };
        let parsed = || {
            let address = member("podIPAddr")?.split('/').next()?.parse().ok()?;
            let process = member("podVethName")?.strip_prefix("pc0")?.parse().ok()?;
            Some(Self { address, host: member("peerVethName")?.to_owned(), process })
        };
        parsed().with_context(|| format!("no description of a link: {text}"))
    }
}

/// Sends a packet from one namespace to an address in another one until it returns.
fn echo(client: &Namespace, server: &Namespace, address: IpAddr) -> Result<()> {
    let socket = server.run(|| UdpSocket::bind(SocketAddr::new(address, 0)))?;
    let target = socket.local_addr()?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; 16];
        let (length, from) = socket.recv_from(&mut bytes)?;
        socket.send_to(&bytes[..length], from)
    });
    let client = client.run(|| UdpSocket::bind("0.0.0.0:0"))?;
    client.set_read_timeout(Some(Duration::from_millis(500)))?;
    wait("an answer from the other pod", || {
        client.send_to(b"hello", target)?;
        Ok(client.recv_from(&mut [0; 16]).ok())
    })?;
    echo.join().ok().context("the other pod")??;
    Ok(())
}
