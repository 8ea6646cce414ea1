//! Students of one course, with the rights that the daemon gives them, and their sessions.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crownlabs::testing::{Keys, Secret, Session};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::browser::{Browser, Connections};
use crate::fixtures::FIXTURES;
use crate::harness::{Bench, CONCURRENCY, Daemon, now};
use crate::number_from;
use cluster::config::only;
use cluster::nginx::Nginx;
use cluster::{CLIENT, Options, reserve_port};

/// How many students there are.
pub const STUDENTS: usize = 1_000;
/// The number of machines of the first student. The other students have none.
pub const MACHINES: usize = 10;
/// A session key.
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const GROUP: &str = "kubernetes:workspace-bench:user";
const API: &str = "/apis/crownlabs.polito.it/v1alpha2";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The longest time that a dashboard may take to start.
const START: Duration = Duration::from_mins(1);

/// The account of the dashboard as in the chart, and the course of the fixtures as the daemon creates it.
const COURSE: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: crownlabs-dashboard, namespace: crownlabs-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: crownlabs-dashboard}
rules:
- {apiGroups: [crownlabs.polito.it], resources: [instances, sharedvolumes, templates, tenants, workspaces], verbs: [list, watch]}
- {apiGroups: [lab.crownlabs.polito.it], resources: [announcements], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crownlabs-dashboard}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-dashboard}
subjects: [{kind: ServiceAccount, name: crownlabs-dashboard, namespace: crownlabs-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: crownlabs-dashboard, namespace: crownlabs-system}
rules:
- {apiGroups: [\"\"], resources: [configmaps], resourceNames: [crownlabs-peers], verbs: [list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: crownlabs-dashboard, namespace: crownlabs-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: crownlabs-dashboard}
subjects: [{kind: ServiceAccount, name: crownlabs-dashboard, namespace: crownlabs-system}]
---
apiVersion: crownlabs.polito.it/v1alpha1
kind: Workspace
metadata: {name: bench}
spec: {prettyName: Bench, quota: {cpu: 1000, memory: 1000Gi, instances: 1000}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: crownlabs-view-templates, namespace: workspace-bench}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-view-templates}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"kubernetes:workspace-bench:user\"}]
";

/// A control plane with the students.
pub struct World {
    pub bench: Bench,
    keys: Keys,
    port: u16,
    /// The port that the browsers use: the dashboard's, or the one of NGINX.
    entrance: u16,
    connections: Connections,
    _nginx: Option<Nginx>,
}

impl World {
    /// Starts the control plane, and creates the students.
    pub async fn make() -> Result<Self> {
        let options = Options { simulate: false, load_balancer: false, ..Options::default() };
        let mut bench = Bench::start_with(options, FIXTURES).await?;
        let roles = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/11-cluster-roles.yaml");
        bench.cluster.apply_files(&[&roles])?;
        bench.cluster.apply(COURSE)?;
        bench.kubeconfig =
            bench.cluster.service_account_kubeconfig("crownlabs-system", "crownlabs-dashboard")?;
        fs::write(bench.dir.join("session-key"), KEY)?;
        fs::write(bench.dir.join("client-secret"), "secret")?;
        let port = reserve_port()?;
        let keys = Keys::parse(KEY.as_bytes())?;
        let entrance = if number_from("BENCH_NGINX") == Some(1) { reserve_port()? } else { port };
        let is_proxied = entrance != port;
        let nginx = is_proxied.then(|| nginx(&bench.dir.join("nginx"), entrance, port)).transpose()?;
        let connections = Browser::connections();
        let world = Self { bench, keys, port, entrance, connections, _nginx: nginx };
        eprintln!("{STUDENTS} students …");
        let students = (0..STUDENTS).map(|number| world.student(number));
        stream::iter(students).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        for number in 0..MACHINES {
            world.machine(&format!("machine-{number}")).await?;
        }
        world.bench.settle()?;
        Ok(world)
    }

    /// Creates a student, as the daemon does.
    async fn student(&self, number: usize) -> Result<()> {
        let (name, namespace) = (name(number), namespace(number));
        let role = format!("crownlabs-manage-{namespace}");
        let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]);
        let bound =
            |to: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": to});
        let rules = json!([{
            "apiGroups": ["crownlabs.polito.it"], "resources": ["tenants"], "resourceNames": [name],
            "verbs": ["get", "list", "watch", "patch", "update"],
        }]);
        let spec = json!({
            "firstName": "Ada", "lastName": "Rossi", "email": format!("{name}@example.org"),
            "workspaces": [{"name": "bench", "role": "user"}],
        });
        let (instances, own) = ("crownlabs-manage-instances", "crownlabs-own-instances");
        for (path, body) in [
            ("/api/v1/namespaces".to_owned(), json!({"metadata": {"name": namespace}})),
            (format!("{RBAC}/clusterroles"), json!({"metadata": {"name": role}, "rules": rules})),
            (
                format!("{RBAC}/clusterrolebindings"),
                json!({"metadata": {"name": role}, "roleRef": bound(&role), "subjects": subjects}),
            ),
            (
                format!("{RBAC}/namespaces/{namespace}/rolebindings"),
                json!({"metadata": {"name": instances}, "roleRef": bound(own), "subjects": subjects}),
            ),
            (format!("{API}/tenants"), of_kind("Tenant", &name, &spec)),
        ] {
            self.bench.send("POST", &path, &body).await?;
        }
        let (of, none) = (|name: &str| json!({"name": name, "created": true}), json!({"created": false}));
        let keycloak = json!({"userCreated": of("id"), "userConfirmed": true, "userSynchronized": true});
        let status = json!({"status": {
            "personalNamespace": of(&namespace), "sandboxNamespace": none, "keycloak": keycloak, "ready": true,
            "quota": {"cpu": "1000", "memory": "1000Gi", "instances": 1000},
        }});
        self.bench.send("PATCH", &format!("{API}/tenants/{name}/status"), &status).await.map(drop)
    }

    /// Creates a machine of the first student.
    async fn machine(&self, machine: &str) -> Result<()> {
        let spec = json!({
            "template.crownlabs.polito.it/TemplateRef": {"name": "vm", "namespace": "workspace-bench"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": name(0)},
        });
        let path = format!("{API}/namespaces/{}/instances", namespace(0));
        self.bench.send("POST", &path, &of_kind("Instance", machine, &spec)).await.map(drop)
    }

    /// Writes the status of the first machine of the first student, with this address.
    pub async fn write_status(&self, url: &str) -> Result<()> {
        let path = format!("{API}/namespaces/{}/instances/machine-0/status", namespace(0));
        let status = json!({"status": {"phase": "Ready", "url": url}});
        self.bench.send("PATCH", &path, &status).await.map(drop)
    }

    /// Changes a Template of the course, which is on everyone's page.
    pub async fn change_template(&self, value: usize) -> Result<()> {
        let change = json!({"metadata": {"annotations": {"bench": value.to_string()}}});
        let path = format!("{API}/namespaces/workspace-bench/templates/vm");
        self.bench.send("PATCH", &path, &change).await.map(drop)
    }

    /// Starts the dashboard, and waits until it serves.
    pub async fn daemon(&self) -> Result<Daemon> {
        self.daemon_with("").await
    }

    /// The same with more keys of the dashboard, behind a comma.
    pub async fn daemon_with(&self, more: &str) -> Result<Daemon> {
        let Self { bench, port, .. } = self;
        let file = |name: &str| bench.dir.join(name).display().to_string();
        let keys = format!(
            "listen: \"127.0.0.1:{port}\", publicUrl: \"https://labs.example.org\", issuerUrl: \"{}\", clientId: {CLIENT}, \
             clientSecretFile: {}, caFile: {}, sessionKeyFile: {}{more}",
            bench.cluster.issuer_url(),
            file("client-secret"),
            bench.cluster.ca_file().display(),
            file("session-key"),
        );
        let daemon = bench.daemon_with(&format!(
            "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
server: {{metrics: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}}
leaderElection: {{enabled: false}}
{}",
            only(&[("dashboard", &keys)])
        ))?;
        let (begin, browser) = (Instant::now(), self.browser(0)?);
        while browser.get("/healthz").await.is_err() {
            ensure!(begin.elapsed() < START, "{}", fs::read_to_string(bench.dir.join("daemon.log"))?);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        daemon.await_idle()?;
        Ok(daemon)
    }

    /// The port of the dashboard.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The browser of a student who has logged in.
    pub fn browser(&self, student: usize) -> Result<Browser> {
        self.session(student, 0)
    }

    /// The browser of a student who has logged in, with another session for each number.
    pub fn session(&self, student: usize, number: usize) -> Result<Browser> {
        self.session_of(&name(student), &[GROUP], number)
    }

    /// The browser of a user in these groups who has logged in, with another session for each number.
    pub fn session_of(&self, user: &str, groups: &[&str], number: usize) -> Result<Browser> {
        let refresh_token = self.bench.cluster.user_token(user, groups, 3_600)?;
        let refresh_token = Secret::from(refresh_token);
        let session = Session { id: format!("session-{user}-{number}"), refresh_token, visited: now() };
        let cookie = session.seal(&self.keys).context("the session is too long for a cookie")?;
        let cookie = cookie.split(';').next().context("a cookie")?.to_owned();
        Ok(Browser::new(self.connections.clone(), self.entrance, cookie))
    }
}

/// Starts NGINX in front of the dashboard, as an Ingress controller has it.
fn nginx(folder: &Path, entrance: u16, port: u16) -> Result<Nginx> {
    let backend = json!({"service": {"name": "crownlabs-dashboard", "port": {"number": port}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
    let ingress = json!({
        "metadata": {"name": "crownlabs-dashboard", "namespace": "crownlabs-system"},
        "spec": {"rules": [{"host": "labs.example.org", "http": {"paths": paths}}]},
    });
    let address = SocketAddr::from(([127, 0, 0, 1], entrance));
    Nginx::start(folder, address, false, None, &[ingress], |_, _| Ok(format!("127.0.0.1:{port}")))
}

/// The name of a student.
pub fn name(number: usize) -> String {
    format!("student-{number:04}")
}

/// The namespace of a student.
pub fn namespace(number: usize) -> String {
    format!("tenant-{}", name(number))
}

fn of_kind(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": kind, "metadata": {"name": name}, "spec": spec})
}
