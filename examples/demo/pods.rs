//! Networks plugged into running pods: `PODCONFIG=1`. The pods are real ones, of a containerd in a network namespace that stands
//! for the node; kwok keeps the objects in the API server in step.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::cluster::Cluster;
use crate::cluster::containerd::{Containerd, Pod};
use crate::cluster::network::Namespace;
use crate::cluster::processes::Process;
use crate::people::wait;
use crate::{PATIENCE, program, run};

/// The namespace of the sample.
const NAMESPACE: &str = "cnf-test";
/// The sample.
const NAME: &str = "podconfig-sample-a";
/// The kind.
const KIND: &str = "podconfigs.podconfig.opdev.io";

/// A node with a container runtime.
pub struct PodNetworks {
    node: Namespace,
    containerd: Containerd,
    runtime: Runtime,
    folder: PathBuf,
}

/// A running pod.
struct Running {
    name: String,
    sandbox: String,
}

impl PodNetworks {
    /// Starts a containerd if the variable `PODCONFIG` is set.
    pub fn start(folder: &Path) -> Result<Option<Self>> {
        if !std::env::var("PODCONFIG").is_ok_and(|value| !value.is_empty() && value != "0") {
            return Ok(None);
        }
        let user = Command::new("id").arg("-u").output().context("id")?;
        ensure!(user.stdout.trim_ascii() == b"0", "PODCONFIG=1 needs root: it makes pods and their networks");
        println!("starting containerd …");
        let node = Namespace::new();
        let containerd = Containerd::start(&node, 1)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Some(Self { node, containerd, runtime, folder: folder.to_owned() }))
    }

    /// The keys below `controllers`.
    pub fn controllers() -> String {
        "  podConfig: {enabled: true}\n".to_owned()
    }

    /// Applies the sample, runs its pods, shows that they reach each other, and deletes it.
    pub fn show(&self, cluster: &Cluster, root: &Path) -> Result<()> {
        println!("\nnetworks for running pods\n");
        let _daemon = self.daemon(cluster)?;
        let sample = |name: &str| root.join("manifests/samples/podconfig").join(name);
        cluster.apply_files(&[&sample("00-namespace.yaml"), &sample("podconfig-a.yaml")])?;
        let pods = self.run_pods(cluster)?;
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
        print!("{}", self.inside(from)?.ip("-brief addr show"));
        echo(&self.inside(from)?, &self.inside(to)?, to.address)?;
        println!("{one} and {other} reach each other at {} and {}", from.address, to.address);
        println!("\ndeleting {NAME} …");
        run(cluster, &["delete", "-n", NAMESPACE, KIND, NAME])?;
        for pod in &pods {
            let left = self.node.ip("-brief link show");
            ensure!(!left.contains(&from.host) && !left.contains(&to.host), "links are left:\n{left}");
            self.runtime.block_on(self.containerd.stop_pod(&pod.sandbox)).context(pod.name.clone())?;
        }
        println!("nothing is left on the node:");
        print!("{}", self.node.ip("-brief link show"));
        Ok(())
    }

    /// Starts the daemon of the node, as a pod with `hostPID` would run it: among the processes of the node, whose first one has
    /// the network of the node.
    fn daemon(&self, cluster: &Cluster) -> Result<Process> {
        let nodes = cluster.list("nodes", "")?;
        let name = nodes.first().and_then(|node| node["metadata"]["name"].as_str()).context("a node")?;
        let others = ["workspace", "tenant", "instance", "publicExposure", "sharedVolume", "snapshot"]
            .map(|name| format!("  {name}: {{enabled: false}}\n"))
            .concat();
        let config = format!(
            "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\nserver: {{metrics: \
             \"127.0.0.1:18082\", health: \"127.0.0.1:18083\"}}\nleaderElection: {{enabled: false}}\ncontrollers:\n{others}  \
             podConfigNode: {{enabled: true, nodeName: {name}, runtimeEndpoint: \"unix://{}\"}}\n",
            self.containerd.socket().display()
        );
        let file = self.folder.join("node.yaml");
        fs::write(&file, config)?;
        let first = self.containerd.id().context("containerd runs")?.to_string();
        let mut arguments: Vec<String> =
            ["--target", &first, "--pid", "--mount", "--", "setpriv", "--pdeathsig", "KILL", "--"]
                .map(str::to_owned)
                .into();
        arguments.push(program()?.display().to_string());
        arguments.extend(["run".to_owned(), "--config".to_owned(), file.display().to_string()]);
        arguments.extend(["--kubeconfig".to_owned(), cluster.admin_kubeconfig().display().to_string()]);
        Process::start(
            "the daemon of the node",
            Path::new("nsenter"),
            &arguments,
            self.folder.join("node.log"),
        )
    }

    /// Runs the pods of the sample, as the kubelet of the node would.
    fn run_pods(&self, cluster: &Cluster) -> Result<Vec<Running>> {
        let pods = wait("two pods of the sample", || {
            let mut pods = cluster.list("pods", NAMESPACE)?;
            pods.retain(|pod| {
                pod["metadata"]["labels"]["podconfig"] == NAME && pod["status"]["phase"] == "Running"
            });
            Ok((pods.len() == 2).then_some(pods))
        })?;
        let mut running = Vec::new();
        for object in pods {
            let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
            let pod = Pod::new(NAMESPACE, &text("name")).with_uid(&text("uid"));
            let started = async {
                let sandbox = self.containerd.run_pod(&pod).await?;
                self.containerd.run_container(&pod, &sandbox, "cnf-example", &["0"]).await?;
                anyhow::Ok(sandbox)
            };
            let sandbox = self.runtime.block_on(started)?;
            println!("{} runs", pod.name);
            running.push(Running { name: pod.name, sandbox });
        }
        println!();
        Ok(running)
    }

    /// The network namespace of the pod of a link, whose name has the number of one of its processes.
    fn inside(&self, link: &Link) -> Result<Namespace> {
        let outside = self.containerd.process_outside(link.process).context("the process of a pod")?;
        Ok(Namespace::of(outside))
    }
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

/// Sends a packet from one namespace to an address in another one until it comes back.
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
