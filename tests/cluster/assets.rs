//! The programs of the control plane, which `programs.sh` finds or builds, and the cache of the builds.
//!
//! Builds are kept in a cache folder, one sub-folder per module, named after a hash of its sources. With a file
//! lock, test processes that start at the same time build only once.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};

use super::processes::tail;

/// Whether the control plane has the oldest supported Kubernetes: `OLDEST` in the environment, as for `programs.sh`.
pub fn is_oldest() -> bool {
    env::var_os("OLDEST").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The version that the API server reports: the version of its Go module.
pub fn kubernetes_version() -> &'static str {
    let newest = include_str!("go/kubernetes/go.mod");
    let requirement = if is_oldest() { include_str!("go/kubernetes-oldest/go.mod") } else { newest }
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    requirement.and_then(|rest| rest.split(' ').next()).unwrap_or_default()
}

/// The paths of the programs.
#[derive(Debug, Clone)]
pub struct Assets {
    /// The database of the API server.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// Garbage collection, Deployments, Jobs, quotas, tokens.
    pub kube_controller_manager: PathBuf,
    /// Places pods on nodes.
    pub kube_scheduler: PathBuf,
    /// The command line client.
    pub kubectl: PathBuf,
    /// Simulates nodes and pods.
    pub kwok: PathBuf,
}

impl Assets {
    /// Finds every program, and builds the programs that are not in the cache yet.
    ///
    /// The error names what is missing: Go, its version, or the module that did not build.
    pub fn get() -> Result<Self> {
        let names =
            ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"];
        let mut found = programs(&names)?;
        let [etcd, kube_apiserver, kube_controller_manager, kube_scheduler, kubectl, kwok] =
            names.map(|name| found.remove(name).unwrap_or_default());
        Ok(Self { etcd, kube_apiserver, kube_controller_manager, kube_scheduler, kubectl, kwok })
    }
}

/// The path of oauth2-proxy, which is built if it is not in the cache.
pub fn oauth2_proxy() -> Result<PathBuf> {
    programs(&["oauth2-proxy"])?.remove("oauth2-proxy").context("programs.sh names no oauth2-proxy")
}

/// The path of kube-router, which is built if it is not in the cache.
pub fn kube_router() -> Result<PathBuf> {
    programs(&["kube-router"])?.remove("kube-router").context("programs.sh names no kube-router")
}

/// The path of the kubelet, which is built if it is not in the cache.
pub fn kubelet() -> Result<PathBuf> {
    programs(&["kubelet"])?.remove("kubelet").context("programs.sh names no kubelet")
}

/// The paths of programs by their names. Missing programs are built, with the progress on standard error.
fn programs(names: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    let script = source_dir().join("programs.sh");
    // Not `output()`, which would hide the progress from the terminal.
    let child = Command::new(&script).args(names).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let output = child.and_then(std::process::Child::wait_with_output);
    let output = output.with_context(|| format!("running {}", script.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{}", text.trim());
    }
    let found: BTreeMap<String, PathBuf> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, path)| (name.to_owned(), PathBuf::from(path)))
        .collect();
    let missing: Vec<_> = names.iter().filter(|name| !found.contains_key(**name)).collect();
    if missing.is_empty() { Ok(found) } else { bail!("programs.sh does not name {missing:?}: {text}") }
}

/// The cache folder: `$CROWNLABS_CACHE`, else `$XDG_CACHE_HOME/crownlabs`, else `~/.cache/crownlabs`.
pub fn cache_dir() -> Result<PathBuf> {
    let from = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = from("CROWNLABS_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|dir| dir.join("crownlabs")))
        .or_else(|| from("HOME").map(|dir| dir.join(".cache/crownlabs")))
        .ok_or_else(|| anyhow!("no folder for the cache of the test cluster: set CROWNLABS_CACHE"))?;
    fs::create_dir_all(&dir).with_context(|| format!("creating the cache folder {}", dir.display()))?;
    Ok(dir)
}

/// The folder of this module tree in the source checkout.
pub fn source_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files that determine the build of a Go module, as one text for the hash.
pub fn module_inputs(folder: &str) -> Result<String> {
    let dir = source_dir().join("go").join(folder);
    ["go.mod", "go.sum"].iter().try_fold(String::new(), |text, name| {
        let path = dir.join(name);
        Ok(text + &fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?)
    })
}

/// Returns the folder `<cache>/<name>-<hash of inputs>`; when it does not exist, `fill` fills it.
///
/// `fill` writes into a temporary folder that is renamed at the end, under a lock shared by all processes.
pub fn cached(
    cache: &Path,
    name: &str,
    inputs: &str,
    duration: &str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let target = cache.join(format!("{name}-{:016x}", fnv1a(inputs.as_bytes())));
    if target.is_dir() {
        return Ok(target);
    }
    let lock_path = cache.join("build.lock");
    let lock = File::create(&lock_path).with_context(|| format!("creating {}", lock_path.display()))?;
    lock.lock().with_context(|| format!("waiting for another build, {}", lock_path.display()))?;
    if target.is_dir() {
        return Ok(target);
    }
    print_line(&format!(
        "test cluster: building {name} once (about {duration} with empty caches) into {}",
        target.display()
    ));
    let scratch = tempfile::Builder::new().prefix("building-").tempdir_in(cache)?;
    fill(scratch.path()).with_context(|| format!("building {name} for the test cluster"))?;
    let scratch = scratch.keep();
    fs::rename(&scratch, &target).with_context(|| format!("moving the build to {}", target.display()))?;
    Ok(target)
}

/// Writes a line to the terminal even where the test harness captures `eprintln!`.
fn print_line(line: &str) {
    // Progress only: a closed stderr must not fail the build.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The command `go` in the folder of a module. Fails when Go is not installed or too old.
pub fn go(folder: &str) -> Result<Command> {
    let dir = source_dir().join("go").join(folder);
    let go_mod = fs::read_to_string(dir.join("go.mod"))?;
    let wanted = go_mod.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1.26.0").trim();
    let get = "install it from https://go.dev/dl and put it on the PATH";
    let output =
        Command::new("go").args(["env", "GOVERSION"]).current_dir(&dir).output().map_err(|error| {
            anyhow!(
                "the test cluster is built with Go {wanted} or newer, and `go` does not run ({error}): {get}"
            )
        })?;
    let found = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("go").to_owned();
    if !output.status.success() || version(&found) < version(wanted) {
        let reason = String::from_utf8_lossy(&output.stderr);
        bail!("the test cluster is built with Go {wanted} or newer, found {found}{}: {get}", reason.trim());
    }
    let mut command = Command::new("go");
    command.current_dir(dir);
    // The flags of programs.sh: what has been compiled for the control plane is not compiled again.
    command.envs([("CGO_ENABLED", "0"), ("GOFLAGS", "-trimpath -gcflags=all=-dwarf=false")]);
    Ok(command)
}

/// The parts of a version such as `1.26.8` as numbers, which can be compared. A part that is not a number is zero.
fn version(text: &str) -> Vec<u32> {
    text.split(['.', '-', ' ']).take(3).map(|part| part.parse().unwrap_or(0)).collect()
}

/// Runs a command with its output in `log`; the error contains the end of that log.
pub fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let file = File::options().create(true).append(true).open(log)?;
    let status = command.stdout(file.try_clone()?).stderr(file).status()?;
    if !status.success() {
        let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        let program = command.get_program().to_string_lossy();
        bail!("`{program} {}` failed ({status}):\n{}", arguments.join(" "), tail(log, 20));
    }
    Ok(())
}

/// FNV-1a, 64 bits: the standard hasher may change with the Rust release, and the names in the cache must not.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
