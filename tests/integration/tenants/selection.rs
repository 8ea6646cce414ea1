//! Objects that leave the selection of a daemon: a change of their labels releases them, and a change of the
//! configuration does not.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::shared_volumes::shared_volume;
use cluster::Options as ClusterOptions;

/// The annotation with the daemon that holds an object.
const MARK: &str = "crownlabs.polito.it/finalized-by";
const SELECTOR: &str = "/metadata/labels/crownlabs.polito.it~1operator-selector";

/// Waits until an object has neither our finalizers nor a mark.
fn await_released(lab: &Lab, (kind, namespace, name): (&str, &str, &str)) -> Value {
    wait_until(PATIENCE, || {
        let object = lab.get(kind, namespace, name).expect("there");
        let metadata = &object["metadata"];
        let is_free = metadata["finalizers"].is_null() && metadata["annotations"][MARK].is_null();
        is_free.then(|| object.clone()).ok_or_else(|| format!("{kind} {name} without finalizer: {metadata}"))
    })
}

/// Runs `crownlabs release` for a value of the selector label. Returns whether it succeeded, and its output.
fn release(lab: &Lab, value: &str, more: &[&str]) -> (bool, String) {
    let selector = format!("crownlabs.polito.it/operator-selector={value}");
    let output = Command::new(env!("CARGO_BIN_EXE_crownlabs"))
        .args(["release", "--selector", &selector, "--kubeconfig"])
        .arg(lab.admin())
        .args(more)
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// The objects of a test, each with one finalizer.
struct Taken {
    tenants: [String; 2],
    workspace: String,
}

impl Taken {
    /// Makes a daemon take two Tenants, a Workspace and a shared volume, and stops it.
    fn by(lab: &Lab, selector: &str, config: &str) -> Self {
        let taken = Self {
            tenants: ["ada", "carlo"].map(|name| format!("{selector}.{name}")),
            workspace: format!("{selector}-course"),
        };
        let mut daemon = Daemon::start(&Options { kubeconfig: &lab.admin(), selector, config });
        lab.apply(&workspace(selector, &taken.workspace, ""));
        taken.tenants.iter().for_each(|name| lab.apply(&tenant(selector, name, "")));
        lab.await_ready("workspaces", &taken.workspace);
        lab.apply(&shared_volume(&taken.workspace, "data", "1Gi"));
        lab.await_value("sharedvolumes", &taken.namespace(), "data", "/status/phase", "Ready");
        taken.tenants.iter().for_each(|name| drop(lab.await_ready("tenants", name)));
        end(&mut daemon);
        taken
    }

    fn namespace(&self) -> String {
        format!("workspace-{}", self.workspace)
    }

    /// The kind, namespace and name of each.
    fn objects(&self) -> [(&'static str, String, &str); 4] {
        let [ada, carlo] = &self.tenants;
        [
            ("tenants", String::new(), ada),
            ("tenants", String::new(), carlo),
            ("workspaces", String::new(), &self.workspace),
            ("sharedvolumes", self.namespace(), "data"),
        ]
    }

    fn versions(&self, lab: &Lab) -> Vec<Value> {
        let version = |(kind, namespace, name): (&str, String, &str)| {
            lab.get(kind, &namespace, name).expect("there")["metadata"]["resourceVersion"].clone()
        };
        self.objects().map(version).to_vec()
    }

    /// Waits until a daemon reports how many objects the selector has left behind.
    fn await_said(daemon: &Daemon, selector: &str, former: &str) {
        let said = [
            "[!] selector: selector ".to_owned(),
            format!("={selector} matches 0 Workspaces; 1 carry this installation's finalizer"),
            "matches 0 Tenants; 2 carry this installation's finalizer".to_owned(),
            format!("were taken under crownlabs.polito.it/operator-selector={former}"),
        ];
        daemon.wait_for("the line about the selector", |daemon| {
            let ready = daemon.ready().1;
            said.iter().all(|part| ready.contains(part))
        });
        let metric = "crownlabs_objects_of_former_selectors{kind=\"Tenants\"} 2";
        assert!(daemon.metrics().contains(metric), "{}", daemon.metrics());
        let log = daemon.log();
        let warnings = log.lines().filter(|line| line.contains("carry this installation's finalizer"));
        assert_eq!(warnings.count(), 1, "{log}");
    }
}

/// Stops a daemon gracefully.
fn end(daemon: &mut Daemon) {
    daemon.signal("TERM");
    daemon.wait(Duration::from_secs(30)).expect("it ends");
}

fn election(name: &str) -> String {
    format!("leaderElection: {{name: {name}}}\n")
}

/// Waits until the workers of a daemon run.
fn await_leading(daemon: &Daemon) {
    daemon.wait_for("leadership", |daemon| daemon.log().contains("working"));
}

#[test]
fn a_typo_in_the_selector_changes_no_object_and_can_be_corrected() {
    // A daemon whose selector matches nothing also counts the objects of other tests.
    let lab = Lab::start(ClusterOptions::default());
    let (ours, moved) = (election("slip"), election("slip-moved"));
    let taken = Taken::by(&lab, "slip", &ours);
    let before = taken.versions(&lab);
    // A typo, an additional label, and a typo in an installation that has another Lease now.
    for (selector, shown, config) in
        [("slpi", "slpi", &ours), ("slip, example.org/zone: north", "north", &ours), ("slpi", "slpi", &moved)]
    {
        let options = Options { kubeconfig: &lab.admin(), selector, config };
        let mut leader = Daemon::start(&options);
        await_leading(&leader);
        let standby = Daemon::start(&options);
        for daemon in [&leader, &standby] {
            Taken::await_said(daemon, shown, "slip");
        }
        assert_eq!(taken.versions(&lab), before, "{selector}: nothing is written");
        end(&mut leader);
    }
    let daemon = Daemon::start(&Options { kubeconfig: &lab.admin(), selector: "slip", config: &ours });
    await_leading(&daemon);
    daemon.wait_for("no line about the selector", |daemon| !daemon.ready().1.contains("] selector"));
    assert_eq!(taken.versions(&lab), before, "nothing has to be repaired");
    // An object whose own label changes is released.
    lab.kubectl(&[
        "label",
        "tenant",
        "slip.ada",
        "--overwrite",
        "crownlabs.polito.it/operator-selector=other",
    ]);
    await_released(&lab, ("tenants", "", "slip.ada"));
    lab.delete("sharedvolume", &taken.namespace(), &["data"]);
    lab.delete("tenant", "", &["slip.ada", "slip.carlo"]);
    lab.delete("workspace", "", &[&taken.workspace]);
}

#[test]
fn objects_of_a_former_selector_are_released_only_by_the_command() {
    let lab = Lab::start(ClusterOptions::default());
    let ours = election("left-ours");
    // Another daemon of this cluster: its replicas have their own Lease.
    let others = election("left-others");
    let _other =
        Daemon::start(&Options { kubeconfig: &lab.admin(), selector: "left-other", config: &others });
    lab.apply(&tenant("left-other", "left.other", ""));
    let other = lab.await_ready("tenants", "left.other");
    let taken = Taken::by(&lab, "before", &ours);
    let versions = taken.versions(&lab);
    let mut daemon = Daemon::start(&Options { kubeconfig: &lab.admin(), selector: "before", config: &ours });
    await_leading(&daemon);
    let (is_success, text) = release(&lab, "before", &[]);
    assert!(!is_success && text.contains("a daemon holds Lease crownlabs-system/left-ours"), "{text}");
    end(&mut daemon);
    let daemon = Daemon::start(&Options { kubeconfig: &lab.admin(), selector: "after", config: &ours });
    await_leading(&daemon);
    Taken::await_said(&daemon, "after", "before");
    // The label of one object is changed in the meantime. Its mark does not say why it is not selected, so it
    // stays, too.
    lab.kubectl(&[
        "label",
        "tenant",
        "before.carlo",
        "--overwrite",
        "crownlabs.polito.it/operator-selector=third",
    ]);
    let (is_success, text) = release(&lab, "befroe", &[]);
    assert!(is_success && text.contains("no object is managed under"), "{text}");
    let (is_success, text) = release(&lab, "before", &["--dry-run"]);
    assert!(is_success && text.contains("Tenant before.ada would be released"), "{text}");
    assert_eq!(taken.versions(&lab)[0], versions[0], "a dry run changes nothing");
    let (is_success, text) = release(&lab, "before", &[]);
    assert!(is_success && text.contains("SharedVolume workspace-before-course/data released"), "{text}");
    for (kind, namespace, name) in taken.objects() {
        await_released(&lab, (kind, &namespace, name));
    }
    let namespace = lab.get("namespaces", "", "tenant-before-ada").expect("nothing is deleted");
    assert!(namespace["metadata"]["deletionTimestamp"].is_null());
    let untouched = lab.get("tenants", "", "left.other").expect("there");
    assert_eq!(untouched["metadata"]["finalizers"], other["metadata"]["finalizers"], "that is another's");
    daemon.wait_for("no line about the selector", |daemon| !daemon.ready().1.contains("] selector"));
    // No daemon is needed to delete them.
    lab.delete("sharedvolume", &taken.namespace(), &["data"]);
    lab.delete("tenant", "", &["before.ada", "before.carlo", "left.other"]);
    lab.delete("workspace", "", &[&taken.workspace]);
}

#[test]
fn a_deletion_under_another_selector_is_completed() {
    let lab = Lab::shared();
    let ours = election("ends");
    let taken = Taken::by(&lab, "ends", &ours);
    let _daemon = Daemon::start(&Options { kubeconfig: &lab.admin(), selector: "ends-not", config: &ours });
    lab.delete("sharedvolume", &taken.namespace(), &["data"]);
    lab.delete("tenant", "", &["ends.ada", "ends.carlo"]);
    lab.delete("workspace", "", &[&taken.workspace]);
    lab.await_gone("namespaces", "", "tenant-ends-ada");
    lab.await_gone("namespaces", "", &taken.namespace());
}

#[test]
fn a_tenant_that_another_daemon_takes_over_keeps_its_volume() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let options = |selector| Options { kubeconfig: &admin, selector, config: "" };
    let _first = Daemon::start(&options("moves-a"));
    lab.apply(&tenant("moves-a", "mover", ""));
    let claim = ("persistentvolumeclaims", "mydrive-pvcs", "mover-drive");
    let prepared = "/metadata/labels/crownlabs.polito.it~1volume-provisioning";
    lab.await_value(claim.0, claim.1, claim.2, prepared, "completed");
    lab.await_ready("tenants", "mover");
    lab.kubectl(&[
        "label",
        "tenant",
        "mover",
        "--overwrite",
        "crownlabs.polito.it/operator-selector=moves-b",
    ]);
    await_released(&lab, ("tenants", "", "mover"));
    let _second = Daemon::start(&options("moves-b"));
    lab.await_value(claim.0, claim.1, claim.2, SELECTOR, "moves-b");
    lab.await_value("namespaces", "", "tenant-mover", SELECTOR, "moves-b");
    let mark = "/metadata/annotations/crownlabs.polito.it~1finalized-by";
    lab.await_value("tenants", "", "mover", mark, "crownlabs.polito.it/operator-selector=moves-b");
    lab.await_condition("tenants", "mover", "Ready", "Ready");
    lab.delete("tenant", "", &["mover"]);
}
