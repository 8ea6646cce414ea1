//! `make demo`: a control plane, the daemon, and an Instance of each type, on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it ends by a panic")]

mod automation;
mod bastion;
mod dashboard;
mod exam;
mod images;
mod machines;
mod metrics;
mod node;
mod parts;
mod people;
mod pods;
mod program;
mod storage;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cluster::keycloak::KeycloakServer;
use cluster::processes::{Process, tail};
use cluster::{Cluster, Options};
use dashboard::Dashboard;
use parts::Parts;
use program::{Build, program};
use serde_json::Value;

/// The Instance that is stopped when all are ready.
const STOPPED: &str = "notebook-1";
/// The Instance that is deleted then.
const DELETED: &str = "wireshark-1";
/// The Instance with ports on a public address.
const EXPOSED: &str = "server-2";
/// The namespace of these Instances.
const NAMESPACE: &str = "tenant-ada-rossi";
/// The longest time that each step may take.
const PATIENCE: Duration = Duration::from_mins(2);

fn main() -> Result<()> {
    let detach = std::env::args().any(|argument| argument == "--detach");
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let build = Build::of_arguments();
    // After Ctrl-C everything is stopped in order, at any point of the demo.
    let interrupted = interruption()?;
    let keycloak = people::keycloak()?;
    let dashboard = Dashboard::start(keycloak.as_ref())?;
    println!("starting a Kubernetes control plane …");
    // KubeVirt is simulated: only the daemon and the stand-in write its objects, and Go is not needed.
    let crds = files(&root.join("manifests/crds"))?;
    let issuers = dashboard.iter().map(Dashboard::issuer).collect();
    let cluster = Cluster::start(Options { crds, schemas: false, issuers, ..Options::default() })?;
    let mut parts = Parts::start(cluster.dir(), keycloak, dashboard)?;
    let config = people::config(cluster.dir(), &root.join("config/demo.yaml"), &parts)?;
    if let Err(error) = build.wait() {
        println!("\nstopping");
        return if interrupted_already() { Ok(()) } else { Err(error) };
    }
    let daemon = RefCell::new(Daemon::start(&cluster, root, &config)?);
    println!("the daemon runs; its log is {}\n", cluster.dir().join("daemon.log").display());
    let show = || {
        daemon.borrow_mut().0.check()?;
        show(&cluster)
    };
    let result =
        scenario(&cluster, root, parts.keycloak.as_ref(), &show).and_then(|()| parts.show(&cluster, root));
    if result.is_err() && interrupted_already() {
        println!("\nstopping");
        return Ok(());
    }
    if let Err(error) = &result {
        eprintln!("\nthe demo failed: {error:#}\n{}", tail(&cluster.dir().join("daemon.log"), 20));
    }
    if detach || result.is_err() {
        return result;
    }
    explain(&cluster, &parts);
    interrupted.recv().context("Ctrl-C")?;
    println!("\nstopping");
    Ok(())
}

/// Says what to try with the cluster as long as it runs.
fn explain(cluster: &Cluster, parts: &Parts) {
    println!("\nThe cluster stays up until Ctrl-C. In another terminal:\n");
    println!("  export KUBECONFIG={}", cluster.admin_kubeconfig().display());
    println!("  kubectl get instances -n {NAMESPACE} -o wide");
    println!(
        "  kubectl patch instance -n {NAMESPACE} {STOPPED} --type=merge -p '{{\"spec\":{{\"running\":true}}}}'"
    );
    println!("  kubectl describe instancesnapshots -n {NAMESPACE}");
    println!("  kubectl get tenants,workspaces\n");
    if let Some(server) = &parts.keycloak {
        println!("Keycloak is at {}", server.url());
    }
    if parts.dashboard.is_some() {
        Dashboard::explain();
    }
    println!("kubectl is {}", cluster.kubectl().get_program().to_string_lossy());
}

/// Whether Ctrl-C was typed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C was typed.
fn interrupted_already() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Starts a thread that waits for Ctrl-C, and returns a receiver that gets a message then.
fn interruption() -> Result<mpsc::Receiver<()>> {
    let (typed, interrupted) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            INTERRUPTED.store(true, Ordering::SeqCst);
            let _ = typed.send(());
        }
    });
    Ok(interrupted)
}

/// Applies the samples and waits for them, stops an Instance and deletes another, then shows storage and quotas.
fn scenario(
    cluster: &Cluster,
    root: &Path,
    keycloak: Option<&KeycloakServer>,
    show: &dyn Fn() -> Result<Vec<(String, String)>>,
) -> Result<()> {
    let sample = |name: &str| root.join("manifests/samples").join(name);
    cluster.apply_files(&[&sample("10-people.yaml")])?;
    people::log_in(cluster, keycloak, "ada.rossi")?;
    println!();
    let files =
        ["20-templates.yaml", "30-instances.yaml", "optional/local-vm.yaml", "optional/public-exposure.yaml"];
    let files = files.map(sample);
    cluster.apply_files(&files.each_ref().map(PathBuf::as_path))?;
    let all = |phase: &'static str| {
        move |rows: &[(String, String)]| !rows.is_empty() && rows.iter().all(|row| row.1 == phase)
    };
    watch("all are ready", show, all("Ready"))?;
    exposed(cluster)?;
    println!("\nstopping {STOPPED} and deleting {DELETED} …\n");
    let patch = r#"{"spec": {"running": false}}"#;
    run(cluster, &["patch", "instance", "-n", NAMESPACE, STOPPED, "--type=merge", "-p", patch])?;
    run(cluster, &["delete", "instance", "-n", NAMESPACE, DELETED])?;
    watch("one is off and one is gone", show, |rows| {
        let off = rows.iter().any(|(name, phase)| name == STOPPED && phase == "Off");
        off && !rows.iter().any(|(name, _)| name == DELETED)
    })?;
    storage::show(cluster, &[&sample("40-storage.yaml"), &sample("optional/snapshot.yaml")])?;
    people::quota(cluster, keycloak)
}

/// Waits until the ports of [`EXPOSED`] have a public address, and prints it.
fn exposed(cluster: &Cluster) -> Result<()> {
    let begin = Instant::now();
    loop {
        anyhow::ensure!(!interrupted_already(), "interrupted");
        let object = cluster.get("instances.crownlabs.polito.it", NAMESPACE, EXPOSED)?.context(EXPOSED)?;
        let exposure = &object["status"]["publicExposure"];
        if exposure["phase"] == "Ready" {
            let address = exposure["externalIP"].as_str().unwrap_or_default();
            for port in exposure["ports"].as_array().into_iter().flatten() {
                let name = port["name"].as_str().unwrap_or_default();
                println!("{EXPOSED} is exposed: {name} at {address}:{}", port["port"]);
            }
            return Ok(());
        }
        anyhow::ensure!(begin.elapsed() < PATIENCE, "{EXPOSED} is not exposed: {exposure}");
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// Prints the table with `show` whenever it changes, until `reached` is true of its rows.
fn watch(
    what: &str,
    show: &dyn Fn() -> Result<Vec<(String, String)>>,
    reached: impl Fn(&[(String, String)]) -> bool,
) -> Result<()> {
    let begin = Instant::now();
    loop {
        anyhow::ensure!(!interrupted_already(), "interrupted");
        if reached(&show()?) {
            println!("{what}, after {:.1} s", begin.elapsed().as_secs_f64());
            return Ok(());
        }
        anyhow::ensure!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// Prints the table of Instances in place of the last one. Returns their names and phases.
fn show(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    thread_local! {
        static LAST: RefCell<String> = const { RefCell::new(String::new()) };
    }
    let output =
        cluster.kubectl().args(["get", "instances.crownlabs.polito.it", "-A", "-o", "json"]).output()?;
    let list: Value = serde_json::from_slice(&output.stdout).context("kubectl get instances")?;
    let mut rows = Vec::new();
    let mut table = format!("{:<10}{:<18}{:<24}{:<8}URL\n", "KIND", "NAME", "PHASE", "AGE");
    for object in list["items"].as_array().into_iter().flatten() {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let created: Option<jiff::Timestamp> = text("/metadata/creationTimestamp").parse().ok();
        let age = created.map_or(0, |created| now().as_second() - created.as_second());
        let (name, phase) = (text("/metadata/name"), text("/status/phase"));
        let (age, url) = (format!("{age}s"), text("/status/environments/0/url"));
        let _ = writeln!(table, "{:<10}{name:<18}{phase:<24}{age:<8}{url}", "Instance");
        rows.push((name, phase));
    }
    LAST.with_borrow_mut(|last| {
        // In a terminal the table is printed over the last one; elsewhere it is printed when a phase changes.
        let phases = format!("{rows:?}");
        if std::io::stdout().is_terminal() {
            let up = last.lines().count();
            if up > 0 {
                print!("\x1b[{up}A\x1b[J");
            }
            print!("{table}");
            *last = table;
        } else if *last != phases {
            println!("{table}");
            *last = phases;
        }
    });
    Ok(rows)
}

#[expect(clippy::disallowed_methods, reason = "the table shows ages, as kubectl does")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Runs `kubectl` with these arguments.
fn run(cluster: &Cluster, arguments: &[&str]) -> Result<()> {
    let output = cluster.kubectl().args(arguments).output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The files of a folder, sorted by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    Ok(files)
}

/// The daemon with its own service account. It is stopped when this is dropped.
struct Daemon(Process);

impl Daemon {
    fn start(cluster: &Cluster, root: &Path, config: &Path) -> Result<Self> {
        let manifests = ["00-namespace.yaml", "10-rbac.yaml", "11-cluster-roles.yaml"];
        let manifests = manifests.map(|name| root.join("manifests").join(name));
        cluster.apply_files(&manifests.each_ref().map(PathBuf::as_path))?;
        let kubeconfig = cluster.service_account_kubeconfig("crownlabs-system", "crownlabs")?;
        let argument = |path: &Path| path.display().to_string();
        let arguments = [
            "run".to_owned(),
            "--config".to_owned(),
            argument(config),
            "--kubeconfig".to_owned(),
            argument(&kubeconfig),
        ];
        let process = Process::start("the daemon", program()?, &arguments, cluster.dir().join("daemon.log"))?;
        Ok(Self(process))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.terminate();
    }
}
