//! `crownlabs class` for a class of a hundred students, with the rights of a manager.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crownlabs::testing::clock;
use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options;
use cluster::proxy::Proxy;

const STUDENTS: usize = 100;
/// The student whose quota allows no machine.
const POOR: &str = "s007";
/// The counted resource of a quota.
const COUNT: &str = "count/instances.crownlabs.polito.it";

/// A course with its students and its manager.
struct Site {
    lab: Lab,
    /// In front of the API server, for the manager.
    proxy: Proxy,
    kubeconfig: PathBuf,
}

/// The result of a command: exit code, rows by student, standard error.
struct Done {
    code: Option<i32>,
    rows: Vec<Value>,
    said: String,
}

fn student(number: usize) -> String {
    format!("s{number:03}")
}

/// The course `tea` with a Template and the account `tea/manager`, which has the rights of its managers.
fn course() -> String {
    let mut yaml = "{apiVersion: v1, kind: Namespace, metadata: {name: workspace-tea}}
---
apiVersion: crownlabs.polito.it/v1alpha1
kind: Workspace
metadata: {name: tea}
spec: {prettyName: Tea, quota: {cpu: 2, memory: 4Gi, instances: 2}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: desktop, namespace: workspace-tea}
spec:
  prettyName: Desktop
  description: for the tests
  workspace.crownlabs.polito.it/WorkspaceRef: {name: tea}
  environmentList:
  - name: main
    environmentType: Container
    image: \"r.example.org/app:1\"
    persistent: true
    resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: manager, namespace: workspace-tea}}
"
    .to_owned();
    // As the workspace loop binds them.
    for role in ["crownlabs-manage-instances", "crownlabs-manage-tenants", "crownlabs-view-templates"] {
        let _ = write!(
            yaml,
            "---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: tea-{role}}},
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}},
subjects: [{{kind: ServiceAccount, name: manager, namespace: workspace-tea}}]}}
"
        );
    }
    for number in 0..STUDENTS {
        let name = student(number);
        let _ = write!(
            yaml,
            "---
{{apiVersion: v1, kind: Namespace, metadata: {{name: tenant-{name}}}}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: {name}, labels: {{crownlabs.polito.it/workspace-tea: user}}}}
spec: {{firstName: Student, lastName: \"{number:03}\", email: {name}@example.org}}
"
        );
    }
    yaml
}

impl Site {
    fn new() -> Self {
        let lab = Lab::start(Options { simulate: false, kubevirt: false, ..Options::default() });
        lab.apply(&course());
        let status = json!({"status": {
            "personalNamespace": {"created": true}, "sandboxNamespace": {"created": false}, "ready": true,
            "keycloak": {"userCreated": {"created": false}, "userConfirmed": false, "userSynchronized": false},
        }})
        .to_string();
        for number in 0..STUDENTS {
            lab.patch_status("tenants", "", &student(number), &status);
        }
        let proxy = Proxy::start(&lab.cluster).expect("the proxy");
        let kubeconfig =
            lab.cluster.kubeconfig_via(&proxy.url(), "workspace-tea", "manager").expect("a kubeconfig");
        Self { lab, proxy, kubeconfig }
    }

    /// Allows a student no machine.
    fn withhold(&self, name: &str) {
        self.lab.apply(&format!(
            "{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: none, namespace: tenant-{name}}}, spec: {{hard: {{{COUNT}: 0}}}}}}"
        ));
        let used = format!("/status/used/{}", COUNT.replace('/', "~1"));
        self.lab.await_value("resourcequotas", &format!("tenant-{name}"), "none", &used, "0");
    }

    /// Starts `crownlabs class`.
    fn begin(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crownlabs"));
        let command = command.arg("class").args(arguments).arg("--kubeconfig").arg(&self.kubeconfig);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts")
    }

    /// Runs `crownlabs class VERB tea -o json`.
    fn class(&self, verb: &str, more: &[&str]) -> Done {
        Done::of(self.begin(&[&[verb, "tea", "-o", "json"][..], more].concat()))
    }

    /// The machines of all students.
    fn machines(&self) -> Vec<Value> {
        self.lab.list("instances", "")
    }

    /// The number of running machines.
    fn running(&self) -> usize {
        self.machines().iter().filter(|machine| machine["spec"]["running"] == true).count()
    }
}

impl Done {
    fn of(child: Child) -> Self {
        let output = child.wait_with_output().expect("the command ends");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Self {
            code: output.status.code(),
            rows: result["rows"].as_array().cloned().unwrap_or_default(),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The number of rows with this state.
    fn count(&self, state: &str) -> usize {
        self.rows.iter().filter(|row| row["state"] == state).count()
    }
}

/// An identifier that begins now. Those with later letters are later also in the same second.
fn id(letter: char) -> String {
    format!("{}-{}", String::from(letter).repeat(16), clock::now().as_second())
}

/// Asserts that each student has exactly one machine, except those who have none.
fn assert_one_for_each(machines: &[Value], without: &[&str]) {
    let owners: Vec<String> = machines
        .iter()
        .map(|machine| machine["metadata"]["namespace"].as_str().unwrap_or_default().to_owned())
        .collect();
    let of_all: BTreeSet<String> = (0..STUDENTS)
        .map(student)
        .filter(|name| !without.contains(&name.as_str()))
        .map(|name| format!("tenant-{name}"))
        .collect();
    assert_eq!(owners.len(), of_all.len(), "one machine for each student");
    assert_eq!(owners.into_iter().collect::<BTreeSet<_>>(), of_all);
}

#[test]
fn an_action_on_a_class_happens_once_although_it_is_killed_and_sent_twice() {
    let site = Site::new();
    site.withhold(POOR);
    let start = id('a');
    kill_in_the_middle(&site, &start);
    // Two commands at once continue it.
    let arguments = ["start", "tea", "--template", "desktop", "-o", "json", "--id", &start];
    let both = [site.begin(&arguments), site.begin(&arguments)].map(Done::of);
    for done in &both {
        assert_eq!((done.code, done.count("done"), done.count("refused")), (Some(4), 99, 1), "{}", done.said);
        let refused = done.rows.iter().find(|row| row["user"] == POOR).expect("a row");
        assert!(refused["reason"].as_str().is_some_and(|why| why.contains("exceeded quota")), "{refused}");
    }
    assert_one_for_each(&site.machines(), &[POOR]);
    for machine in site.machines() {
        assert_eq!(machine["metadata"]["annotations"]["crownlabs.polito.it/class-action"], start.as_str());
        assert_eq!(machine["metadata"]["labels"]["crownlabs.polito.it/workspace"], "tea");
    }
    // The refused row is repeated.
    site.lab.delete("resourcequotas", &format!("tenant-{POOR}"), &["none"]);
    let done = site.class("start", &["--id", &start]);
    assert_eq!((done.code, done.count("done")), (Some(0), STUDENTS), "{}", done.said);
    assert_one_for_each(&site.machines(), &[]);
    stop(&site, &start);
    delete(&site);
}

/// Starts the action and kills the command after the fortieth machine.
fn kill_in_the_middle(site: &Site, start: &str) {
    let process = Arc::new(AtomicU32::new(0));
    let of_hook = Arc::clone(&process);
    site.proxy.on_nth_write(40, move || {
        let process = of_hook.load(Ordering::SeqCst).to_string();
        let status = Command::new("kill").args(["-s", "KILL", &process]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill");
    });
    let child = site.begin(&["start", "tea", "--template", "desktop", "--id", start]);
    process.store(child.id(), Ordering::SeqCst);
    let done = Done::of(child);
    assert_eq!(done.code, None, "it is killed: {}", done.said);
    assert!(done.said.contains(&format!("repeat the command with --id {start}")), "{}", done.said);
    let count = site.machines().len();
    assert!((40..STUDENTS - 1).contains(&count), "{count} machines");
}

/// Stops the class. A machine that a student starts again is not stopped by the same action.
fn stop(site: &Site, start: &str) {
    let first = id('b');
    let done = site.class("stop", &["--id", &first]);
    assert_eq!((done.code, done.count("done"), site.running()), (Some(0), STUDENTS, 0), "{}", done.said);
    let machines = site.machines();
    let machine = machines.iter().find(|machine| machine["metadata"]["namespace"] == "tenant-s000");
    let name = machine.and_then(|machine| machine["metadata"]["name"].as_str()).expect("a machine");
    site.lab.patch("instances", "tenant-s000", name, r#"{"spec": {"running": true}}"#);
    let again = site.class("stop", &["--id", &first]);
    assert_eq!((again.code, again.count("done"), site.running()), (Some(0), STUDENTS, 1), "{}", again.said);
    let second = site.class("stop", &["--id", &id('c')]);
    assert_eq!(
        (second.count("done"), second.count("unchanged"), site.running()),
        (1, 99, 0),
        "{}",
        second.said
    );
    // The older action does not undo the later ones.
    let older = site.class("start", &["--id", start]);
    assert_eq!((older.code, site.running()), (Some(0), 0), "{}", older.said);
}

/// Deletes the class: first nothing, then some machines, then all that are older than the action.
fn delete(site: &Site) {
    let dry = site.class("delete", &["--dry-run"]);
    assert_eq!((dry.code, dry.count("todo"), site.machines().len()), (Some(0), STUDENTS, STUDENTS));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("people.csv");
    std::fs::write(&file, "user,name\ns001,Student\ns002,Student\nnobody,Nobody\n").expect("written");
    let file = file.to_str().expect("a path");
    let some = site.class("delete", &["--people", file]);
    assert_eq!((some.code, some.count("done"), some.count("refused")), (Some(4), 2, 1), "{}", some.said);
    assert_eq!(site.machines().len(), STUDENTS - 2);
    let text = |more: &[&str]| {
        let child = site.begin(&[&["stop", "tea", "--dry-run"][..], more].concat());
        String::from_utf8(child.wait_with_output().expect("the command ends").stdout).expect("text")
    };
    let csv = text(&["-o", "csv"]);
    assert!(csv.starts_with("\u{feff}user,name,machine,state,reason\r\n"), "{csv}");
    assert_eq!(csv.lines().count(), STUDENTS + 1);
    assert!(text(&[]).ends_with("\n100 unchanged\n"), "{}", text(&[]));
    let all = id('d');
    let seconds: i64 = all.rsplit('-').next().and_then(|text| text.parse().ok()).expect("seconds");
    assert_eq!(site.class("delete", &["--id", &all]).count("done"), STUDENTS - 2);
    assert_eq!(site.machines().len(), 0);
    wait_until(PATIENCE, || {
        let is_later = clock::now().as_second() > seconds;
        is_later.then_some(()).ok_or_else(|| "the next second".to_owned())
    });
    let new = site.class("start", &["--template", "desktop"]);
    assert_eq!(new.count("done"), STUDENTS, "{}", new.said);
    let again = site.class("delete", &["--id", &all]);
    assert_eq!((again.count("unchanged"), site.machines().len()), (STUDENTS, STUDENTS), "{}", again.said);
}
