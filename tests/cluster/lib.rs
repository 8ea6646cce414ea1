//! A real control plane for the integration tests, the benches and the demo.
//!
//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok run as child processes on loopback and
//! end with the process that started them; [`standin`] simulates `KubeVirt`, CDI, the storage and the load balancer.
//! See `README.md` beside this file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test that it serves fails by a panic"
)]

mod access;
pub mod assets;
pub mod audit;
mod background;
mod backup;
pub mod browser;
mod certificates;
pub mod config;
pub mod containerd;
mod crds;
pub mod direct;
pub mod exporter;
mod folders;
pub mod front;
pub mod helm;
pub mod instance_metrics;
mod issuer;
pub mod keycloak;
pub mod kstatus;
pub mod kube_router;
mod kubeconfig;
pub mod network;
pub mod nginx;
pub mod node;
pub mod oauth2_proxy;
mod objects;
mod options;
mod ports;
pub mod processes;
mod programs;
pub mod prometheus;
pub mod proxy;
pub mod registry;
pub mod request;
pub mod screens;
pub mod smtp;
pub mod sshd;
mod standin;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use kube::Client;
use parking_lot::Mutex;
use tempfile::TempDir;

pub use audit::Audit;
pub use issuer::CLIENT;
pub use options::{Options, TrustedIssuer};
pub use ports::reserve_port;

use access::client_of;
use assets::Assets;
use background::Background;
use certificates::Certificates;
use direct::Direct;
use folders::{files_of, run_dir};
use issuer::Issuer;
use ports::Ports;
use processes::Process;
use programs::Programs;
use standin::StandIn;

/// A running control plane. When it is dropped, its programs end and a temporary folder is removed.
///
/// Its methods may be called from any thread and from async tests. Methods that are not `async` block.
pub struct Cluster {
    options: Options,
    // Dropped in this order: the stand-in, the programs (last started first), the folder.
    stand_in: Mutex<Option<StandIn>>,
    background: Background,
    others: Mutex<Vec<Process>>,
    controller_manager: Mutex<Option<Process>>,
    apiserver: Mutex<Option<Process>>,
    etcd: Mutex<Option<Process>>,
    admin_kubeconfig: PathBuf,
    issuer: Issuer,
    direct: Mutex<Option<Arc<Direct>>>,
    programs: Programs,
    #[expect(dead_code, reason = "the folder is removed when this is dropped")]
    temporary: Option<TempDir>,
    /// Whether all programs have been ready once.
    is_complete: AtomicBool,
    /// Whether claims get volumes, see `Options::furnished`.
    is_furnished: AtomicBool,
}

impl Cluster {
    /// Starts a control plane and waits until it is ready. The first call on a machine builds the programs.
    pub fn start(options: Options) -> Result<Self> {
        let assets = Assets::get()?;
        let (dir, temporary) = run_dir(options.dir.as_deref())?;
        let programs = Programs {
            assets,
            certificates: Certificates::create(&dir.join("certificates"))?,
            ports: Ports::reserve()?,
            dir,
            owner_references_guarded: options.owner_references_guarded,
            cross_namespace_volumes: options.cross_namespace_volumes,
            spare: options.spare,
            issuers: options.issuers.clone(),
            quota_period: options.quota_period,
            node: options.node,
        };
        let background = Background::start("test-cluster")?;
        let issuer = Issuer::start(&background, &programs.ports, &programs.certificates)?;
        let cluster = Self {
            stand_in: Mutex::new(None),
            background,
            issuer,
            others: Mutex::new(Vec::new()),
            controller_manager: Mutex::new(None),
            apiserver: Mutex::new(None),
            etcd: Mutex::new(Some(programs.etcd()?)),
            admin_kubeconfig: programs.kubeconfig("admin", Some("system:masters"))?,
            programs,
            temporary,
            direct: Mutex::new(None),
            is_complete: AtomicBool::new(false),
            is_furnished: AtomicBool::new(options.furnished),
            options,
        };
        cluster.await_etcd()?;
        cluster.start_apiserver()?;
        cluster.install(&cluster.crds_at_start()?)?;
        *cluster.controller_manager.lock() = Some(cluster.programs.kube_controller_manager()?);
        if cluster.options.simulate {
            cluster.start_simulators()?;
        } else if cluster.options.storage {
            cluster.start_stand_in(false)?;
        }
        cluster.wait_for("kube-controller-manager", objects::service_accounts_work)?;
        if cluster.options.furnished {
            cluster.background.run(cluster.furnishing())??;
        }
        cluster.is_complete.store(true, Ordering::Relaxed);
        Ok(cluster)
    }

    /// Starts the simulators of nodes, pods and virtual machines, and waits until the nodes are ready.
    fn start_simulators(&self) -> Result<()> {
        let simulators = [self.programs.kube_scheduler()?, self.programs.kwok()?];
        self.others.lock().extend(simulators);
        let admin = self.admin_kubeconfig.clone();
        let (nodes, machines) = (self.options.nodes, self.options.furnished);
        self.background.run(async move {
            objects::create_nodes(&client_of(&admin, "test-cluster").await?, nodes, machines).await
        })??;
        self.start_stand_in(self.options.kubevirt)?;
        self.wait_for("kwok", objects::nodes_ready)
    }

    /// The folder with the logs (`<program>.log`), `audit.log`, kubeconfigs and data.
    pub fn dir(&self) -> &Path {
        &self.programs.dir
    }

    /// The URL of the API server.
    pub fn server(&self) -> String {
        self.programs.server()
    }

    /// The certificate of the authority that signed the API server's certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.programs.certificates.file("ca.crt")
    }

    /// The kubeconfig of the administrator (user `admin`, group `system:masters`).
    pub fn admin_kubeconfig(&self) -> &Path {
        &self.admin_kubeconfig
    }

    /// The authority that has issued all certificates of the cluster, in PEM.
    pub fn authority(&self) -> PathBuf {
        self.programs.authority()
    }

    /// The audit log.
    pub fn audit(&self) -> Audit {
        Audit::new(&self.programs.audit_log())
    }

    /// Kills the API server: connections break at once, and requests fail until it is started again.
    pub fn stop_apiserver(&self) {
        self.apiserver.lock().take();
    }

    /// Starts the API server on the same port and data, and waits until it is ready.
    pub fn start_apiserver(&self) -> Result<()> {
        let process = self.programs.kube_apiserver()?;
        *self.apiserver.lock() = Some(process);
        self.wait_for("kube-apiserver", objects::apiserver_ready)
    }

    /// Kills etcd. The API server keeps running, and answers with errors or not at all.
    pub fn stop_etcd(&self) {
        self.etcd.lock().take();
    }

    /// Starts etcd on the same port and data, and waits until the API server is ready.
    pub fn start_etcd(&self) -> Result<()> {
        let process = self.programs.etcd()?;
        *self.etcd.lock() = Some(process);
        self.await_etcd()?;
        self.wait_for("kube-apiserver", objects::apiserver_ready)
    }

    /// Waits until etcd answers. An API server that starts earlier exits after 20 s. etcd takes longer than that to
    /// create its files if the disk still has gigabytes of other files to write: it flushes them despite its option not
    /// to.
    fn await_etcd(&self) -> Result<()> {
        let address = self.programs.etcd_address();
        let deadline = Instant::now() + self.options.timeout;
        while !objects::etcd_healthy(address) {
            let mut etcd = self.etcd.lock();
            let etcd = etcd.as_mut().context("etcd was stopped while it started")?;
            etcd.check()?;
            if Instant::now() > deadline {
                return Err(etcd.failure(&format!("does not answer in {:?}", self.options.timeout)));
            }
            thread::sleep(Duration::from_millis(30));
        }
        Ok(())
    }

    /// Kills the controller manager: nothing is collected, bound or scheduled.
    pub fn stop_controller_manager(&self) {
        self.controller_manager.lock().take();
    }

    /// Starts the controller manager.
    pub fn start_controller_manager(&self) -> Result<()> {
        *self.controller_manager.lock() = Some(self.programs.kube_controller_manager()?);
        Ok(())
    }

    /// Installs the CRDs of `KubeVirt` and CDI in a cluster that was started without them.
    pub fn install_kubevirt(&self) -> Result<()> {
        self.install(&self.kubevirt_crds()?)?;
        // The garbage collector of a running controller manager learns new kinds only every 30 s.
        self.stop_controller_manager();
        self.start_controller_manager()?;
        if self.options.simulate { self.start_stand_in(true) } else { Ok(()) }
    }

    /// Adds the objects that a cluster without `Options::furnished` lacks: the storage classes with a provisioner, and
    /// the Secret. Virtual machines are installed after it.
    pub fn furnish(&self) -> Result<()> {
        self.is_furnished.store(true, Ordering::Relaxed);
        self.background.run(self.furnishing())??;
        self.start_stand_in(self.options.kubevirt)
    }

    /// Marks all nodes as able to run virtual machines, as KubeVirt does.
    pub fn mark_nodes(&self) -> Result<()> {
        let admin = self.admin_kubeconfig.clone();
        let marked = async move { objects::mark_nodes(&client_of(&admin, "test-cluster").await?).await };
        self.background.run(marked)?
    }

    fn furnishing(&self) -> impl Future<Output = Result<()>> + Send + 'static {
        let admin = self.admin_kubeconfig.clone();
        async move { objects::furnish(&client_of(&admin, "test-cluster").await?).await }
    }

    /// The process ids of all programs.
    pub fn process_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.etcd.lock().iter().map(Process::id).collect();
        ids.extend(self.apiserver.lock().iter().map(Process::id));
        ids.extend(self.controller_manager.lock().iter().map(Process::id));
        ids.extend(self.others.lock().iter().map(Process::id));
        ids
    }

    fn crds_at_start(&self) -> Result<Vec<PathBuf>> {
        let mut files = self.options.crds.clone();
        if self.options.kubevirt {
            files.extend(self.kubevirt_crds()?);
        }
        if self.options.gateway {
            files.extend(files_of(&crds::gateway(&assets::cache_dir()?)?)?);
        }
        Ok(files)
    }

    fn kubevirt_crds(&self) -> Result<Vec<PathBuf>> {
        if self.options.schemas {
            files_of(&crds::kubevirt(&assets::cache_dir()?)?)
        } else {
            crds::without_schemas(self.dir())
        }
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
            storage: self.is_furnished.load(Ordering::Relaxed),
            load_balancer: self.options.load_balancer,
            machine_delay: self.options.machine_delay,
            log: self.dir().join("stand-in.log"),
        };
        let client =
            self.background.run(async move { client_of(&kubeconfig, standin::USER_AGENT).await })??;
        let mut stand_in = self.stand_in.lock();
        // The running stand-in is stopped first: two of them would do everything twice.
        stand_in.take();
        *stand_in = Some(StandIn::start(self.background.handle(), client, settings)?);
        Ok(())
    }

    /// Waits until `check` succeeds, retrying every 30 ms. Fails with the end of a log if a program ends or the time
    /// is up.
    fn wait_for<F>(&self, program: &'static str, check: fn(Client) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let admin = self.admin_kubeconfig.clone();
        let client = self.background.run(async move { client_of(&admin, "test-cluster").await })??;
        let deadline = Instant::now() + self.options.timeout;
        loop {
            let attempt = check(client.clone());
            let limited = async { tokio::time::timeout(Duration::from_secs(2), attempt).await };
            let answer = self.background.run(limited)?;
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
        self.apiserver.lock().iter_mut().try_for_each(Process::check)?;
        if self.is_complete.load(Ordering::Relaxed) {
            return self.start_ended_programs();
        }
        self.controller_manager.lock().iter_mut().try_for_each(Process::check)?;
        self.others.lock().iter_mut().try_for_each(Process::check)
    }

    /// Restarts the programs, such as the scheduler, that have ended because the API server was away.
    pub fn start_ended_programs(&self) -> Result<()> {
        self.controller_manager.lock().iter_mut().try_for_each(Process::start_again)?;
        self.others.lock().iter_mut().try_for_each(Process::start_again)
    }
}
