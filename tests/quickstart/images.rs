//! The registry on loopback, with the images of the page: the chart and the daemon's image, built by the programs of a
//! release, and the public image.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use cluster::registry::Registry;

use crate::documents::project;

/// The address of the registry, in a separate network.
const ADDRESS: &str = "127.0.0.1:5000";
/// The version of the release.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The owner of the registry, in place of OWNER.
pub const OWNER: &str = "owner";
/// The public image, which is built here from Debian's busybox: the same program.
const PUBLIC: &str = "library/busybox:1.37";

/// Starts the registry and pushes everything.
pub fn registry(dir: &Path) -> Registry {
    let registry = Registry::start(ADDRESS).unwrap_or_else(|error| panic!("the registry: {error:#}"));
    let digests = daemon(dir);
    chart(dir, &digests);
    push(&busybox(dir), PUBLIC);
    registry
}

/// Builds and pushes the image of the daemon, only for the architecture of this machine. Returns its name and digest.
fn daemon(dir: &Path) -> String {
    let binary = std::env::var("CROWNLABS_BINARY").expect("CROWNLABS_BINARY, the path of the static binary");
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let folder = dir.join(format!("crownlabs-{VERSION}-linux-{architecture}"));
    fs::create_dir(&folder).expect("a folder");
    fs::copy(binary, folder.join("crownlabs")).expect("the static binary");
    let registry = format!("{ADDRESS}/{OWNER}/crownlabs");
    let mut pushed = Command::new(project().join("images/push.sh"));
    pushed.args([&registry, VERSION, "crownlabs"]).current_dir(dir).env("TLS_VERIFY", "false");
    let digests = run(&mut pushed);
    let name = format!("{registry}/crownlabs:{VERSION}");
    run(Command::new("buildah").args(["manifest", "rm", &name]));
    run(Command::new("buildah").args(["rmi", &format!("{name}-{architecture}")]));
    digests
}

/// Copies an image into the registry.
fn push(from: &str, name: &str) {
    let id = run(Command::new("buildah").args(["pull", "--quiet", from]));
    let to = format!("docker://{ADDRESS}/{name}");
    run(Command::new("buildah").args(["push", "--quiet", "--tls-verify=false", id.trim(), &to]));
    run(Command::new("buildah").args(["rmi", "--force", id.trim()]));
}

/// Builds an image with busybox and a shell as its command. Returns its path.
fn busybox(dir: &Path) -> String {
    let root = dir.join("busybox");
    let bin = root.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let program = bin.join("busybox");
    fs::copy("/bin/busybox", &program).expect("Debian's busybox-static");
    // In a folder without libraries: it must be static.
    let list = run(Command::new("chroot").arg(&root).args(["/bin/busybox", "--list"]));
    for name in list.lines().filter(|name| *name != "busybox") {
        std::os::unix::fs::symlink("busybox", bin.join(name)).expect("a link");
    }
    fs::write(root.join("Dockerfile"), "FROM scratch\nCOPY bin /bin/\nCMD [\"sh\"]\n").expect("written");
    let built = format!("oci-archive:{}", dir.join("busybox.tar").display());
    let tag = "localhost/crownlabs-quickstart-busybox";
    run(Command::new("buildah").args(["build", "--quiet", "--format=oci", "--tag", tag]).arg(&root));
    run(Command::new("buildah").args(["push", "--quiet", tag, &built]));
    run(Command::new("buildah").args(["rmi", "--force", tag]));
    built
}

/// Pushes the chart, with these digests of the images, as in a release.
fn chart(dir: &Path, digests: &str) {
    let copy = dir.join("crownlabs");
    run(Command::new("cp").args(["-rL", "manifests/chart"]).arg(&copy).current_dir(project()));
    let file = dir.join("digests");
    fs::write(&file, digests).expect("written");
    let mut pin = Command::new(project().join("images/pin.sh"));
    pin.arg("digests").arg(&copy).arg(format!("ghcr.io/{OWNER}/crownlabs"));
    run(pin.stdin(File::open(&file).expect("the digests")));
    run(Command::new(helm()).arg("package").arg(&copy).arg("-d").arg(dir));
    let archive = dir.join(format!("crownlabs-{VERSION}.tgz"));
    let to = format!("oci://{ADDRESS}/{OWNER}/crownlabs/charts");
    run(Command::new(helm()).arg("push").arg(archive).args(["--plain-http", &to]));
}

/// The path of helm, which `make ship-test` has built.
pub fn helm() -> PathBuf {
    std::env::var("HELM").expect("HELM, the path of helm").into()
}

/// Runs a program, and returns its output. Panics when it fails.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}
