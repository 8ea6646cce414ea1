//! From a public key in a Tenant to a login through the bastion, with the manifest, the server and the client that an
//! administrator and a user have.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::network::{Network, ONE, TWO};
use super::secrets::value;
use super::ssh::{Client, Server, key_pair};
use super::{set_keys, tenant};
use crate::daemon::{Daemon, Namespace};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options;
use cluster::audit::Mark;

const MANIFEST: &str = include_str!("../../../manifests/bastion/bastion.yaml");
const ACCOUNT: &str = "system:serviceaccount:crownlabs-bastion:crownlabs-bastion";

/// The manifest, and the pod that it describes: the folders that its containers share.
struct Pod {
    documents: Vec<Value>,
    dir: TempDir,
}

impl Pod {
    /// Applies the manifest, and creates the folders.
    fn create(lab: &Lab) -> Self {
        lab.cluster.apply(MANIFEST).expect("the manifest is accepted");
        let dir = TempDir::new().expect("a folder");
        let pod = Self { documents: serde_saphyr::from_multiple(MANIFEST).expect("YAML"), dir };
        fs::set_permissions(pod.path(""), Permissions::from_mode(0o755)).expect("our folder");
        for folder in ["auth-keys", "host-keys", "web-keys"] {
            fs::create_dir(pod.path(folder)).expect("a folder");
        }
        pod
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn document(&self, kind: &str) -> &Value {
        self.documents.iter().find(|document| document["kind"] == kind).expect("in the manifest")
    }

    /// The configuration in the manifest, with the folders of the test and more keys of the loop.
    fn config(&self, more: &str) -> String {
        let shipped = self.document("ConfigMap")["data"]["crownlabs.yaml"].as_str().expect("a file");
        let folder = self.path("host-keys").display().to_string();
        let config = shipped
            .replace("hostKeys: {", &format!("hostKeys: {{folder: {folder}, "))
            .replace(
                "bastion:\n",
                &format!("bastion:\n    authorizedKeysFile: {}\n{more}", self.keys_file().display()),
            )
            .replace("/web-keys", &self.path("web-keys").display().to_string());
        assert!(config.contains("authorizedKeysFile") && config.contains(&folder), "{config}");
        config
    }

    fn keys_file(&self) -> PathBuf {
        self.path("auth-keys").join("keys")
    }

    /// Mounts the Secret with the key of the web terminal, which the daemon has created, as the kubelet does.
    fn mount_web_key(&self, lab: &Lab) {
        let (namespace, name) = ("crownlabs-bastion", "crownlabs-bastion-operator-web-master-key");
        let secret =
            wait_until(PATIENCE, || lab.get("secrets", namespace, name).ok_or("the Secret".to_owned()));
        let key = "webssh-bastion-master";
        fs::write(self.path("web-keys").join(key), value(&secret, key)).expect("written");
    }

    /// A kubeconfig of the account in the manifest, for the network namespace of the bastion.
    fn kubeconfig(&self, lab: &Lab, network: &Network) -> PathBuf {
        let server = lab.cluster.server();
        let port = server.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let own = lab
            .cluster
            .service_account_kubeconfig("crownlabs-bastion", "crownlabs-bastion")
            .expect("a token");
        let mut kubeconfig: Value = serde_json::from_slice(&fs::read(own).expect("written")).expect("JSON");
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = json!(format!("https://{}:{}", network.host, network.forward(port)));
        cluster["tls-server-name"] = json!("localhost");
        let path = self.path("kubeconfig");
        fs::write(&path, kubeconfig.to_string()).expect("written");
        path
    }
}

/// The number of connections to the port 22 of a machine that the daemon has counted.
fn counted(daemon: &Daemon, machine: &str) -> f64 {
    let series = format!("bastion_ssh_connections{{destination_ip=\"{machine}\",destination_port=\"22\"}} ");
    let metrics = daemon.metrics();
    let sample = metrics.lines().find_map(|line| line.strip_prefix(&series));
    sample.map_or(0.0, |number| number.parse().expect("a number"))
}

/// Logs in to both machines, after `before` logins since the daemon started, and waits until each login has been
/// counted once. Connections are counted in order, with a short delay: when the last one is counted, all are.
fn logins_are_counted(daemon: &Daemon, client: &Client<'_>, before: [f64; 2]) {
    for machine in [ONE, TWO, ONE, ONE, TWO] {
        client.jump(machine).expect("a login");
    }
    daemon.wait_for("the count", |daemon| counted(daemon, TWO) >= before[1] + 2.0);
    let counts = [ONE, TWO].map(|machine| counted(daemon, machine));
    let logins = [counts[0] - before[0], counts[1] - before[1]].map(|rise| rise.to_string());
    assert_eq!(logins, ["3", "2"], "{before:?}, then {counts:?}");
}

/// The number of open connections to a machine is shown while a user is logged in, regardless of the number of
/// earlier connections.
fn sessions_are_shown(daemon: &Daemon, client: &Client<'_>) {
    let open = |machine| {
        let series =
            format!("bastion_ssh_open_connections{{destination_ip=\"{machine}\",destination_port=\"22\"}} ");
        daemon.metrics().lines().find_map(|line| line.strip_prefix(&series)?.parse::<u32>().ok())
    };
    let sessions = [client.stay(ONE), client.stay(ONE), client.stay(TWO)];
    daemon.wait_for("the sessions", |_| (open(ONE), open(TWO)) == (Some(2), Some(1)));
    drop(sessions);
    daemon.wait_for("no session", |_| (open(ONE), open(TWO)) == (None, None));
}

/// Logs in until it works.
fn await_login(client: &Client<'_>) {
    wait_until(PATIENCE, || client.jump(ONE));
}

#[test]
fn tenants_reach_their_machines_through_the_bastion_and_nothing_else() {
    // Its own control plane: writes of other tests to the file would delay the login.
    let options = Options { simulate: false, kubevirt: false, load_balancer: false, ..Options::default() };
    let (lab, network) = (Lab::start(options), Network::create());
    let pod = Pod::create(&lab);
    let key = pod.path("ada");
    let public_key = key_pair(&key);
    let machines = ["one", "two"].map(|name| Server::of_machine(&network, name, pod.dir.path(), &public_key));
    // The server of the bastion waits for the daemon.
    let sshd = Server::of_bastion(&network, pod.dir.path(), &pod.path("auth-keys"), &pod.path("host-keys"));
    let kubeconfig = pod.kubeconfig(&lab, &network);
    let namespace = Namespace { name: &network.name("bastion"), address: &network.bastion };
    let mut daemon = Daemon::spawn_in(&namespace, &pod.config(""), &kubeconfig);
    daemon.await_ready();
    pod.mount_web_key(&lab);
    daemon.wait_for("web SSH", |daemon| daemon.page("/readyz/webSsh").0 == 200);
    let client = Client::new(&network, pod.dir.path(), &key);
    let stranger = |said: &str| said.contains("Permission denied (publickey)");
    wait_until(PATIENCE, || match client.jump(ONE) {
        Err(said) if stranger(&said) => Ok(()),
        other => Err(format!("a refusal of the bastion, is {other:?}")),
    });

    lab.apply(&tenant("bastion-ada", &[format!("{public_key} ada@home")]));
    await_login(&client);
    for machine in [ONE, TWO] {
        let seen = client.jump(machine).expect("a login");
        assert!(seen.starts_with("10.99.0.1 ") && seen.ends_with(&format!(" {machine} 22\n")), "{seen}");
    }
    // One login to see that it works, and one to each machine.
    logins_are_counted(&daemon, &client, [2.0, 1.0]);
    sessions_are_shown(&daemon, &client);
    nothing_else_is_forwarded(&client);
    assert!(sshd.log().contains("Accepted key ED25519 SHA256:"), "the log names the key: {}", sshd.log());

    set_keys(&lab, "bastion-ada", &[]);
    let said = wait_until(PATIENCE, || client.jump(ONE).err().ok_or_else(|| "a refusal".to_owned()));
    assert!(stranger(&said), "{said}");

    // The same with options before the keys, which this server must accept, and one interface.
    daemon.stop();
    let options = "    keyOptions: 'restrict,port-forwarding,permitopen=\"*:22\"'\n";
    let config = pod.config(options).replace("sshTracker: {", "sshTracker: {interface: eth0, ");
    let daemon = Daemon::spawn_in(&namespace, &config, &kubeconfig);
    daemon.await_ready();
    set_keys(&lab, "bastion-ada", &[&public_key]);
    await_login(&client);
    logins_are_counted(&daemon, &client, [1.0, 0.0]);
    let file = fs::read_to_string(pod.keys_file()).expect("there");
    assert!(file.contains(&format!("restrict,port-forwarding,permitopen=\"*:22\" {public_key} bastion-ada")));
    rights_are_used(&lab, &pod);
    drop(machines);
}

fn nothing_else_is_forwarded(client: &Client<'_>) {
    let refused = |what: &str, arguments: &[&str], why: &str| {
        let said = client.ssh(arguments).expect_err(what);
        assert!(said.contains(why), "{what}: {said}");
    };
    refused("a command", &["bastion", "id"], "open failed");
    refused("a shell with a terminal", &["-tt", "bastion"], "open failed");
    refused("a subsystem", &["-s", "bastion", "sftp"], "open failed");
    refused("another user", &["root@bastion", "id"], "Permission denied");
    // The machine accepts logins there, but the bastion rejects the connection.
    let machine = format!("crownlabs@{ONE}");
    client.ssh_from("bastion", &["-p", "2022", &machine, "id"]).expect("a login at the other port");
    let other_port = ["-W", &format!("{ONE}:2022"), "bastion"];
    refused("another port", &other_port, "administratively prohibited");
    let through = ["-J", "bastion", "-p", "2022", &machine, "id"];
    refused("a login at another port", &through, "administratively prohibited");
    let remote = ["-N", "-o", "ExitOnForwardFailure=yes", "-R", "3333:127.0.0.1:22", "bastion"];
    refused("remote forwarding", &remote, "remote port forwarding failed");
    refused("a tunnel", &["-N", "-o", "ExitOnForwardFailure=yes", "-w", "0:0", "bastion"], "tun");
}

/// Every right of the manifest is used, and no other right was needed.
fn rights_are_used(lab: &Lab, pod: &Pod) {
    let mut granted = BTreeSet::new();
    for role in [pod.document("ClusterRole"), pod.document("Role")] {
        for rule in role["rules"].as_array().expect("rules") {
            let list = |key: &str| -> Vec<&str> {
                rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
            };
            for verb in list("verbs") {
                granted.extend(list("resources").iter().map(|resource| format!("{verb} {resource}")));
            }
        }
    }
    wait_until(PATIENCE, || {
        let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
        let ours: Vec<_> = entries.iter().filter(|entry| entry.user == ACCOUNT).collect();
        let refused: Vec<_> = ours.iter().filter(|entry| entry.code == 403).collect();
        assert!(refused.is_empty(), "{refused:#?}");
        let used: BTreeSet<String> =
            ours.iter().map(|entry| format!("{} {}", entry.verb, entry.resource)).collect();
        let unused: Vec<_> = granted.difference(&used).collect();
        unused.is_empty().then_some(()).ok_or_else(|| format!("granted but not used: {unused:?}"))
    });
}

#[test]
fn the_manifest_the_configuration_and_the_server_use_the_same_folders() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(MANIFEST).expect("YAML");
    let deployment = documents.iter().find(|document| document["kind"] == "Deployment").expect("there");
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
    let shipped = include_str!("../../../images/ssh-bastion/sshd_config");
    for (container, read_only) in containers.iter().zip([false, true]) {
        for volume in ["auth-keys", "host-keys"] {
            let mounts = container["volumeMounts"].as_array().expect("mounts");
            let mount = mounts.iter().find(|mount| mount["name"] == volume).expect("mounted");
            let path = mount["mountPath"].as_str().expect("a path");
            assert!(shipped.contains(&format!(" {path}/")), "{path}");
            assert_eq!(mount["readOnly"] == true, read_only, "{volume} in {}", container["name"]);
        }
        let token =
            container["volumeMounts"].as_array().expect("mounts").iter().any(|m| m["name"] == "token");
        assert_eq!(token, !read_only, "only the daemon has the token of the account");
    }
    let default: Value = serde_saphyr::from_str(&crownlabs::default_configuration()).expect("YAML");
    let default = &default["controllers"]["bastion"];
    assert_eq!(
        (&default["authorizedKeysFile"], &default["hostKeys"]["folder"]),
        (&json!("/auth-keys/keys"), &json!("/host-keys"))
    );
    assert!(shipped.contains("AuthorizedKeysFile /auth-keys/keys\n"));
}

#[test]
fn the_pods_of_the_bastion_may_open_connections_to_machines_and_the_api_server_only() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(MANIFEST).expect("YAML");
    let of = |kind: &str| documents.iter().find(|document| document["kind"] == kind).expect("there");
    let (policy, deployment) = (&of("NetworkPolicy")["spec"], of("Deployment"));
    assert_eq!(
        policy["podSelector"]["matchLabels"],
        deployment["spec"]["template"]["metadata"]["labels"]
            .as_object()
            .map(|labels| json!({"app.kubernetes.io/name": labels["app.kubernetes.io/name"]}))
            .expect("labels")
    );
    assert_eq!(policy["policyTypes"], json!(["Egress"]));
    let rules = policy["egress"].as_array().expect("rules");
    let to_ssh =
        |rule: &&Value| rule["ports"].as_array().expect("ports").iter().any(|port| port["port"] == 22);
    let ssh: Vec<&Value> = rules.iter().filter(to_ssh).collect();
    let machines = json!([{
        "namespaceSelector": {},
        "podSelector": {"matchExpressions": [{"key": "crownlabs.polito.it/instance", "operator": "Exists"}]},
    }]);
    assert!(
        ssh.len() == 1 && ssh[0]["to"] == machines && ssh[0]["ports"] == json!([{"port": 22}]),
        "{ssh:?}"
    );
    assert!(rules.iter().all(|rule| rule["ports"].as_array().is_some_and(|ports| !ports.is_empty())));
}
