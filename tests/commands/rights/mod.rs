//! No step of a release, or of the migration from the Go operators and back, lets a user do more than before: every
//! step with every role, with Helm 3 and with Helm 4. The daemon and the operators answer their webhooks while they
//! have pods.

mod attempts;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use attempts::{ATTEMPTS, Attempt, Guard, NEVER, OBJECTS};
use cluster::helm::helm4;
use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::lab::{Lab, PATIENCE, crd_files, wait_until};
use crate::people;
use crate::site::{NAMESPACE, OPERATORS, RELEASE, Site, helm};

/// Sends the attempts.
struct Sender {
    runtime: Runtime,
    client: Client,
}

impl Sender {
    fn new(lab: &Lab) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = runtime.block_on(lab.cluster.client()).expect("a client");
        Self { runtime, client }
    }

    /// Sends an attempt; the error is the rejection.
    fn send(&self, attempt: &Attempt) -> Result<(), String> {
        let request = Request::builder()
            .method(attempt.method)
            .uri(format!("{}?dryRun=All", attempt.path))
            .header("impersonate-user", attempt.who.name)
            .header(
                "content-type",
                if attempt.method == "PATCH" { "application/merge-patch+json" } else { "application/json" },
            );
        let grouped = attempt
            .who
            .groups
            .iter()
            .fold(request, |request, group| request.header("impersonate-group", *group));
        let request = grouped.body(attempt.body.as_bytes().to_vec()).expect("a request");
        let answer = self.runtime.block_on(self.client.request_text(request));
        answer.map(|_| ()).map_err(|error| error.to_string())
    }

    /// The responses to all attempts.
    fn send_all(&self) -> Vec<Result<(), String>> {
        ATTEMPTS.iter().map(|attempt| self.send(attempt)).collect()
    }
}

/// The pause between two rounds of the attacker. Without a pause it takes a core from all other tests.
const PAUSE: Duration = Duration::from_millis(20);

/// Repeats forbidden requests all the time, during all installations and removals.
struct Attacker {
    end: Arc<AtomicBool>,
    thread: thread::JoinHandle<(usize, Vec<String>)>,
}

impl Attacker {
    fn start(lab: &Arc<Lab>) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let (ended, lab) = (Arc::clone(&end), Arc::clone(lab));
        let thread = thread::spawn(move || {
            let sender = Sender::new(&lab);
            let (mut count, mut accepted) = (0, Vec::new());
            while !ended.load(Ordering::SeqCst) {
                for attempt in ATTEMPTS.iter().filter(|attempt| attempt.accepted == NEVER) {
                    count += 1;
                    if sender.send(attempt).is_ok() {
                        accepted.push(attempt.sentence());
                    }
                }
                thread::sleep(PAUSE);
            }
            (count, accepted)
        });
        Self { end, thread }
    }

    /// Ends the attacker. Panics if a request was accepted.
    fn end(self) {
        self.end.store(true, Ordering::SeqCst);
        let (count, accepted) = self.thread.join().expect("no panic");
        assert_eq!(accepted, Vec::<String>::new(), "these were accepted at some moment");
        assert!(count > 1_000, "only {count} attempts");
    }
}

/// A cluster where releases are installed and removed.
struct Walk<'a> {
    site: &'a Site,
    helm: &'a Path,
    sender: Sender,
}

impl Walk<'_> {
    fn helm(&self, arguments: &[&str]) {
        self.site.run(self.helm, arguments).unwrap_or_else(|error| panic!("helm {arguments:?}: {error}"));
    }

    /// Installs or upgrades the release of the daemon. Returns the output of Helm if it fails.
    fn release(&self, command: &str, more: &[&str]) -> Result<String, String> {
        self.release_in(NAMESPACE, command, more)
    }

    fn release_in(&self, namespace: &str, command: &str, more: &[&str]) -> Result<String, String> {
        let chart = [command, RELEASE, "manifests/chart", "-n", namespace, "--create-namespace"];
        let values = ["--set", "networkPolicy.podNetworks={10.244.0.0/16}"];
        self.site.run(self.helm, &[&chart[..], &values, more].concat())
    }

    fn uninstall(&self) {
        self.helm(&["uninstall", RELEASE, "-n", NAMESPACE]);
    }

    /// Upgrades the release to the selector of one label, and waits until a daemon with this selector leads.
    fn select(&self, key: &str, value: &str) {
        let selector = format!(r#"config.selector={{"crownlabs.polito.it/{key}": "{value}"}}"#);
        self.release("upgrade", &["--set-json", &selector]).expect("upgraded");
        self.site.lab.await_value(
            "leases",
            NAMESPACE,
            "crownlabs-controller-manager",
            "/metadata/annotations/crownlabs.polito.it~1selector",
            &format!("crownlabs.polito.it/{key}={value}"),
        );
    }

    fn scale_operators(&self, replicas: u8) {
        let (namespace, name) = OPERATORS;
        let patch = format!(r#"{{"spec": {{"replicas": {replicas}}}}}"#);
        self.site.lab.patch("deployments", namespace, name, &patch);
    }

    /// Waits until exactly the attempts that this guard accepts are accepted.
    fn assert_guarded(&self, step: &str, guard: Guard) {
        wait_until(PATIENCE, || {
            let answers = self.sender.send_all();
            let differing = ATTEMPTS
                .iter()
                .zip(&answers)
                .find(|(attempt, answer)| attempt.accepted[guard as usize] != answer.is_ok());
            match differing {
                None => Ok(()),
                Some((attempt, answer)) => {
                    Err(format!("{step}, {guard:?}: {}: {answer:?}", attempt.sentence()))
                }
            }
        });
    }

    /// Asserts that every attempt that the operators would reject is rejected.
    fn assert_at_most_operators(&self, step: &str) {
        for (attempt, answer) in ATTEMPTS.iter().zip(self.sender.send_all()) {
            assert!(
                attempt.accepted[Guard::Operators as usize] || answer.is_err(),
                "{step}: {}",
                attempt.sentence()
            );
        }
    }

    fn delete_webhooks(&self, name: &str) {
        for kind in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
            self.site.lab.delete(kind, "", &[name]);
        }
    }

    /// The uids of the webhook configurations of the daemon.
    fn webhooks(&self) -> Vec<Value> {
        ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]
            .map(|kind| {
                self.site.lab.get(kind, "", "crownlabs-webhook").expect(kind)["metadata"]["uid"].clone()
            })
            .into()
    }

    /// Without a daemon, an administrator creates a machine, and the controllers of Kubernetes delete it and its
    /// namespace.
    fn assert_kubernetes_goes_on(&self) {
        let lab = &self.site.lab;
        lab.apply(
            "{apiVersion: v1, kind: Namespace, metadata: {name: left, labels: {crownlabs.polito.it/operator-selector: production}}}",
        );
        for name in ["collected", "within"] {
            let machine = OBJECTS.split("---").last().expect("the machine");
            lab.apply(
                &machine.replace("name: desk", &format!("name: {name}")).replace("tenant-ada-rossi", "left"),
            );
        }
        // The garbage collector removes a finalizer from objects that are deleted in the foreground.
        lab.delete_in_foreground("instances", "left", &["collected"]);
        lab.delete("namespaces", "", &["left"]);
        lab.await_gone("namespaces", "", "left");
    }
}

/// From the Go operators to the daemon, through the steps of its release, and back. `force` are the options of Helm for
/// fields that other managers have written.
fn walk(helm: &Path, force: &[&str]) {
    let site = Site::with_endpoints(crd_files());
    let lab = &site.lab;
    let walk = Walk { site: &site, helm, sender: Sender::new(lab) };
    people::arrive(lab, &crownlabs::testing::clock::now().to_string());
    walk.helm(&["install", "crownlabs", "tests/commands/go-operators", "-n", "labs", "--create-namespace"]);
    lab.apply(&OBJECTS.replace("SELECTOR", "crownlabs.polito.it/operator-selector: production"));
    walk.assert_guarded("the operators run", Guard::Operators);
    let attacker = Attacker::start(lab);

    walk.scale_operators(0);
    walk.assert_at_most_operators("the operators have no pods");
    walk.release("install", &[&["--take-ownership"][..], force].concat()).expect("installed");
    walk.assert_at_most_operators("both have their webhooks");
    walk.delete_webhooks("crownlabs-operator");
    walk.assert_guarded("the release is installed", Guard::Daemon);

    releases(&walk);

    walk.helm(&[&["-n", "labs", "rollback", "crownlabs", "1"][..], force].concat());
    walk.scale_operators(1);
    walk.assert_at_most_operators("both have their webhooks, on the way back");
    walk.delete_webhooks("crownlabs-webhook");
    walk.assert_guarded("the operators run again", Guard::Operators);
    attacker.end();
}

/// A failed upgrade, a rollback, webhooks that are turned off and on, mistakes in the selector, and a release
/// that is removed, installed again, removed, and installed in another namespace.
fn releases(walk: &Walk<'_>) {
    // The API server rejects the last object, after all others have changed.
    let broken = r#"extraObjects=[{"apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace", "metadata": {"name": "Broken_Name"},
        "spec": {"prettyName": "x", "quota": {"cpu": 1, "memory": "1Gi", "instances": 1}}}]"#;
    let groups = "config.server.webhook.bypassGroups={system:masters,site:administrators}";
    let failure =
        walk.release("upgrade", &["--set", groups, "--set-json", broken]).expect_err("an upgrade that fails");
    assert!(failure.contains("Broken_Name"), "{failure}");
    walk.assert_guarded("the upgrade has failed", Guard::Daemon);
    walk.helm(&["rollback", RELEASE, "-n", NAMESPACE]);
    walk.assert_guarded("it is rolled back", Guard::Daemon);

    let kept = walk.webhooks();
    walk.release("upgrade", &["--set", "config.server.webhook.enabled=false"]).expect("upgraded");
    walk.assert_guarded("the webhooks are off", Guard::None);
    walk.release("upgrade", &["--reset-values"]).expect("upgraded");
    walk.assert_guarded("they are on again", Guard::Daemon);

    for (key, value) in [("operator-selector", "prodution"), ("operator-selektor", "production")] {
        walk.select(key, value);
        walk.assert_guarded("the selector has a mistake", Guard::Daemon);
    }
    walk.select("operator-selector", "production");
    walk.assert_guarded("the selector is correct again", Guard::Daemon);

    walk.uninstall();
    walk.assert_guarded("the release is gone", Guard::None);
    walk.assert_kubernetes_goes_on();
    walk.release("install", &[]).expect("installed again, without an option to take objects over");
    walk.assert_guarded("it is installed again", Guard::Daemon);
    walk.uninstall();
    walk.assert_guarded("it is gone again", Guard::None);
    // A release in another namespace takes the configurations over. Its pods do not run here.
    walk.release_in("elsewhere", "install", &["--take-ownership"]).expect("installed in another namespace");
    walk.assert_guarded("it is in another namespace", Guard::None);
    walk.helm(&["uninstall", RELEASE, "-n", "elsewhere"]);
    assert_eq!(walk.webhooks(), kept, "the same objects have been there all the time");
}

#[test]
fn no_step_of_a_release_widens_rights_with_helm_3() {
    walk(helm(), &[]);
}

#[test]
fn no_step_of_a_release_widens_rights_with_helm_4() {
    walk(helm4(), &["--force-conflicts"]);
}
