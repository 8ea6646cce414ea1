//! A real control plane for the integration tests, the benches and the demo.
//!
//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok run as child processes on loopback and
//! end with the process that started them; [`standin`] plays `KubeVirt`, CDI, the storage and the load balancer.
//! See `README.md` beside this file.

// Every test includes this tree and uses another part of it.
#![allow(dead_code)]

pub mod assets;
pub mod audit;
mod background;
mod certificates;
mod crds;
pub mod direct;
pub mod keycloak;
mod kubeconfig;
mod objects;
mod ports;
mod processes;
mod programs;
pub mod proxy;
pub mod smtp;
mod standin;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tempfile::TempDir;

pub use audit::Audit;

use assets::Assets;
use background::Background;
use certificates::Certificates;
use direct::{Direct, Somebody};
use kubeconfig::Credentials;
use ports::Ports;
use processes::Process;
use programs::Programs;
use standin::StandIn;

/// How a cluster is to be started. `Options::default()` is everything on, with one node.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder for logs, keys and data, kept afterwards; `None`: a temporary one.
    pub dir: Option<PathBuf>,
    /// YAML files with CRDs, installed before the controllers start, so that the garbage collector knows them
    /// from the beginning (it looks for new ones only every 30 s).
    pub crds: Vec<PathBuf>,
    /// Whether nodes, pods, storage and machines are played; without, objects stay as they are written.
    pub play: bool,
    /// How many nodes are played; one holds 2,000 pods.
    pub nodes: usize,
    /// Whether the CRDs of `KubeVirt` and CDI are installed.
    pub kubevirt: bool,
    /// Whether the CRDs of the Gateway API are installed.
    pub gateway: bool,
    /// Whether Services of type `LoadBalancer` get the address that they ask for.
    pub load_balancer: bool,
    /// How long an import, a boot and a shut-down of a played machine take, each.
    pub machine_delay: Duration,
    /// How long each program has to become ready.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dir: None,
            crds: Vec::new(),
            play: true,
            nodes: 1,
            kubevirt: true,
            gateway: false,
            load_balancer: true,
            machine_delay: Duration::from_millis(300),
            timeout: Duration::from_mins(1),
        }
    }
}

/// A running control plane. Everything ends, and a temporary folder goes, when it is dropped.
///
/// Its methods may be called from any thread and from async tests; those that are not `async` block.
pub struct Cluster {
    options: Options,
    // Dropped in this order: the stand-in, the programs (last started first), the folder.
    stand_in: Mutex<Option<StandIn>>,
    background: Background,
    others: Mutex<Vec<Process>>,
    controller_manager: Mutex<Option<Process>>,
    apiserver: Mutex<Option<Process>>,
    etcd: Process,
    admin_kubeconfig: PathBuf,
    direct: Mutex<Option<Arc<Direct>>>,
    programs: Programs,
    temporary: Option<TempDir>,
}

impl Cluster {
    /// Starts a control plane and waits until it works. The first call on a machine builds the programs.
    pub fn start(options: Options) -> Result<Self> {
        let assets = Assets::get()?;
        let (dir, temporary) = run_dir(options.dir.as_deref())?;
        let programs = Programs {
            assets,
            certificates: Certificates::create(&dir.join("certificates"))?,
            ports: Ports::reserve(&assets::cache_dir()?)?,
            dir,
        };
        let cluster = Self {
            stand_in: Mutex::new(None),
            background: Background::start("test-cluster")?,
            others: Mutex::new(Vec::new()),
            controller_manager: Mutex::new(None),
            apiserver: Mutex::new(None),
            etcd: programs.etcd()?,
            admin_kubeconfig: programs.kubeconfig("admin", Some("system:masters"))?,
            programs,
            temporary,
            direct: Mutex::new(None),
            options,
        };
        cluster.start_apiserver()?;
        cluster.install(&cluster.crds_at_start()?)?;
        *locked(&cluster.controller_manager) = Some(cluster.programs.kube_controller_manager()?);
        if cluster.options.play {
            cluster.play()?;
        }
        cluster.wait_for("kube-controller-manager", objects::service_accounts_work)?;
        Ok(cluster)
    }

    /// Starts the players and waits for the nodes.
    fn play(&self) -> Result<()> {
        let players = [self.programs.kube_scheduler()?, self.programs.kwok()?];
        locked(&self.others).extend(players);
        let (admin, nodes) = (self.admin_kubeconfig.clone(), self.options.nodes);
        self.background.run(async move {
            objects::create_nodes(&client_of(&admin, "test-cluster").await?, nodes).await
        })??;
        self.start_stand_in(self.options.kubevirt)?;
        self.wait_for("kwok", objects::nodes_ready)
    }

    /// Folder with the logs (`<program>.log`), `audit.log`, kubeconfigs and data.
    pub fn dir(&self) -> &Path {
        &self.programs.dir
    }

    /// URL of the API server.
    pub fn server(&self) -> String {
        self.programs.server()
    }

    /// Certificate of the authority that signed the API server's.
    pub fn ca_file(&self) -> PathBuf {
        self.programs.certificates.file("ca.crt")
    }

    /// Kubeconfig of the administrator (user `admin`, group `system:masters`).
    pub fn admin_kubeconfig(&self) -> &Path {
        &self.admin_kubeconfig
    }

    /// A client of the administrator. It belongs to the runtime that it is made in.
    pub async fn client(&self) -> Result<Client> {
        client_of(&self.admin_kubeconfig, "crownlabs-tests").await
    }

    /// A client of a service account.
    pub async fn service_account_client(&self, namespace: &str, service_account: &str) -> Result<Client> {
        client_of(&self.service_account_kubeconfig(namespace, service_account)?, "crownlabs-tests").await
    }

    /// `kubectl` as the administrator; to be given its arguments.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.programs.assets.kubectl);
        command.env("KUBECONFIG", &self.admin_kubeconfig);
        // Ports are used again by other clusters, so what is cached must not outlive this one.
        command.env("KUBECACHEDIR", self.dir().join("kubectl-cache"));
        command
    }

    /// An object as the administrator reads it, unless it does not exist. `kind` is a plural name, with
    /// the group behind a dot where the name alone would not do.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<serde_json::Value>> {
        let (direct, [kind, namespace, name]) = (self.direct()?, [kind, namespace, name].map(str::to_owned));
        self.background.run(async move { direct.get(&kind, &namespace, &name).await })?
    }

    /// The objects of some kinds (separated by commas) in a namespace, or in all where it is empty.
    pub fn list(&self, kinds: &str, namespace: &str) -> Result<Vec<serde_json::Value>> {
        let (direct, [kinds, namespace]) = (self.direct()?, [kinds, namespace].map(str::to_owned));
        self.background.run(async move { direct.list(&kinds, &namespace).await })?
    }

    /// Applies the objects in a YAML text (server-side); their kinds are served already.
    pub fn apply(&self, yaml: &str) -> Result<()> {
        let (direct, yaml) = (self.direct()?, yaml.to_owned());
        self.background.run(async move { direct.apply(&yaml).await })?
    }

    /// Merge-patches an object, or a part of it such as its status.
    pub fn patch(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
        patch: &str,
    ) -> Result<()> {
        let direct = self.direct()?;
        let [kind, namespace, name, patch] = [kind, namespace, name, patch].map(str::to_owned);
        let part = subresource.map(str::to_owned);
        self.background
            .run(async move { direct.patch(&kind, &namespace, &name, part.as_deref(), &patch).await })?
    }

    /// Whether the authorizer lets somebody do something: see [`Direct::may`].
    pub fn may(
        &self,
        somebody: Somebody,
        verb: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<bool> {
        let direct = self.direct()?;
        let [verb, resource, namespace, name] = [verb, resource, namespace, name].map(str::to_owned);
        self.background
            .run(async move { direct.may(&somebody, &verb, &resource, &namespace, &name).await })?
    }

    fn direct(&self) -> Result<Arc<Direct>> {
        let mut direct = locked(&self.direct);
        if let Some(direct) = &*direct {
            return Ok(Arc::clone(direct));
        }
        let admin = self.admin_kubeconfig.clone();
        let client = self.background.run(async move { client_of(&admin, "crownlabs-tests").await })??;
        Ok(Arc::clone(direct.insert(Arc::new(Direct::new(client)))))
    }

    /// Applies manifest files (server-side), and waits until CRDs among them are served.
    pub fn apply_files(&self, files: &[&Path]) -> Result<()> {
        let texts = files
            .iter()
            .map(|file| fs::read_to_string(file).with_context(|| format!("reading {}", file.display())));
        let texts: Vec<String> = texts.collect::<Result<_>>()?;
        self.apply_yaml(&texts.join("\n---\n"))
    }

    /// Applies manifests (server-side), and waits until CRDs among them are served.
    pub fn apply_yaml(&self, manifests: &str) -> Result<()> {
        let file = tempfile::NamedTempFile::new_in(self.dir())?;
        fs::write(file.path(), manifests)?;
        let mut kubectl = self.kubectl();
        kubectl.args(["apply", "--server-side", "--force-conflicts", "-f"]).arg(file.path());
        output_of(&mut kubectl)?;
        let mut crds = self.kubectl();
        crds.args(["wait", "--for=condition=Established", "--timeout=30s", "crd", "--all"]);
        if manifests.contains("kind: CustomResourceDefinition") {
            output_of(&mut crds).map(drop)
        } else {
            Ok(())
        }
    }

    /// A token of a service account, valid for a day.
    pub fn token(&self, namespace: &str, service_account: &str) -> Result<String> {
        let mut kubectl = self.kubectl();
        kubectl.args(["create", "token", service_account, "--duration=24h", "--namespace", namespace]);
        Ok(output_of(&mut kubectl)?.trim().to_owned())
    }

    /// Writes a kubeconfig with a token of a service account that exists.
    pub fn service_account_kubeconfig(&self, namespace: &str, service_account: &str) -> Result<PathBuf> {
        self.kubeconfig_via(&self.server(), namespace, service_account)
    }

    /// The same for another server in front of the API server, such as [`proxy::Proxy::url`].
    pub fn kubeconfig_via(&self, server: &str, namespace: &str, service_account: &str) -> Result<PathBuf> {
        let token = self.token(namespace, service_account)?;
        let port = server.rsplit(':').next().unwrap_or_default();
        let path = self.dir().join(format!("{namespace}-{service_account}-{port}.kubeconfig"));
        kubeconfig::write(&path, server, &self.ca_file(), &Credentials::Token(&token))?;
        Ok(path)
    }

    /// The audit log.
    pub fn audit(&self) -> Audit {
        Audit::new(&self.programs.audit_log())
    }

    /// Kills the API server: connections break at once, requests are refused until it is started again.
    pub fn stop_apiserver(&self) {
        locked(&self.apiserver).take();
    }

    /// Starts the API server on the same port and data, and waits until it is ready.
    pub fn start_apiserver(&self) -> Result<()> {
        let process = self.programs.kube_apiserver()?;
        *locked(&self.apiserver) = Some(process);
        self.wait_for("kube-apiserver", objects::apiserver_ready)
    }

    /// Installs `KubeVirt` and CDI in a cluster that was started without.
    pub fn install_kubevirt(&self) -> Result<()> {
        self.install(&files_of(&self.programs.assets.kubevirt_crds)?)?;
        // The garbage collector of a new controller manager knows the new kinds at once.
        let manager = &mut *locked(&self.controller_manager);
        manager.take();
        *manager = Some(self.programs.kube_controller_manager()?);
        if self.options.play { self.start_stand_in(true) } else { Ok(()) }
    }

    /// The process ids of all programs.
    pub fn process_ids(&self) -> Vec<u32> {
        let mut ids = vec![self.etcd.id()];
        ids.extend(locked(&self.apiserver).iter().map(Process::id));
        ids.extend(locked(&self.controller_manager).iter().map(Process::id));
        ids.extend(locked(&self.others).iter().map(Process::id));
        ids
    }

    fn crds_at_start(&self) -> Result<Vec<PathBuf>> {
        let mut files = self.options.crds.clone();
        if self.options.kubevirt {
            files.extend(files_of(&self.programs.assets.kubevirt_crds)?);
        }
        if self.options.gateway {
            files.extend(files_of(&self.programs.assets.gateway_crds)?);
        }
        Ok(files)
    }

    fn install(&self, crds: &[PathBuf]) -> Result<()> {
        let (admin, crds) = (self.admin_kubeconfig.clone(), crds.to_vec());
        self.background.run(async move {
            let client = client_of(&admin, "test-cluster").await?;
            objects::install_crds(&client, &crds).await
        })?
    }

    fn start_stand_in(&self, machines: bool) -> Result<()> {
        let kubeconfig = self.programs.kubeconfig(standin::USER_AGENT, Some("system:masters"))?;
        let settings = standin::Settings {
            machines,
            load_balancer: self.options.load_balancer,
            machine_delay: self.options.machine_delay,
            log: self.dir().join("stand-in.log"),
        };
        let client =
            self.background.run(async move { client_of(&kubeconfig, standin::USER_AGENT).await })??;
        let mut stand_in = locked(&self.stand_in);
        // The old one is stopped first: two would do everything twice.
        stand_in.take();
        *stand_in = Some(StandIn::start(self.background.handle(), client, settings)?);
        Ok(())
    }

    /// Waits until `check` succeeds, asking every 30 ms; fails at once if a program ends, with its last words.
    fn wait_for<F>(&self, program: &'static str, check: fn(Client) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let admin = self.admin_kubeconfig.clone();
        let client = self.background.run(async move { client_of(&admin, "test-cluster").await })??;
        let deadline = Instant::now() + self.options.timeout;
        loop {
            let attempt = check(client.clone());
            let patient = async { tokio::time::timeout(Duration::from_secs(2), attempt).await };
            let answer = self.background.run(patient)?;
            let Err(reason) = answer.map_err(|_| anyhow!("no answer in 2 s")).flatten() else {
                return Ok(());
            };
            self.check_programs()?;
            if Instant::now() > deadline {
                let log = self.dir().join(format!("{program}.log"));
                let tail = processes::tail(&log, 15);
                bail!("{program} is not ready: {reason:#}; the end of {}:\n{tail}", log.display());
            }
            thread::sleep(Duration::from_millis(30));
        }
    }

    fn check_programs(&self) -> Result<()> {
        locked(&self.apiserver).iter_mut().try_for_each(Process::check)?;
        locked(&self.controller_manager).iter_mut().try_for_each(Process::check)?;
        locked(&self.others).iter_mut().try_for_each(Process::check)
    }
}

/// A client from a kubeconfig that names itself in every request.
async fn client_of(kubeconfig: &Path, user_agent: &'static str) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static(user_agent)));
    Ok(Client::try_from(config)?)
}

/// The folder for a run: the given one, or a temporary one named after this process.
fn run_dir(given: Option<&Path>) -> Result<(PathBuf, Option<TempDir>)> {
    if let Some(dir) = given {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let dir = dir.canonicalize()?;
        if dir.join("etcd").exists() {
            bail!("{} holds the data of another cluster: remove it or choose another folder", dir.display());
        }
        return Ok((dir, None));
    }
    let temporary = temporary_dir()?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

/// A temporary folder named after this process.
fn temporary_dir() -> Result<TempDir> {
    remove_leftovers();
    let prefix = format!("{RUN_PREFIX}{}-", std::process::id());
    Ok(tempfile::Builder::new().prefix(&prefix).tempdir()?)
}

const RUN_PREFIX: &str = "crownlabs-cluster-";

/// Removes the folders of test processes that were killed and could not do it themselves.
fn remove_leftovers() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(RUN_PREFIX).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| Path::new("/proc/self").exists() && !Path::new("/proc").join(pid).exists()) {
            // Somebody else's folder is not ours to remove.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn files_of(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    Ok(entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?)
}

/// Runs a command to its end; the error carries what it wrote.
fn output_of(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let arguments: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`kubectl {}` failed: {}", arguments.join(" "), said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
