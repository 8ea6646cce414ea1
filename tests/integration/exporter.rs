//! The path of a virtual machine's disk into a registry and back: with the exporter's script, the command of
//! the snapshot's Job (Buildah, as an ordinary user) and a real registry.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::reserved_port;
use cluster::registry::Registry;

const MEBIBYTE: usize = 1024 * 1024;
/// The id of the user `nobody`.
const NOBODY: u32 = 65_534;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A temporary folder that every user may read.
fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    folder
}

/// Creates a sparse disk image with random data at its beginning, in its middle and at its end.
fn disk(folder: &Path) -> PathBuf {
    let path = folder.join("disk.img");
    let mut file = fs::File::create(&path).expect("a file");
    file.set_len(16 * MEBIBYTE as u64).expect("the disk is not full");
    let mut noise = vec![0; MEBIBYTE];
    fs::File::open("/dev/urandom").expect("Linux").read_exact(&mut noise).expect("random data");
    for begin in [0, 7 * MEBIBYTE + 512, 15 * MEBIBYTE] {
        file.seek(SeekFrom::Start(begin as u64)).expect("within");
        file.write_all(&noise).expect("the disk is not full");
    }
    path
}

/// Runs the exporter's script.
fn export(arguments: &[&Path]) -> Output {
    let script = root().join("images/img-exporter/exporter.sh");
    Command::new("sh").arg(script).args(arguments).output().expect("a shell")
}

/// The arguments for the folder of the disk and the folder of the image.
fn from_to<'a>(disks: &'a Path, out: &'a Path) -> [&'a Path; 4] {
    [Path::new("--img-dir"), disks, Path::new("--out-dir"), out]
}

/// The Job that the daemon creates for a snapshot when Buildah pushes the image.
fn job(folder: &Path, registry: &str) -> Value {
    let config = folder.join("config.yaml");
    let text = format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
controllers: {{snapshot: {{vmRegistry: \"{registry}\", vmRegistrySecret: login, pusher: buildah}}}}
"
    );
    fs::write(&config, text).expect("written");
    let objects = folder.join("objects.yaml");
    let text = "apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: vm, namespace: workspace-tea}
spec: {environmentList: [{name: main, environmentType: VirtualMachine, persistent: true}]}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {name: box, namespace: tenant-ada}
spec:
  running: false
  template.crownlabs.polito.it/TemplateRef: {name: vm, namespace: workspace-tea}
  tenant.crownlabs.polito.it/TenantRef: {name: ada}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: InstanceSnapshot
metadata: {name: first, namespace: tenant-ada}
spec: {instanceRef: {name: box}, imageName: my-image}
";
    fs::write(&objects, text).expect("written");
    let config = crownlabs::Config::load(&config).expect("a configuration");
    let output = crownlabs::plan(&[objects], &config, crownlabs::Surroundings::default()).expect("a plan");
    let job = output.objects.into_iter().find(|object| object["kind"] == "Job");
    job.unwrap_or_else(|| panic!("no Job: {:?}", output.messages))
}

/// Runs a container of a pod as a process, with its command and its environment; `mounts` maps volumes to folders, and
/// `more` are more variables.
fn run(container: &Value, mounts: &BTreeMap<&str, &Path>, more: &[(&str, &Path)]) -> Output {
    let mut folders: Vec<(String, String)> = Vec::new();
    for mount in container["volumeMounts"].as_array().into_iter().flatten() {
        let folder = mounts[mount["name"].as_str().expect("a name")];
        let inside = mount["mountPath"].as_str().expect("a path");
        folders.push((inside.to_owned(), folder.display().to_string()));
    }
    let with_folders = |text: &Value| {
        let text = text.as_str().expect("a text").to_owned();
        folders.iter().fold(text, |text, (inside, outside)| text.replace(inside, outside))
    };
    let list = |key: &str| -> Vec<String> {
        container[key].as_array().into_iter().flatten().map(&with_folders).collect()
    };
    let command = [list("command"), list("args")].concat();
    let mut process = if is_root() {
        let mut process = Command::new("setpriv");
        process.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()]);
        process.args(command);
        process
    } else {
        let mut process = Command::new(&command[0]);
        process.args(&command[1..]);
        process
    };
    process.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for variable in container["env"].as_array().into_iter().flatten() {
        process.env(variable["name"].as_str().expect("a name"), with_folders(&variable["value"]));
    }
    process.envs(more.iter().copied());
    process.output().expect("it starts")
}

/// Whether the tests run as root.
fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id");
    output.stdout.trim_ascii() == b"0"
}

fn assert_success(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// A home folder for an ordinary user, configured for a registry without TLS.
fn home(registry: &str) -> TempDir {
    let home = folder();
    let insecure = format!("[[registry]]\nlocation = \"{registry}\"\ninsecure = true\n");
    fs::write(home.path().join("registries.conf"), insecure).expect("written");
    if is_root() {
        chown(home.path(), Some(NOBODY), Some(NOBODY)).expect("we are root");
    }
    home
}

#[test]
fn a_disk_survives_the_round_trip_through_an_image_bit_by_bit() {
    let (data, workspace, login) = (folder(), folder(), folder());
    let disk = disk(data.path());
    assert_success(&export(&from_to(data.path(), workspace.path())));
    let dockerfile = fs::read_to_string(workspace.path().join("Dockerfile")).expect("a Dockerfile");
    assert_eq!(dockerfile, "FROM scratch\nADD vm-snapshot.qcow2 /disk/\n");

    let registry = Registry::start(&format!("127.0.0.1:{}", reserved_port())).expect("a registry");
    let job = job(data.path(), &format!("{}/vm", registry.address()));
    let pod = &job["spec"]["template"]["spec"];
    let pusher = &pod["containers"][0];
    let image = pusher["args"][1].as_str().expect("an image");
    assert!(image.starts_with(&format!("{}/vm/ada/my-image:2", registry.address())), "{image}");
    // The file that the Secret of the registry is mounted as.
    fs::write(login.path().join("config.json"), r#"{"auths": {}}"#).expect("written");
    let mounts = BTreeMap::from([("tmp-vol", workspace.path()), ("kaniko-secret", login.path())]);
    let builder = home(registry.address());
    let registries = builder.path().join("registries.conf");
    let places = [
        ("HOME", builder.path()),
        ("XDG_RUNTIME_DIR", builder.path()),
        ("CONTAINERS_REGISTRIES_CONF", registries.as_path()),
    ];
    assert_success(&run(pusher, &mounts, &places));

    // Another user pulls it, without the image in their storage.
    let puller = home(registry.address());
    let out = puller.path().join("out");
    let pull = serde_json::json!({
        "command": ["sh", "-euc", "buildah pull \"$1\" && buildah push \"$1\" \"dir:$2\"", "pull", image, out],
        "env": pusher["env"],
        "volumeMounts": pusher["volumeMounts"],
    });
    let registries = puller.path().join("registries.conf");
    let places = [
        ("HOME", puller.path()),
        ("XDG_RUNTIME_DIR", puller.path()),
        ("CONTAINERS_REGISTRIES_CONF", registries.as_path()),
    ];
    assert_success(&run(&pull, &mounts, &places));
    let manifest = fs::read_to_string(out.join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    let layers = manifest["layers"].as_array().expect("layers");
    assert_eq!(layers.len(), 1, "one file, one layer: {manifest}");
    let layer = layers[0]["digest"].as_str().expect("a digest").trim_start_matches("sha256:");
    let unpacked = folder();
    let tar = Command::new("tar").arg("-xf").arg(out.join(layer)).arg("-C").arg(unpacked.path()).output();
    assert_success(&tar.expect("tar"));
    let image = unpacked.path().join("disk/vm-snapshot.qcow2");
    let mode = fs::metadata(&image).expect("the path that KubeVirt reads").permissions().mode();
    assert_eq!(mode & 0o444, 0o444, "QEMU runs as another user");
    let raw = unpacked.path().join("raw");
    let convert = Command::new("qemu-img").args(["convert", "-O", "raw"]).arg(&image).arg(&raw).output();
    assert_success(&convert.expect("qemu-img"));
    assert!(fs::read(raw).expect("a disk") == fs::read(disk).expect("a disk"), "the disks differ");
}

/// Asserts that the exporter has failed with this sentence and left no files that could be taken for an image.
fn assert_refused(output: &Output, out: &Path, sentence: &str) {
    assert_eq!(output.status.code(), Some(1), "{sentence}");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains(&format!("exporter: {sentence}")), "{printed}\nexpected {sentence}");
    let left: Vec<_> = fs::read_dir(out).map(|entries| entries.flatten().collect()).unwrap_or_default();
    assert!(left.is_empty(), "{sentence}: {left:?}");
}

#[test]
fn the_exporter_reports_failures_and_leaves_no_files() {
    let (data, out) = (folder(), folder());
    let out = out.path();
    let missing = export(&from_to(data.path(), out));
    assert_refused(&missing, out, &format!("{} does not exist", data.path().join("disk.img").display()));
    let block = folder();
    fs::create_dir(block.path().join("disk.img")).expect("a folder");
    assert_refused(
        &export(&from_to(block.path(), out)),
        out,
        &format!("{}/disk.img is not a file", block.path().display()),
    );
    let empty = folder();
    fs::write(empty.path().join("disk.img"), "").expect("written");
    assert_refused(
        &export(&from_to(empty.path(), out)),
        out,
        &format!("{}/disk.img is empty", empty.path().display()),
    );
    assert_refused(&export(&[Path::new("--fast")]), out, "unknown argument --fast");
    assert_refused(&export(&[Path::new("-d")]), out, "-d needs a value");

    // A volume that is too small for the image; the files of an earlier try are removed, too.
    let disk = disk(data.path());
    fs::write(out.join("Dockerfile"), "FROM scratch\n").expect("written");
    fs::write(out.join("vm-snapshot.qcow2"), "half of it").expect("written");
    let script = root().join("images/img-exporter/exporter.sh");
    let limited = Command::new("sh")
        .args(["-c", "ulimit -f 2048; exec sh \"$@\"", "limited"])
        .arg(&script)
        .args(from_to(data.path(), out))
        .output();
    assert_refused(&limited.expect("a shell"), out, &format!("{} could not be converted", disk.display()));

    // A running virtual machine: QEMU holds the lock of its disk.
    let mut machine = Command::new("qemu-io")
        .args(["-f", "raw"])
        .arg(&disk)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("qemu-io starts");
    let mut prompt = [0; 8];
    machine.stdin.as_mut().expect("a pipe").write_all(b"write 0 512\n").expect("it reads");
    machine.stdout.as_mut().expect("a pipe").read_exact(&mut prompt).expect("the disk is open");
    assert_refused(
        &export(&from_to(data.path(), out)),
        out,
        &format!("{} could not be converted", disk.display()),
    );
    drop(machine.stdin.take());
    machine.wait().expect("it ends");
    assert_success(&export(&from_to(data.path(), out)));
    // A second run in the same folder.
    assert_success(&export(&from_to(data.path(), out)));
}

/// The images that make builds are the default images of the daemon.
#[test]
fn the_images_that_make_builds_are_the_defaults() {
    let default = Command::new(env!("CARGO_BIN_EXE_crownlabs")).args(["config", "default"]).output();
    let default = String::from_utf8(default.expect("the binary").stdout).expect("text");
    let default: Value = serde_saphyr::from_str(&default).expect("YAML");
    for (target, folder, key) in [
        ("image-exporter", "img-exporter", "/controllers/snapshot/containerExportImg"),
        ("uploader-image", "uploader", "/controllers/submission/uploaderImage"),
    ] {
        // Make may have started the tests, and would pass its variables to the make below.
        let made = Command::new("make")
            .args(["--no-print-directory", "--dry-run", target])
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .current_dir(root())
            .output();
        let made = String::from_utf8(made.expect("make").stdout).expect("text");
        let words: Vec<&str> = made.split_whitespace().collect();
        let ["./images/build.sh", name, image] = words[..] else { panic!("{made}") };
        assert_eq!(name, folder);
        assert!(root().join("images").join(name).join("Dockerfile").exists(), "{name}");
        assert_eq!(default.pointer(key).and_then(Value::as_str), Some(image));
        assert_eq!(image, format!("crownlabs/{folder}:{}", env!("CARGO_PKG_VERSION")));
    }
}
