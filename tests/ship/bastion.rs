//! The SSH bastion as the chart installs it, in its own pods and in the pods of the daemon: a student reaches their
//! machine with `ssh -J` and in the browser, and finds the same host keys. OpenSSH of this machine takes the place of
//! OpenSSH in the image.

#[path = "../integration/bastion/network.rs"]
pub mod network;
#[path = "../integration/bastion/ssh.rs"]
mod ssh;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::dns::Dns;
use crate::install::{PORTS, assert_nothing_forbidden, await_counted, fresh, release, use_samples};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::pod::{NAMESPACE, Place, Pod, RELEASE, SERVER, pods, project};
use cluster::browser::{Browser, request};
use network::{BASTION, Network};
use ssh::{Client, Server, key_pair};

/// The values of both forms. Without webhooks: the API server could not call a pod outside its network.
const OWN_PODS: [&str; 2] = ["config.server.webhook.enabled=false", "bastion.enabled=true"];
const IN_DAEMON: [&str; 3] = [OWN_PODS[0], OWN_PODS[1], "bastion.inDaemon=true"];
/// The namespace, the Deployment and the Service of the bastion in its own pods.
const OWN: &str = "crownlabs-bastion";
const WEB_KEY: &str = "crownlabs-bastion-operator-web-master-key";
const HOST_KEYS: &str = "crownlabs-bastion-operator-ssh-keys";
/// The student's namespace, and one of their machines.
const STUDENT: &str = "tenant-ada-rossi";
const MACHINE: &str = "server-1";

/// A cluster, the network around its bastion, and a student with a key.
struct Site {
    lab: Lab,
    network: Network,
    folder: TempDir,
    public_key: String,
    /// The address of the machine.
    machine: String,
}

impl Site {
    /// Installs the chart with these values, and applies the samples.
    fn install(values: &[&str]) -> (Self, Pod) {
        let (lab, folder) = (fresh(), TempDir::new().expect("a folder"));
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("our folder");
        release(&lab, "install", values);
        let daemon = Pod::start(&lab);
        apply_people(&lab);
        use_samples(&lab);
        let public_key = key_pair(&folder.path().join("ada"));
        let patch = json!({"spec": {"publicKeys": [public_key]}});
        lab.patch("tenants", "", "ada.rossi", &patch.to_string());
        let instance = lab.get("instances", STUDENT, MACHINE).expect("a sample");
        let machine = instance["status"]["ip"].as_str().expect("an address").to_owned();
        let network = Network::create();
        network.ip("one", &format!("addr add {machine}/32 dev eth0"));
        network.ip("bastion", &format!("route add {machine} dev eth0"));
        (Self { lab, network, folder, public_key, machine }, daemon)
    }

    fn secret(&self, namespace: &str, name: &str) -> Value {
        wait_until(PATIENCE, || {
            self.lab.get("secrets", namespace, name).ok_or_else(|| format!("the Secret {name}"))
        })
    }

    /// The SSH server of the machine, which accepts the keys of the student and of web terminals.
    fn start_machine(&self) -> Server {
        let key = &self.secret(OWN, WEB_KEY)["data"]["webssh-bastion-master.pub"];
        let key = STANDARD.decode(key.as_str().expect("a key")).expect("base64");
        let keys = format!("{}\n{}", self.public_key, String::from_utf8(key).expect("text"));
        Server::of_machine(&self.network, "one", self.folder.path(), &keys)
    }

    /// Runs the commands in `docs/bastion.md` that prepare the other form.
    fn follow_the_document(&self) {
        let document = include_str!("../../docs/bastion.md");
        let (_, section) = document.split_once("\n### In the pods of the daemon\n").expect("the section");
        let (section, _) = section.split_once("\n### ").expect("its end");
        let blocks: Vec<&str> = section
            .split("\n```sh\n")
            .skip(1)
            .map(|rest| rest.split("\n```").next().unwrap_or_default())
            .collect();
        assert_eq!(blocks.len(), 2, "{blocks:?}");
        let kubectl = self.lab.cluster.kubectl().get_program().to_owned();
        let programs = Path::new(&kubectl).parent().expect("a folder").display().to_string();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &blocks.join("\n")])
            .env("KUBECONFIG", self.lab.admin())
            .env("PATH", format!("{programs}:{}", std::env::var("PATH").expect("a path")))
            .output()
            .expect("bash");
        assert!(output.status.success(), "{output:?}");
    }

    /// The current leader.
    fn leader(&self) -> Value {
        let lease = self.lab.get("leases", NAMESPACE, "crownlabs-controller-manager");
        lease.map_or(Value::Null, |lease| lease["spec"]["holderIdentity"].clone())
    }
}

/// Applies the users of the samples, and waits until the student may have Instances: the quota is zero while the daemon
/// has seen the Tenant but not its Workspace.
fn apply_people(lab: &Lab) {
    await_counted(lab);
    for file in ["00-namespaces.yaml", "10-people.yaml"] {
        lab.kubectl(&["apply", "-f", &project().join("manifests/samples").join(file).display().to_string()]);
    }
    wait_until(PATIENCE, || {
        let quota = lab.get("resourcequotas", STUDENT, "crownlabs-resource-quota").unwrap_or_default();
        let most = quota["spec"]["hard"]["count/instances.crownlabs.polito.it"].as_str();
        most.filter(|most| *most != "0").map(drop).ok_or_else(|| format!("a quota for Instances in {quota}"))
    });
}

/// A pod of the bastion: its daemon and its SSH server.
struct Bastion<'a> {
    site: &'a Site,
    pod: Pod,
    namespace: &'a str,
    sshd: Server,
}

impl<'a> Bastion<'a> {
    /// Starts the containers of this pod, and waits until web terminals have their key, too.
    fn start(site: &'a Site, namespace: &'a str, deployment: &'a str, pod: &str) -> Self {
        let place = Place { namespace, deployment, pod, network: Some(&site.network) };
        let pod = Pod::start_in(&site.lab, &place);
        let context = &pod.container("sshd")["securityContext"];
        // The network starts programs with these settings.
        for (key, value) in [
            ("runAsUser", json!(1000)),
            ("runAsGroup", json!(1000)),
            ("allowPrivilegeEscalation", json!(false)),
            ("capabilities", json!({"drop": ["ALL"]})),
        ] {
            assert_eq!(context[key], value, "{key}");
        }
        let [auth_keys, host_keys] = ["/auth-keys", "/host-keys"].map(|path| pod.read_only("sshd", path));
        let sshd = Server::of_bastion(&site.network, pod.folder(), &auth_keys, &host_keys);
        wait_until(PATIENCE, || {
            pod.fill(&site.lab, &place);
            let page = pod.page(8081, "/readyz/webSsh");
            if page.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(format!("{page}\n{}", pod.log())) }
        });
        Self { site, pod, namespace, sshd }
    }

    /// The pod's port behind a Service.
    fn port(&self, service: &str) -> u16 {
        let spec =
            self.site.lab.get("services", self.namespace, service).expect("the chart is installed")["spec"]
                .clone();
        let labels = &self.pod.template["metadata"]["labels"];
        let mut selector = spec["selector"].as_object().expect("a selector").iter();
        assert!(selector.all(|(key, value)| labels[key] == *value), "{spec} selects {labels}");
        let containers = self.pod.template["spec"]["containers"].as_array().expect("containers");
        let mut ports =
            containers.iter().flat_map(|container| container["ports"].as_array().into_iter().flatten());
        let port = ports.find(|port| port["name"] == spec["ports"][0]["targetPort"]).expect("the port");
        port["containerPort"].as_u64().and_then(|port| port.try_into().ok()).expect("a number")
    }

    /// The number of connections to the machine that the daemon of this pod has counted.
    fn counted(&self) -> Result<u32, String> {
        let series =
            format!("bastion_instance_ssh_connections{{namespace=\"{STUDENT}\",instance=\"{MACHINE}\"}} ");
        let metrics = self.pod.page(8080, "/metrics");
        let sample = metrics.lines().find_map(|line| line.strip_prefix(&series)?.trim().parse().ok());
        sample.ok_or_else(|| format!("{series}\n{}", self.pod.log()))
    }

    fn await_counted(&self, wanted: u32) {
        wait_until(PATIENCE, || match self.counted()? {
            counted if counted == wanted => Ok(()),
            counted => Err(format!("{wanted} connections instead of {counted}")),
        });
    }

    /// The student reaches the machine in both ways, and each connection is counted once.
    fn serves(&self) {
        let (site, key) = (self.site, self.site.folder.path().join("ada"));
        assert_eq!(self.port(OWN), 2222, "where the client connects to");
        let client = Client::new(&site.network, site.folder.path(), &key);
        let seen = wait_until(PATIENCE, || client.jump(&site.machine));
        assert!(
            seen.starts_with("10.99.0.1 ") && seen.ends_with(&format!(" {} 22\n", site.machine)),
            "{seen}"
        );
        assert!(self.sshd.log().contains("Accepted key ED25519 SHA256:"), "{}", self.sshd.log());
        let before = wait_until(PATIENCE, || {
            self.counted().and_then(|n| (n > 0).then_some(n).ok_or("a count".into()))
        });
        client.jump(&site.machine).expect("a login");
        self.await_counted(before + 1);
        let said = client.ssh(&["bastion", "id"]).expect_err("no command runs in the bastion");
        assert!(said.contains("open failed"), "{said}");

        let token = site.lab.cluster.user_token("ada.rossi", &[], 3_600).expect("a token");
        let mut browser = Browser::connect_to(&self.pod.host, self.port("crownlabs-web-ssh"));
        browser.send(&request(&token, STUDENT, MACHINE));
        // The echoed command has quotes.
        browser.enter("echo rea''dy\n");
        browser.until("ready\r\n");
        self.await_counted(before + 2);
    }

    /// The host keys that the server shows.
    fn host_keys(&self) -> Vec<String> {
        let mut command = self.site.network.command("outside", Path::new("/usr/bin/ssh-keyscan"));
        let output = command.args(["-p", "2222", BASTION]).output().expect("ssh-keyscan");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut keys: Vec<String> = text.lines().map(str::to_owned).collect();
        keys.sort();
        assert_eq!(keys.len(), 3, "{output:?}");
        keys
    }

    /// Ends the pod. Returns the log of its daemon.
    fn stop(self) -> String {
        drop(self.sshd);
        let log = self.pod.log();
        self.pod.stop();
        log
    }
}

#[test]
fn one_deployment_serves_like_separate_pods_and_with_the_same_keys() {
    let _ports = PORTS.lock();
    let _dns = Dns::start(SERVER);
    let (site, daemon) = Site::install(&OWN_PODS);
    let own = || Bastion::start(&site, OWN, OWN, &pods(&site.lab, OWN)[0]);
    let bastion = own();
    let machine = site.start_machine();
    bastion.serves();
    let known = bastion.host_keys();
    let secrets = [HOST_KEYS, WEB_KEY].map(|name| site.secret(OWN, name));
    bastion.stop();
    daemon.stop();

    site.follow_the_document();
    release(&site.lab, "upgrade", &IN_DAEMON);
    assert!(site.lab.get("deployments", OWN, OWN).is_none(), "there is one Deployment");
    let leading = Pod::start(&site.lab);
    // The previous leader has released the lease.
    let leader = wait_until(PATIENCE, || match site.leader() {
        Value::String(name) if !name.is_empty() => Ok(name),
        other => Err(format!("a leader, is {other}")),
    });
    let is_waiting = |name: &String| !leader.starts_with(name.as_str());
    let waiting = pods(&site.lab, NAMESPACE).into_iter().find(is_waiting).expect("two replicas");
    let bastion = Bastion::start(&site, NAMESPACE, RELEASE, &waiting);
    bastion.serves();
    assert_eq!(site.leader(), leader.as_str(), "the bastion serves in a replica that waits");
    assert_eq!(bastion.host_keys(), known);
    let log = leading.log();
    leading.stop();
    wait_until(PATIENCE, || match site.leader() {
        Value::String(name) if name.contains(&waiting) => Ok(()),
        other => Err(format!("{waiting} leads instead of {other}")),
    });
    bastion.serves();
    assert_nothing_forbidden(&site.lab, &[log, bastion.stop()]);

    release(&site.lab, "upgrade", &OWN_PODS);
    let bastion = own();
    bastion.serves();
    assert_eq!(bastion.host_keys(), known);
    bastion.stop();
    for (secret, name) in secrets.iter().zip([HOST_KEYS, WEB_KEY]) {
        assert_eq!(&site.secret(OWN, name), secret);
        assert_eq!(site.secret(NAMESPACE, name)["data"], secret["data"]);
    }
    drop(machine);
}
