//! A pod of an installed Deployment: its daemon as a process in the unpacked image, with the environment that the
//! kubelet and the container engine would create from the pod in the API server.

use std::fs::{self, File, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bastion::network::Network;
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::{dns, image};

pub const NAMESPACE: &str = "crownlabs-system";
pub const RELEASE: &str = "crownlabs";
/// The daemon's name for the API server.
pub const SERVER: &str = "kubernetes.default.svc";
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The devices of every container. The daemon needs the ones for random numbers.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/random", "/dev/urandom"];

/// A read-only root, as in a pod, the system's process files, and volumes. Each volume has the options of its mount,
/// its folder, and its path in the pod. The capabilities that `chroot` itself needs stay.
const ENTER: &str = r#"set -e; root=$1 user=$2 capabilities=$3; shift 3
mount --bind "$root" "$root"; mount -t proc proc "$root/proc"; mount -o remount,bind,ro "$root"
while [ "$1" != -- ]; do mount --bind -o "$1" "$2" "$root$3"; shift 3; done; shift
exec setpriv --pdeathsig=KILL --bounding-set="-all,+sys_chroot,+setuid,+setgid$capabilities" --inh-caps=-all --no-new-privs \
    chroot --userspec="$user" "$root" /crownlabs "$@""#;

/// The pod to start, and its network.
pub struct Place<'a> {
    pub namespace: &'a str,
    pub deployment: &'a str,
    /// The name of the pod.
    pub pod: &'a str,
    /// The network of its containers if they are the bastion; without one, they use the network of this machine.
    pub network: Option<&'a Network>,
}

/// The daemon as a pod of the installed Deployment.
pub struct Pod {
    child: Child,
    /// Holds the log, the root and the volumes.
    folder: TempDir,
    /// The labels and the specification of the pod.
    pub template: Value,
    /// The address of its servers.
    pub host: String,
}

fn write(file: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, text).expect("written");
}

/// The members of a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text instead of {value}"))
}

/// The element of a list with this name.
fn named<'a>(values: &'a Value, name: &str) -> &'a Value {
    list(values)
        .iter()
        .find(|value| value["name"] == name)
        .unwrap_or_else(|| panic!("{name} is not in {values}"))
}

/// The token of the account and the other files that the kubelet mounts with it.
fn write_account(lab: &Lab, place: &Place<'_>, spec: &Value, folder: &Path) {
    let token = lab.cluster.token(place.namespace, text(&spec["serviceAccountName"])).expect("a token");
    write(&folder.join("token"), &token);
    write(&folder.join("namespace"), place.namespace);
    fs::copy(lab.cluster.ca_file(), folder.join("ca.crt")).expect("the authority");
}

/// Fills the volume of a ConfigMap, of the account, or of a Secret, which may be created later than the pod.
fn fill(lab: &Lab, place: &Place<'_>, spec: &Value, volume: &Value, folder: &Path) {
    if let Some(name) = volume["configMap"]["name"].as_str() {
        let object = lab.get("configmaps", place.namespace, name).expect("the chart is installed");
        for (name, content) in object["data"].as_object().expect("files") {
            write(&folder.join(name), text(content));
        }
    } else if volume["projected"].is_object() {
        write_account(lab, place, spec, folder);
    } else if let Some(name) = volume["secret"]["secretName"].as_str() {
        let object = lab.get("secrets", place.namespace, name);
        assert!(object.is_some() || volume["secret"]["optional"] == true, "no Secret {name}");
        let mode = volume["secret"]["defaultMode"].as_u64().expect("a mode");
        let object = object.unwrap_or_default();
        for (key, content) in object["data"].as_object().into_iter().flatten() {
            let file = folder.join(key);
            if !file.exists() {
                write(&file, STANDARD.decode(text(content)).expect("base64"));
                let group = spec["securityContext"]["fsGroup"].as_u64().unwrap_or(0);
                chown(&file, Some(0), Some(u32::try_from(group).expect("a group"))).expect("root");
                let mode = u32::try_from(mode).expect("a mode");
                fs::set_permissions(&file, Permissions::from_mode(mode)).expect("root");
            }
        }
    }
}

/// The value of a security context: the container's value has precedence over the pod's.
fn context(spec: &Value, container: &Value, key: &str) -> Value {
    let own = &container["securityContext"][key];
    if own.is_null() { spec["securityContext"][key].clone() } else { own.clone() }
}

/// The user and the group, and the added capabilities, in the form of [`ENTER`].
fn rights(spec: &Value, container: &Value) -> [String; 2] {
    let [user, group] = ["runAsUser", "runAsGroup"].map(|key| context(spec, container, key));
    let kept = &container["securityContext"];
    assert_eq!(kept["readOnlyRootFilesystem"], true);
    assert_eq!(kept["allowPrivilegeEscalation"], false);
    assert_eq!(kept["capabilities"]["drop"], json!(["ALL"]));
    // The kubelet rejects other containers.
    assert!(user != 0 || context(spec, container, "runAsNonRoot") != true, "{kept}");
    let added = list(&kept["capabilities"]["add"]).iter();
    [
        format!("{user}:{group}"),
        added.map(|name| format!(",+{}", text(name).to_lowercase())).collect::<Vec<_>>().concat(),
    ]
}

/// The command of the daemon in this pod, whose files are in `folder`.
fn daemon(lab: &Lab, place: &Place<'_>, spec: &Value, folder: &Path) -> Command {
    let (container, root) = (named(&spec["containers"], "crownlabs"), folder.join("root"));
    let copied = Command::new("cp").arg("-a").arg(image::root()).arg(&root).status();
    assert!(copied.expect("cp").success());
    fs::create_dir(root.join("proc")).expect("a mount point");
    for volume in list(&spec["volumes"]) {
        let own = folder.join("volumes").join(text(&volume["name"]));
        fs::create_dir_all(&own).expect("a folder");
        // Everyone may write to an empty folder.
        let mode = if volume["emptyDir"].is_object() { 0o777 } else { 0o755 };
        fs::set_permissions(&own, Permissions::from_mode(mode)).expect("our folder");
        fill(lab, place, spec, volume, &own);
    }
    if spec["automountServiceAccountToken"] != false {
        write_account(lab, place, spec, &root.join(&ACCOUNT[1..]));
    }
    let server = lab.cluster.server();
    let mut port = server.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    write(&root.join("etc/resolv.conf"), format!("nameserver {}\n", dns::ADDRESS));
    let mut command = Command::new("ip");
    if let Some(network) = place.network {
        // The name server cannot be reached.
        write(&root.join("etc/hosts"), format!("{} {SERVER}\n", network.host));
        port = network.forward(port);
        command.args(["netns", "exec", &network.name("bastion"), "unshare"]);
    } else {
        command = Command::new("unshare");
    }
    command.args(["--mount", "--propagation", "private", "sh", "-c", ENTER, "enter"]).arg(&root);
    command.args(rights(spec, container));
    for mount in list(&container["volumeMounts"]) {
        let (path, name) = (text(&mount["mountPath"]), text(&mount["name"]));
        fs::create_dir_all(root.join(&path[1..])).expect("a mount point");
        command.arg(if mount["readOnly"] == true { "ro" } else { "rw" });
        command.arg(folder.join("volumes").join(name)).arg(path);
    }
    for device in DEVICES {
        write(&root.join(&device[1..]), "");
        command.args(["rw", device, device]);
    }
    command.arg("--").args(list(&container["args"]).iter().map(text));
    command.env_clear().env("PATH", std::env::var("PATH").expect("a path"));
    command.env("KUBERNETES_SERVICE_HOST", SERVER).env("KUBERNETES_SERVICE_PORT", port.to_string());
    for variable in list(&container["env"]) {
        let is_name = variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name";
        let value = if is_name { place.pod } else { text(&variable["value"]) };
        command.env(text(&variable["name"]), value);
    }
    command
}

impl Pod {
    /// Starts the daemon with the installed configuration, and waits until it leads and everything is ready.
    pub fn start(lab: &Lab) -> Self {
        let pod = pods(lab, NAMESPACE).remove(0);
        Self::start_in(lab, &Place { namespace: NAMESPACE, deployment: RELEASE, pod: &pod, network: None })
    }

    /// Starts the daemon of this pod, and waits until everything is ready.
    pub fn start_in(lab: &Lab, place: &Place<'_>) -> Self {
        let deployment =
            lab.get("deployments", place.namespace, place.deployment).expect("the chart is installed");
        let template = deployment["spec"]["template"].clone();
        let folder = TempDir::new().expect("a folder");
        // The SSH server runs as another user.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("our folder");
        let mut command = daemon(lab, place, &template["spec"], folder.path());
        let log = File::create(folder.path().join("log")).expect("a log");
        let child = command.stderr(log).process_group(0).spawn().expect("unshare");
        let host = place.network.map_or("127.0.0.1", |network| &network.bastion).to_owned();
        let pod = Self { child, folder, template, host };
        wait_until(PATIENCE, || {
            pod.fill(lab, place);
            let page = pod.page(8081, "/readyz");
            if page.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(format!("{page}\n{}", pod.log())) }
        });
        pod
    }

    /// Fills its volumes with later content, as the kubelet does.
    pub fn fill(&self, lab: &Lab, place: &Place<'_>) {
        let spec = &self.template["spec"];
        for volume in list(&spec["volumes"]) {
            if volume["secret"].is_object() {
                fill(lab, place, spec, volume, &self.volume(text(&volume["name"])));
            }
        }
    }

    fn volume(&self, name: &str) -> PathBuf {
        self.folder.path().join("volumes").join(name)
    }

    /// Its files on this machine.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A container.
    pub fn container(&self, name: &str) -> &Value {
        named(&self.template["spec"]["containers"], name)
    }

    /// The folder of a read-only volume of a container, by its path there.
    pub fn read_only(&self, container: &str, path: &str) -> PathBuf {
        let mounts = &self.container(container)["volumeMounts"];
        let mount = list(mounts).iter().find(|mount| mount["mountPath"] == path);
        let mount = mount.unwrap_or_else(|| panic!("{path} is not in {mounts}"));
        assert_eq!(mount["readOnly"], true, "{mount}");
        self.volume(text(&mount["name"]))
    }

    /// The response of a server of the daemon.
    pub fn page(&self, port: u16, path: &str) -> String {
        page(&self.host, port, path)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends it as the kubelet does. It must exit without an error, and without being killed.
    pub fn stop(mut self) {
        let ended = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(ended.expect("kill").success());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}:\n{}", self.log());
        let log = self.log();
        assert!(!log.contains("panicked"), "{log}");
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The pods of a Deployment that the API server has admitted to this namespace.
pub fn pods(lab: &Lab, namespace: &str) -> Vec<String> {
    let pods = lab.list("pods", namespace);
    pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// The response of a server.
fn page(host: &str, port: u16, path: &str) -> String {
    let mut text = String::new();
    let Ok(mut stream) = TcpStream::connect((host, port)) else { return text };
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut text));
    read.map(|_| text).unwrap_or_default()
}

/// The folder of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}
