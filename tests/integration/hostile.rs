//! Objects of the largest size that the API server accepts, which a student may create, do not increase the
//! memory of the daemon.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options as Start};
use crate::lab::{Lab, instance};
use cluster::Options;

const FIXTURES: &str = "hostile";
const NAMESPACE: &str = "tenant-hostile";
const SANDBOX: &str = "sandbox-hostile";
/// The Secrets, and the objects of every other kind.
const COUNTS: [usize; 2] = [60, 10];
/// The allowed growth of the daemon's memory, in MiB. The objects are 80 MiB; a daemon that collects the pages of a
/// list before it decodes them takes more than twice that.
const MORE: usize = 48;

/// A unique text of this many KiB.
fn text(seed: usize, kib: usize) -> String {
    let mut text = String::new();
    for n in 0..kib * 64 {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:016x}", (seed * 1_000_003 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    text
}

/// Objects in a sandbox with our labels, and Instances and Templates of the Tenant.
fn objects() -> Vec<Value> {
    let labels = json!({"crownlabs.polito.it/managed-by": "instance", "crownlabs.polito.it/instance": "x"});
    let [secrets, others] = COUNTS;
    let named = |kind: &str, n: usize, namespace: &str| json!({"name": format!("{kind}-{n}"), "namespace": namespace, "labels": labels});
    let noted = |kind: &str, n: usize, namespace: &str| {
        let mut metadata = named(kind, n, namespace);
        metadata["annotations"] = json!({"a": text(n, 100), "crownlabs.polito.it/b": text(n, 100)});
        metadata
    };
    let mut objects = Vec::new();
    for n in 0..secrets {
        objects.push(json!({"apiVersion": "v1", "kind": "Secret", "metadata": named("secret", n, SANDBOX),
            "stringData": {"userdata": text(n, 900)}}));
    }
    let group = "crownlabs.polito.it/v1alpha2";
    for n in 0..others {
        let (environment, template) = (text(n, 600), json!({"name": text(n, 900), "namespace": NAMESPACE}));
        objects.extend([
            json!({"apiVersion": "v1", "kind": "Service", "metadata": noted("service", n, SANDBOX),
                "spec": {"ports": [{"port": 80}]}}),
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": noted("claim", n, SANDBOX),
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            json!({"apiVersion": group, "kind": "Instance", "metadata": noted("instance", n, NAMESPACE),
                "spec": {"prettyName": text(n, 300), "template.crownlabs.polito.it/TemplateRef": template,
                    "tenant.crownlabs.polito.it/TenantRef": {"name": FIXTURES}}}),
            json!({"apiVersion": group, "kind": "Template", "metadata": noted("template", n, NAMESPACE),
                "spec": {"prettyName": "x", "description": environment, "environmentList": []}}),
        ]);
    }
    objects
}

#[test]
fn the_largest_possible_objects_take_no_memory_and_block_no_others() {
    let lab = Lab::start(Options { simulate: false, ..Options::default() });
    lab.create_fixtures(FIXTURES);
    lab.apply(&format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: {SANDBOX}, labels: {{crownlabs.polito.it/operator-selector: {FIXTURES}}}}}
"
    ));
    let admin = lab.admin();
    let start = || Daemon::start(&Start { kubeconfig: &admin, selector: FIXTURES, config: "" });
    let daemon = start();
    let before = daemon.size("VmHWM");
    drop(daemon);
    for object in objects() {
        lab.apply(&object.to_string());
    }
    let daemon = start();
    // Each of the large Instances is rejected, and another one is created.
    let why = lab.await_fault(NAMESPACE, "instance-0", "InvalidSpec");
    assert!(why.contains("but at most") && why.len() < 1000, "{why}");
    lab.apply(&instance(FIXTURES, "honest", "container"));
    lab.await_observed("instances", NAMESPACE, "honest", "Ready");
    let peak = daemon.size("VmHWM");
    eprintln!("peak memory: {before} MiB without these objects, {peak} MiB with them");
    assert!(peak < before + MORE, "{peak} MiB, {before} MiB without these objects");
}
