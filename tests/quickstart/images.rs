//! The registry on loopback, with what the page needs: the chart and the daemon's image as a release publishes them, and the
//! public image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cluster::registry::Registry;

use crate::documents::project;

/// Where it listens, in a network of its own.
const ADDRESS: &str = "127.0.0.1:5000";
/// Whose registry it is, in the place of OWNER.
pub const OWNER: &str = "owner";
/// The public image, which is made here of Debian's busybox: the same program.
const PUBLIC: &str = "library/busybox:1.37";

/// Starts the registry and pushes everything.
pub fn registry(dir: &Path) -> Registry {
    let registry = Registry::start(ADDRESS).unwrap_or_else(|error| panic!("the registry: {error:#}"));
    let version = env!("CARGO_PKG_VERSION");
    let image = std::env::var("CROWNLABS_IMAGE").expect("CROWNLABS_IMAGE, the folder of the daemon's image");
    push(&format!("dir:{image}"), &format!("{OWNER}/crownlabs/crownlabs:{version}"));
    push(&busybox(dir), PUBLIC);
    chart(dir);
    registry
}

/// Copies an image into the registry.
fn push(from: &str, name: &str) {
    let id = run(Command::new("buildah").args(["pull", "--quiet", from]));
    let to = format!("docker://{ADDRESS}/{name}");
    run(Command::new("buildah").args(["push", "--quiet", "--tls-verify=false", id.trim(), &to]));
    run(Command::new("buildah").args(["rmi", "--force", id.trim()]));
}

/// Makes an image with busybox and a shell as its command. Returns where it is.
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

/// Pushes the chart, which names the images of that registry.
fn chart(dir: &Path) {
    let copy = dir.join("crownlabs");
    run(Command::new("cp").args(["-rL", "manifests/chart"]).arg(&copy).current_dir(project()));
    let values = copy.join("values.yaml");
    let text = fs::read_to_string(&values).expect("the values");
    let images = format!("repository: ghcr.io/{OWNER}/crownlabs/");
    fs::write(&values, text.replace("repository: crownlabs/", &images)).expect("written");
    run(Command::new(helm()).arg("package").arg(&copy).arg("-d").arg(dir));
    let archive = dir.join(format!("crownlabs-{}.tgz", env!("CARGO_PKG_VERSION")));
    let to = format!("oci://{ADDRESS}/{OWNER}/crownlabs/charts");
    run(Command::new(helm()).arg("push").arg(archive).args(["--plain-http", &to]));
}

/// The path of helm, which `make ship-test` has built.
pub fn helm() -> PathBuf {
    std::env::var("HELM").expect("HELM, the path of helm").into()
}

/// Runs a program, and returns what it prints. Panics when it fails.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}
