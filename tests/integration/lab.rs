//! The control plane that the tests share, and its operations.

#[path = "running.rs"]
pub mod running;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use kube::api::PropagationPolicy;
use parking_lot::Mutex;
use serde_json::{Value, json};

use cluster::{Cluster, Options};

/// Calls `probe` until it returns a value, with growing pauses: otherwise many waiting tests would keep the control
/// planes busy with their lists. Panics after `limit` with the last error, which names the problem, and at once if
/// a daemon of this test has ended.
pub fn wait_until<T>(limit: Duration, mut probe: impl FnMut() -> Result<T, String>) -> T {
    const SHORTEST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_millis(500);
    let begin = Instant::now();
    loop {
        // Before the probe, which may wait for the last words of a daemon.
        let ended = running::ended();
        match (probe(), ended) {
            (Ok(value), _) => return value,
            (Err(missing), Some(ended)) => panic!("{ended}\nstill missing: {missing}"),
            (Err(missing), None) => {
                assert!(begin.elapsed() <= limit, "after {limit:?} still missing: {missing}");
                std::thread::sleep((begin.elapsed() / 4).clamp(SHORTEST, LONGEST));
            }
        }
    }
}

/// How long tests wait for a condition. It is long because two cores serve a control plane, several daemons and
/// the tests.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// A control plane with the project's manifests applied.
pub struct Lab {
    /// The control plane.
    pub cluster: Cluster,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The CRD files of the project.
pub fn crd_files() -> Vec<PathBuf> {
    let folder = root().join("manifests/crds");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the CRDs").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

impl Lab {
    /// Starts a control plane for one test.
    pub fn start(options: Options) -> Self {
        let options = Options { crds: crd_files(), ..options };
        let cluster = Cluster::start(options).unwrap_or_else(|error| panic!("the control plane: {error:#}"));
        let manifests = root().join("manifests");
        let files =
            ["00-namespace.yaml", "10-rbac.yaml", "11-cluster-roles.yaml"].map(|name| manifests.join(name));
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        cluster.apply_files(&files).expect("the manifests are accepted");
        Self { cluster }
    }

    /// The control plane that tests share. It runs for as long as one of them uses it.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Lab>> = Mutex::new(Weak::new());
        Self::shared_in(&SHARED, Options { gateway: true, ..Options::default() })
    }

    /// The shared control plane for tests where only the daemon writes: nodes and virtual machines are not simulated.
    pub fn shared_unsimulated() -> Arc<Self> {
        static SHARED: Mutex<Weak<Lab>> = Mutex::new(Weak::new());
        Self::shared_in(&SHARED, Options { simulate: false, ..Options::default() })
    }

    fn shared_in(place: &Mutex<Weak<Self>>, options: Options) -> Arc<Self> {
        let mut shared = place.lock();
        shared.upgrade().unwrap_or_else(|| {
            let lab = Arc::new(Self::start(options));
            *shared = Arc::downgrade(&lab);
            lab
        })
    }

    /// The kubeconfig of an administrator.
    pub fn admin(&self) -> PathBuf {
        self.cluster.admin_kubeconfig().to_path_buf()
    }

    /// The kubeconfig of the daemon's service account.
    pub fn service_account(&self) -> PathBuf {
        self.cluster.service_account_kubeconfig("crownlabs-system", "crownlabs").expect("a token")
    }

    /// Runs `kubectl` with `input` on its standard input. Returns its output; the error is its standard error.
    pub fn try_kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        use std::io::Write;
        let mut child: Command = self.cluster.kubectl();
        let mut child = child
            .args(arguments)
            .arg("--request-timeout=60s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("kubectl reads");
        let output = child.wait_with_output().expect("kubectl ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Runs `kubectl` and returns its output. Panics when it fails.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.try_kubectl(arguments, "").unwrap_or_else(|error| panic!("kubectl {arguments:?}: {error}"))
    }

    /// Applies the objects in a YAML text.
    pub fn apply(&self, yaml: &str) {
        self.cluster.apply(yaml).unwrap_or_else(|error| panic!("{error:#}\n{yaml}"));
    }

    /// Merge-patches an object.
    pub fn patch(&self, kind: &str, namespace: &str, name: &str, patch: &str) {
        let patched = self.cluster.patch(kind, namespace, name, None, patch);
        patched.unwrap_or_else(|error| panic!("{error:#}: {patch}"));
    }

    /// Writes the status of a Tenant with a personal namespace, as the tenant loop does.
    pub fn write_tenant_status(&self, name: &str) {
        let status = json!({
            "ready": true,
            "personalNamespace": {"created": true, "name": format!("tenant-{name}")},
            "sandboxNamespace": {"created": false},
            "keycloak": {"userCreated": {"created": false}, "userConfirmed": false, "userSynchronized": true},
        });
        self.patch_status("tenants", "", name, &json!({"status": status}).to_string());
    }

    /// Merge-patches the status of an object.
    pub fn patch_status(&self, kind: &str, namespace: &str, name: &str, patch: &str) {
        let patched = self.cluster.patch(kind, namespace, name, Some("status"), patch);
        patched.unwrap_or_else(|error| panic!("{error:#}: {patch}"));
    }

    /// An object, or `None` if it does not exist.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        self.cluster.get(kind, namespace, name).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// The objects of some kinds (separated by commas) in a namespace; the empty namespace stands for all namespaces.
    pub fn list(&self, kinds: &str, namespace: &str) -> Vec<Value> {
        self.cluster.list(kinds, namespace).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Waits until a member of an object has a value; the empty value also stands for a missing member. Returns
    /// the object.
    pub fn await_value(&self, kind: &str, namespace: &str, name: &str, pointer: &str, wanted: &str) -> Value {
        wait_until(PATIENCE, || {
            let object = self.get(kind, namespace, name).ok_or_else(|| format!("{kind} {name}"))?;
            let value = object.pointer(pointer).cloned().unwrap_or_default();
            if value == wanted || (value.is_null() && wanted.is_empty()) {
                return Ok(object);
            }
            Err(format!("{kind} {name} {pointer}: {wanted:?}, is {value}; status: {}", object["status"]))
        })
    }

    /// Waits until an Instance has a phase. Returns the Instance.
    pub fn await_phase(&self, namespace: &str, name: &str, phase: &str) -> Value {
        self.await_value("instances", namespace, name, "/status/phase", phase)
    }

    /// Waits until the condition `Reconciled` of an Instance is false for that reason. Returns its message.
    pub fn await_fault(&self, namespace: &str, name: &str, reason: &str) -> String {
        wait_until(PATIENCE, || {
            let object = self.get("instances", namespace, name).ok_or_else(|| format!("Instance {name}"))?;
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|condition| condition["type"] == "Reconciled");
            match found {
                Some(found) if found["reason"] == reason && found["status"] == "False" => {
                    Ok(found["message"].as_str().unwrap_or_default().to_owned())
                }
                other => Err(format!("Instance {name}: {reason}, is {other:?}")),
            }
        })
    }

    /// Waits until a condition of an object refers to its current spec. Returns the object.
    pub fn await_observed(&self, kind: &str, namespace: &str, name: &str, type_: &str) -> Value {
        wait_until(PATIENCE, || {
            let object = self.get(kind, namespace, name).ok_or_else(|| format!("{kind} {name}"))?;
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|condition| condition["type"] == type_);
            let observed = found.map(|found| found["observedGeneration"].clone()).unwrap_or_default();
            if observed == object["metadata"]["generation"] {
                return Ok(object);
            }
            Err(format!(
                "{kind} {name}: {type_} of generation {}, is {found:?}",
                object["metadata"]["generation"]
            ))
        })
    }

    /// Deletes some objects and waits for their end.
    pub fn delete(&self, kind: &str, namespace: &str, names: &[&str]) {
        self.delete_as(kind, namespace, names, &PropagationPolicy::Background);
    }

    /// Deletes some objects and their dependents in the foreground, and waits for their end: dependents are
    /// deleted first.
    pub fn delete_in_foreground(&self, kind: &str, namespace: &str, names: &[&str]) {
        self.delete_as(kind, namespace, names, &PropagationPolicy::Foreground);
    }

    /// Deletes all objects of a kind in a namespace and waits for their end.
    pub fn delete_all(&self, kind: &str, namespace: &str) {
        self.delete_all_as(kind, namespace, PropagationPolicy::Background);
    }

    /// The same as [`Lab::delete_in_foreground`] for all objects of a kind in a namespace.
    pub fn delete_all_in_foreground(&self, kind: &str, namespace: &str) {
        self.delete_all_as(kind, namespace, PropagationPolicy::Foreground);
    }

    fn delete_all_as(&self, kind: &str, namespace: &str, policy: PropagationPolicy) {
        self.begin_delete_all(kind, namespace, policy);
        wait_until(PATIENCE, || {
            let ends = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
            match self.list(kind, namespace).into_iter().find(ends) {
                Some(object) => Err(format!("the end of {kind} {}", object["metadata"])),
                None => Ok(()),
            }
        });
    }

    fn begin_delete_all(&self, kind: &str, namespace: &str, policy: PropagationPolicy) {
        let begun = self.cluster.delete_all(kind, namespace, policy);
        begun.unwrap_or_else(|error| panic!("deletion: {error:#}"));
    }

    /// Deletes some objects without waiting for their end.
    pub fn begin_delete(&self, kind: &str, namespace: &str, names: &[&str]) {
        for name in names {
            self.send_delete(kind, namespace, name, &PropagationPolicy::Background);
        }
    }

    fn delete_as(&self, kind: &str, namespace: &str, names: &[&str], policy: &PropagationPolicy) {
        let uids: Vec<_> =
            names.iter().map(|name| (name, self.send_delete(kind, namespace, name, policy))).collect();
        for (name, uid) in uids {
            let Some(uid) = uid else { continue };
            wait_until(PATIENCE, || match self.get(kind, namespace, name) {
                Some(object) if object["metadata"]["uid"] == uid => {
                    Err(format!("the end of {kind} {name}: {}", object["metadata"]))
                }
                _ => Ok(()),
            });
        }
    }

    /// Sends the request. Returns the uid of the object if it still exists.
    fn send_delete(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        policy: &PropagationPolicy,
    ) -> Option<String> {
        let left = self.cluster.delete(kind, namespace, name, policy.clone());
        left.unwrap_or_else(|error| panic!("deletion: {error:#}"))
    }

    /// Waits until an object does not exist.
    pub fn await_gone(&self, kind: &str, namespace: &str, name: &str) {
        wait_until(PATIENCE, || match self.get(kind, namespace, name) {
            None => Ok(()),
            Some(_) => Err(format!("the end of {kind} {name}")),
        });
    }

    /// Creates the objects that the Instances of a test refer to: the namespace `workspace-<name>` with the
    /// [`TEMPLATES`], the namespace `tenant-<name>` with the Secret of MyDrive, and the Tenant `<name>`. Both
    /// namespaces have the selector label with the value `<name>`.
    pub fn create_fixtures(&self, name: &str) {
        self.apply(&format!(
            "apiVersion: v1
kind: Namespace
metadata: {{name: workspace-{name}, labels: {{crownlabs.polito.it/operator-selector: {name}}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: tenant-{name}, labels: {{crownlabs.polito.it/operator-selector: {name}}}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: mydrive-info, namespace: tenant-{name}}}
stringData: {{server-name: nfs.example.org, path: /exports/{name}}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: {name}}}
spec: {{firstName: Ada, lastName: Rossi, email: {name}@example.org}}
{}",
            templates(name)
        ));
    }

    /// Creates the Template `name`, a copy of one of these fixtures with other environments. An Instance of it gets
    /// these environments even if the daemon sees the Instance first. After a change of an existing Template, an
    /// Instance could still get the former environments.
    pub fn create_template(&self, fixtures: &str, name: &str, like: &str, environments: &Value) {
        let namespace = format!("workspace-{fixtures}");
        let mut spec = self.get("templates", &namespace, like).expect("the Template")["spec"].clone();
        spec["environmentList"] = environments.clone();
        let template = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Template",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        self.apply(&template.to_string());
    }

    /// Deletes the namespaces of [`Lab::create_fixtures`] without waiting for their end. An error here must not hide the
    /// failure of a test.
    pub fn delete_fixtures(&self, name: &str) {
        let (workspace, tenant) = (format!("workspace-{name}"), format!("tenant-{name}"));
        let _ = self.cluster.delete_all("instances", &tenant, PropagationPolicy::Background);
        for namespace in [workspace, tenant] {
            let _ = self.cluster.delete("namespaces", "", &namespace, PropagationPolicy::Background);
        }
    }
}

/// The [`TEMPLATES`] in the namespace `workspace-<name>`: a small one for each type of environment.
pub fn templates(name: &str) -> String {
    let template = |template: &str, environment: &str| {
        format!(
            "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: {template}, namespace: workspace-{name}}}
spec:
  prettyName: {template}
  description: for the tests
  workspace.crownlabs.polito.it/WorkspaceRef: {{name: {name}}}
  environmentList:
  - name: main
    mountMyDriveVolume: true
    resources: {{cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}}
    {environment}
"
        )
    };
    [
        ("vm", "{environmentType: VirtualMachine, image: \"r.example.org/vm:1\", persistent: false}"),
        ("vm-persistent", "{environmentType: VirtualMachine, image: \"r.example.org/vm:1\", persistent: true}"),
        ("cloudvm", "{environmentType: CloudVM, image: \"https://i.example.org/vm.img\", persistent: true, guiEnabled: false}"),
        ("container", "{environmentType: Container, image: \"r.example.org/app:1\", persistent: false}"),
        ("container-persistent", "{environmentType: Container, image: \"r.example.org/app:1\", persistent: true}"),
        ("standalone", "{environmentType: Standalone, image: \"r.example.org/web:1\", persistent: false, rewriteURL: true}"),
    ]
    .iter()
    .map(|(name, environment)| {
        let lines: Vec<&str> = environment.trim_matches(['{', '}']).split(", ").collect();
        template(name, &lines.join("\n    "))
    })
    .collect()
}

/// The names of the Templates that [`Lab::create_fixtures`] creates.
pub const TEMPLATES: [&str; 6] =
    ["vm", "vm-persistent", "cloudvm", "container", "container-persistent", "standalone"];

/// An Instance of one of the Templates that `create_fixtures(fixtures)` has created.
pub fn instance(fixtures: &str, name: &str, template: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {{name: {name}, namespace: tenant-{fixtures}}}
spec:
  template.crownlabs.polito.it/TemplateRef: {{name: {template}, namespace: workspace-{fixtures}}}
  tenant.crownlabs.polito.it/TenantRef: {{name: {fixtures}}}
"
    )
}
