//! A real containerd with runc that runs its pods in a network namespace of the test: a node. The pods run a program in
//! an image built from scratch ([`image`]), so that no registry is needed.
//!
//! containerd is the first process of its own process namespace, so that everything ends with it: shims, containers and
//! mounts, however the test ends. Process 4 inside has another number outside: see [`Containerd::command`] and
//! [`Containerd::process_outside`].

mod cgroups;
mod image;
mod messages;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http::uri::PathAndQuery;
use tempfile::TempDir;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use super::folders::temporary_dir;
use super::network::Namespace;
use super::processes::Process;
use cgroups::{make_cgroups, remove_cgroups, remove_old_cgroups};
use image::{IMAGE, archive, run};
pub use messages::ContainerStats;
use messages::{
    ContainerConfig, ContainerId, ContainerMetadata, ContainerStatsRequest, ContainerStatsResponse,
    CreateContainerRequest, Empty, ImageSpec, ImageStatusRequest, ImageStatusResponse, LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext, NamespaceOption, PodSandboxConfig, PodSandboxMetadata,
    PodSandboxStatusResponse, RunPodSandboxRequest, RunPodSandboxResponse, SandboxId,
};

/// How long a call may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running containerd. It is killed, with everything in it, when this value is dropped.
pub struct Containerd {
    process: Process,
    dir: TempDir,
    /// The cgroup of all its pods.
    cgroup: String,
}

/// A pod, as the kubelet would describe it.
#[derive(Debug, Clone, Default)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; if empty, a uid derived from the two names.
    pub uid: String,
    /// Its labels, without the labels of the kubelet.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Pod {
    /// A pod without labels.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned(), ..Self::default() }
    }

    /// The same pod with a label.
    #[must_use]
    pub fn with_label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The labels of its sandbox.
    fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.extend(self.kubelet_labels());
        labels
    }

    /// The labels that the kubelet adds.
    fn kubelet_labels(&self) -> [(String, String); 3] {
        [
            ("io.kubernetes.pod.namespace".to_owned(), self.namespace.clone()),
            ("io.kubernetes.pod.name".to_owned(), self.name.clone()),
            ("io.kubernetes.pod.uid".to_owned(), self.uid()),
        ]
    }

    /// The same pod with the uid of an object in an API server.
    #[must_use]
    pub fn with_uid(self, uid: &str) -> Self {
        Self { uid: uid.to_owned(), ..self }
    }

    fn uid(&self) -> String {
        match self.uid.as_str() {
            "" => format!("uid-{}-{}", self.namespace, self.name),
            uid => uid.to_owned(),
        }
    }
}

impl Containerd {
    /// Starts containerd in a network namespace. Its pods have addresses in `10.88.<index>.0/24`, on the bridge `cni0`.
    pub fn start(namespace: &Namespace, index: u8) -> Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let dir = temporary_dir()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let cgroup = format!("/crownlabs-{}-{number}", std::process::id());
        remove_old_cgroups();
        write_configuration(dir.path(), index)?;
        let program = dir.path().join("config.toml");
        // The folders whose paths containerd and the kubelet cannot change: the sockets of shims, results of CNI;
        // sockets of plugins, links to logs.
        let script = format!(
            "for dir in /run/containerd /var/lib/cni /var/lib/kubelet /var/log/containers; do
               mkdir -p $dir && mount -t tmpfs tmpfs $dir || exit 1
             done
             exec containerd --config {}",
            program.display()
        );
        let net = format!("--net={}", namespace.path().display());
        let arguments = [&net, "unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--"];
        let arguments = arguments.into_iter().chain(["sh", "-c", &script]).map(str::to_owned);
        let log = dir.path().join("containerd.log");
        let arguments: Vec<String> = arguments.collect();
        let process = Process::start("containerd", Path::new("nsenter"), &arguments, log)?;
        let mut containerd = Self { process, dir, cgroup };
        let begin = Instant::now();
        while !containerd.socket().exists() {
            containerd.process.check()?;
            if begin.elapsed() > PATIENCE {
                return Err(containerd.process.failure("has no socket"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let archive = archive(containerd.dir.path())?;
        let mut import = Command::new("ctr");
        import.arg("-a").arg(containerd.socket()).args(["-n", "k8s.io", "images", "import"]);
        run(import.args(["--snapshotter", "native"]).arg(archive)).context("is containerd installed?")?;
        Ok(containerd)
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("cri.sock")
    }

    /// The folder with its files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its first process, with its number outside.
    pub fn id(&self) -> Option<u32> {
        let parent = self.process.id();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// A command that runs a program on this node: in its network, process and mount namespace. The program ends with
    /// the node.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(self.entering()).arg(program);
        command
    }

    /// The arguments of `nsenter` for a program that will run on this node.
    pub fn entering(&self) -> Vec<String> {
        let id = self.id().expect("containerd runs").to_string();
        ["--target", &id, "--net", "--pid", "--mount", "--"].map(str::to_owned).to_vec()
    }

    /// Creates the cgroup of its pods, and returns its name. A kubelet creates the pods' cgroups in it.
    pub fn make_cgroup(&self) -> Result<&str> {
        make_cgroups(&self.cgroup)?;
        Ok(&self.cgroup)
    }

    /// Makes containerd look for all images in the registry at this URL first, whatever the host in their names.
    pub fn mirror(&self, url: &str) -> Result<()> {
        let folder = self.dir().join("registries/_default");
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join("hosts.toml"), format!("[host.{url:?}]\n"))?)
    }

    /// The number outside of a process of this node.
    pub fn process_outside(&self, inside: u32) -> Option<u32> {
        let inside = inside.to_string();
        fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
            // One number for each namespace, the outermost first.
            let is_that = numbers.split_whitespace().nth(1) == Some(&inside);
            (is_that && self.is_below(id)).then_some(id)
        })
    }

    /// Whether a process descends from containerd.
    fn is_below(&self, id: u32) -> bool {
        let root = self.id();
        let mut next = Some(id);
        while let Some(id) = next {
            if next == root {
                return true;
            }
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            next = parent.and_then(|parent| parent.trim().parse().ok()).filter(|parent| *parent != 0);
        }
        false
    }

    /// Stops or continues the process. While it is stopped, its socket accepts connections but does not answer.
    pub fn set_stopped(&self, stopped: bool) -> Result<()> {
        let id = self.id().context("containerd does not run")?.to_string();
        run(Command::new("kill").args([if stopped { "-STOP" } else { "-CONT" }, &id]))?;
        // A thread on another core stops with a short delay.
        let begin = Instant::now();
        while stopped && !is_stopped(&id)? {
            ensure!(begin.elapsed() < PATIENCE, "containerd does not stop");
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Starts a pod, and returns the id of its sandbox.
    pub async fn run_pod(&self, pod: &Pod) -> Result<String> {
        let begin = Instant::now();
        let image = || ImageStatusRequest { image: Some(ImageSpec { image: IMAGE.to_owned() }) };
        // containerd notices an image that was imported through another interface with a short delay.
        loop {
            let answer: ImageStatusResponse = self.call("ImageService/ImageStatus", image()).await?;
            if answer.image.is_some() {
                break;
            }
            ensure!(begin.elapsed() < PATIENCE, "containerd has no image {IMAGE}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let request = RunPodSandboxRequest { config: Some(self.config_of(pod)) };
        let answer: RunPodSandboxResponse = self.call("RuntimeService/RunPodSandbox", request).await?;
        Ok(answer.pod_sandbox_id)
    }

    /// Starts a container of a pod with arguments of the program (see `lab.c`), and returns its id.
    pub async fn run_container(
        &self,
        pod: &Pod,
        sandbox: &str,
        name: &str,
        arguments: &[&str],
    ) -> Result<String> {
        let mut labels = BTreeMap::from(pod.kubelet_labels());
        labels.insert("io.kubernetes.container.name".to_owned(), name.to_owned());
        let config = ContainerConfig {
            metadata: Some(ContainerMetadata { name: name.to_owned(), attempt: 0 }),
            image: Some(ImageSpec { image: IMAGE.to_owned() }),
            args: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            labels,
            log_path: format!("{name}.log"),
            linux: Some(Empty {}),
        };
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.to_owned(),
            config: Some(config),
            sandbox_config: Some(self.config_of(pod)),
        };
        let made: ContainerId = self.call("RuntimeService/CreateContainer", request).await?;
        let _: Empty = self.call("RuntimeService/StartContainer", made.clone()).await?;
        Ok(made.container_id)
    }

    /// Kills a container, and removes it.
    pub async fn remove_container(&self, id: &str) -> Result<()> {
        let request = || ContainerId { container_id: id.to_owned() };
        let _: Empty = self.call("RuntimeService/StopContainer", request()).await?;
        let _: Empty = self.call("RuntimeService/RemoveContainer", request()).await?;
        Ok(())
    }

    /// Kills the containers of a pod, and its sandbox.
    pub async fn stop_pod(&self, sandbox: &str) -> Result<()> {
        let request = SandboxId { pod_sandbox_id: sandbox.to_owned() };
        let _: Empty = self.call("RuntimeService/StopPodSandbox", request).await?;
        Ok(())
    }

    /// Removes a pod that was stopped.
    pub async fn remove_pod(&self, sandbox: &str) -> Result<()> {
        let request = SandboxId { pod_sandbox_id: sandbox.to_owned() };
        let _: Empty = self.call("RuntimeService/RemovePodSandbox", request).await?;
        Ok(())
    }

    /// The address of a pod; `None` if the pod uses the node's address.
    pub async fn pod_ip(&self, sandbox: &str) -> Result<Option<String>> {
        let request = SandboxId { pod_sandbox_id: sandbox.to_owned() };
        let answer: PodSandboxStatusResponse = self.call("RuntimeService/PodSandboxStatus", request).await?;
        Ok(answer.status.and_then(|status| status.network).map(|network| network.ip))
    }

    /// The usage of a container, if it has been measured.
    pub async fn container_stats(&self, id: &str) -> Result<Option<ContainerStats>> {
        let request = ContainerStatsRequest { container_id: id.to_owned() };
        let answer: ContainerStatsResponse = self.call("RuntimeService/ContainerStats", request).await?;
        Ok(answer.stats)
    }

    fn config_of(&self, pod: &Pod) -> PodSandboxConfig {
        let (name, uid, namespace) = (pod.name.clone(), pod.uid(), pod.namespace.clone());
        let options = NamespaceOption { network: 0, pid: 1 };
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata { name: name.clone(), uid, namespace, attempt: 0 }),
            hostname: name.clone(),
            log_directory: self.dir.path().join("logs").join(name).display().to_string(),
            labels: pod.all_labels(),
            annotations: pod.annotations.clone(),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: self.cgroup.clone(),
                security_context: Some(LinuxSandboxSecurityContext { namespace_options: Some(options) }),
            }),
        }
    }

    /// Calls a method, such as `RuntimeService/RunPodSandbox`.
    async fn call<Q, A>(&self, method: &str, request: Q) -> Result<A>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let exchange = async {
            let endpoint = Endpoint::from_shared(format!("unix://{}", self.socket().display()))?;
            let mut grpc = Grpc::new(endpoint.connect().await?);
            grpc.ready().await?;
            let path: PathAndQuery = format!("/runtime.v1.{method}").parse()?;
            let answer = grpc.unary(tonic::Request::new(request), path, ProstCodec::<Q, A>::default());
            anyhow::Ok(answer.await?.into_inner())
        };
        tokio::time::timeout(PATIENCE, exchange)
            .await
            .context("no answer")?
            .with_context(|| method.to_owned())
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        self.process.kill();
        let begin = Instant::now();
        while !remove_cgroups(&self.cgroup) && begin.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Whether all threads of a process are stopped (`proc_pid_stat(5)`).
fn is_stopped(process: &str) -> Result<bool> {
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread that has ended cannot be read: the next attempt succeeds.
        let stat = fs::read_to_string(thread?.path().join("stat")).unwrap_or_default();
        if !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the configuration of containerd and of its network into `dir`.
fn write_configuration(dir: &Path, index: u8) -> Result<()> {
    let at = dir.display();
    let config = include_str!("config.toml").replace("@DIR@", &at.to_string()).replace("@IMAGE@", IMAGE);
    fs::write(dir.join("config.toml"), config)?;
    fs::create_dir_all(dir.join("cni"))?;
    let network = serde_json::json!({
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "ipam": {
                "type": "host-local",
                "dataDir": format!("{at}/addresses"),
                "ranges": [[{"subnet": format!("10.88.{index}.0/24")}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    });
    Ok(fs::write(dir.join("cni/10-lab.conflist"), network.to_string())?)
}
