//! A pod of the daemon: a process in the unpacked image, with what the kubelet and the container engine would give it.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use tempfile::TempDir;

use crate::dns;
use crate::image;
use crate::lab::{Lab, PATIENCE, wait_until};

pub const NAMESPACE: &str = "crownlabs-system";
pub const RELEASE: &str = "crownlabs";
/// The name by which the daemon reaches the API server.
pub const SERVER: &str = "kubernetes.default.svc";
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// A root that nothing can be written to, as in a pod, and the system's process files.
const ENTER: &str = "mount --bind \"$1\" \"$1\" && mount -t proc proc \"$1/proc\" && \
    mount -o remount,bind,ro \"$1\" && exec chroot --userspec=20000:20000 \"$1\" /crownlabs run --config \
    /etc/crownlabs/crownlabs.yaml";

/// The daemon as a pod of the installed Deployment.
pub struct Pod {
    child: Child,
    /// Holds the log and the root.
    folder: TempDir,
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, text).expect("written");
}

/// Asserts that the container of the installed Deployment runs as this file runs it.
fn assert_runs_like_this(lab: &Lab) {
    let deployment = lab.get("deployments", NAMESPACE, RELEASE).expect("the chart is installed");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsUser"], 20000);
    let container = &pod["containers"][0];
    let arguments = serde_json::json!(["run", "--config", "/etc/crownlabs/crownlabs.yaml"]);
    assert_eq!(container["args"], arguments);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
}

/// The root of the pod: the image, the configuration and the account.
fn prepare(lab: &Lab, root: &Path) {
    let copied = Command::new("cp").arg("-a").arg(image::root()).arg(root).status();
    assert!(copied.expect("cp").success());
    let config = lab.get("configmaps", NAMESPACE, RELEASE).expect("the chart is installed");
    let files = config["data"].as_object().expect("files");
    for (name, text) in files {
        write(&root.join("etc/crownlabs").join(name), text.as_str().expect("text"));
    }
    let account = lab.get("deployments", NAMESPACE, RELEASE).expect("installed");
    let account =
        account["spec"]["template"]["spec"]["serviceAccountName"].as_str().expect("a name").to_owned();
    let token = lab.cluster.token(NAMESPACE, &account).expect("a token");
    write(&root.join(ACCOUNT).join("token"), &token);
    write(&root.join(ACCOUNT).join("namespace"), NAMESPACE);
    fs::copy(lab.cluster.ca_file(), root.join(ACCOUNT).join("ca.crt")).expect("the authority");
    write(&root.join("etc/resolv.conf"), &format!("nameserver {}\n", dns::ADDRESS));
    fs::create_dir(root.join("proc")).expect("a mount point");
}

impl Pod {
    /// Starts the daemon with the configuration that is installed now, and waits until it leads and all is ready.
    pub fn start(lab: &Lab) -> Self {
        assert_runs_like_this(lab);
        let folder = TempDir::new().expect("a folder");
        let root = folder.path().join("root");
        prepare(lab, &root);
        let port = lab.cluster.server().rsplit(':').next().expect("a port").to_owned();
        let log = File::create(folder.path().join("log")).expect("a log");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", ENTER, "enter"]).arg(&root);
        command.env_clear().env("PATH", std::env::var("PATH").expect("a path"));
        command.env("KUBERNETES_SERVICE_HOST", SERVER).env("KUBERNETES_SERVICE_PORT", port);
        command.env("POD_NAME", pods(lab).first().expect("a pod"));
        let child = command.stderr(log).process_group(0).spawn().expect("unshare");
        let pod = Self { child, folder };
        wait_until(PATIENCE, || {
            let page = page(8081, "/readyz");
            if page.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(format!("{page}\n{}", pod.log())) }
        });
        pod
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends it as the kubelet does. It must end by itself, without an error.
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

/// The pods of the Deployment that the API server has admitted.
pub fn pods(lab: &Lab) -> Vec<String> {
    let pods = lab.list("pods", NAMESPACE);
    pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// What a server of the daemon answers.
fn page(port: u16, path: &str) -> String {
    let mut text = String::new();
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return text };
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut text));
    read.map(|_| text).unwrap_or_default()
}

/// The folder of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}
