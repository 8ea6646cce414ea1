//! A separate cache for `programs.sh`, with archives of programs that only print their source, and a `go` that builds
//! such programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::server::Answer;

/// The programs of the control plane.
pub const ALL: [&str; 6] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "etcd", "kwok"];
/// The content of programs from archives and from modules.
pub const ARCHIVE: &str = "from an archive";
pub const MODULE: &str = "from a module";

/// Takes the place of Go: `go build` writes programs according to variables.
const GO: &str = r#"#!/bin/sh
[ "$1" = build ] || { echo go1.99.0; exit; }
echo "$PWD" >>"$CROWNLABS_CACHE/../builds"
[ -z "$GO_FAILS" ] || { echo "no such module"; exit 1; }
while [ "$1" != -o ]; do shift; done
output=$2
shift 2
for package; do
	case $output in
	*/) program=$output${package##*/} ;;
	*) program=$output ;;
	esac
	printf 'from a module' >"$program"
	chmod +x "$program"
done
[ -z "$GO_WAITS" ] || { touch "$CROWNLABS_CACHE/../waits"; sleep 60; }
"#;

/// A folder with a cache and programs.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let go = folder.path().join("bin/go");
        fs::create_dir(folder.path().join("bin")).expect("created");
        fs::write(&go, GO).expect("written");
        fs::set_permissions(&go, Permissions::from_mode(0o755)).expect("a program");
        Self(folder)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `programs.sh` with this cache, these programs and the server of archives.
    pub fn script(&self, archives: &str, arguments: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut script =
            Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/programs.sh"));
        script
            .args(arguments)
            .env("CROWNLABS_CACHE", self.path("cache"))
            .env("CROWNLABS_ARCHIVES", archives)
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("no_proxy", "127.0.0.1")
            .env_remove("KUBEBUILDER_ASSETS")
            .env_remove("OLDEST")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        script
    }

    /// Runs it to its end.
    pub fn run(&self, archives: &str, arguments: &[&str]) -> Said {
        Said::of(&self.script(archives, arguments).output().expect("it runs"))
    }

    /// The module folders that Go has built in.
    pub fn builds(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("builds")).unwrap_or_default();
        text.lines().map(|line| line.rsplit('/').next().unwrap_or_default().to_owned()).collect()
    }

    /// The content of the cache, without the hashes.
    pub fn cached(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache")).into_iter().flatten();
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names
            .map(|name| name.rsplit_once('-').map_or(name.clone(), |(name, _)| name.to_owned()))
            .collect();
        names.sort();
        names
    }
}

/// The output of the script.
pub struct Said {
    pub is_success: bool,
    pub output: String,
    pub progress: String,
}

impl Said {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            is_success: output.status.success(),
            output: text(&output.stdout),
            progress: text(&output.stderr),
        }
    }

    /// The content of a program. It must be executable.
    pub fn content(&self, name: &str) -> String {
        assert!(self.is_success, "{}{}", self.output, self.progress);
        let path = self.output.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        let path = path.unwrap_or_else(|| panic!("{name} in {}", self.output));
        let mode = fs::metadata(path).unwrap_or_else(|error| panic!("{path}: {error}")).permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{path}");
        fs::read_to_string(path).expect("text")
    }
}

/// The archives of all programs as their projects release them, with their checksums.
pub fn releases() -> BTreeMap<String, Answer> {
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let (kubernetes, etcd, kwok) = (
        version(include_str!("../cluster/go/kubernetes/go.mod"), "k8s.io/kubernetes"),
        version(include_str!("../cluster/go/etcd/go.mod"), "go.etcd.io/etcd/server/v3"),
        version(include_str!("../cluster/go/kwok/go.mod"), "sigs.k8s.io/kwok"),
    );
    let mut files = BTreeMap::new();
    let mut file = |path: String, content: &[u8]| {
        files.insert(path, Answer::Whole(content.to_vec()));
    };
    for name in &ALL[..4] {
        let path = format!("/dl.k8s.io/{kubernetes}/bin/linux/{machine}/{name}");
        file(format!("{path}.sha256"), sum(ARCHIVE.as_bytes()).as_bytes());
        file(path, ARCHIVE.as_bytes());
    }
    let name = format!("etcd-{etcd}-linux-{machine}");
    let path = format!("/github.com/etcd-io/etcd/releases/download/{etcd}");
    let archive = etcd_archive(&name);
    let others = format!("{}  etcd-{etcd}-darwin-{machine}.zip\n", "0".repeat(64));
    file(format!("{path}/SHA256SUMS"), format!("{others}{}  {name}.tar.gz\n", sum(&archive)).as_bytes());
    file(format!("{path}/{name}.tar.gz"), &archive);
    let name = format!("kwok-linux-{machine}");
    let asset = |name: &str, digest: &str| {
        format!(
            r#"{{"url": "u", "name": "{name}", "uploader": {{"login": "x"}}, "digest": "sha256:{digest}", "size": 1}}"#
        )
    };
    let (wrong, right) = (asset("kwokctl", &"0".repeat(64)), asset(&name, &sum(ARCHIVE.as_bytes())));
    let release =
        format!(r#"{{"name": "{kwok}", "assets": [{wrong}, {right}], "body": "Digests, and \"name\": no"}}"#);
    file(format!("/api.github.com/repos/kubernetes-sigs/kwok/releases/tags/{kwok}"), release.as_bytes());
    file(format!("/github.com/kubernetes-sigs/kwok/releases/download/{kwok}/{name}"), ARCHIVE.as_bytes());
    files
}

/// The version of a module that a go.mod requires.
fn version(text: &str, module: &str) -> String {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(" v"));
    let line = line.unwrap_or_else(|| panic!("{module} is required"));
    format!("v{}", line.split(' ').next().unwrap_or_default())
}

/// etcd's archive: the program in a folder with the name of the release.
fn etcd_archive(release: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join(release)).expect("created");
    fs::write(folder.path().join(release).join("etcd"), ARCHIVE).expect("written");
    let made = Command::new("tar").args(["-czf", "-", "-C"]).arg(folder.path()).arg(release).output();
    made.expect("tar").stdout
}

/// SHA-256 in hexadecimal.
fn sum(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
