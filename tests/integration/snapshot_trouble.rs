//! Snapshots whose Jobs cannot start, or are rejected.

use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::snapshots::{await_reason, snapshot};
use cluster::config::only;

/// The configuration with only this loop, with further keys.
fn config(more: &str) -> String {
    only(&[("snapshot", &format!("vmRegistry: r.example.org, vmRegistrySecret: login{more}"))])
}

/// A stopped Instance without a disk.
fn stopped(fixtures: &str, name: &str) -> String {
    instance(fixtures, name, "vm-persistent").replace("spec:\n", "spec:\n  running: false\n")
}

#[test]
fn a_snapshot_that_cannot_start_reports_the_reason_and_does_not_block_the_next() {
    let (lab, namespace) = (Lab::shared(), "tenant-snapstuck");
    let _course = lab.course("snapstuck");
    let kubeconfig = lab.service_account();
    let config = config(", startDeadline: 30s");
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "snapstuck", config: &config });
    lab.apply(&stopped("snapstuck", "box"));
    lab.apply(&snapshot("snapstuck", "first", "box", "image"));
    let message = await_reason(&lab, namespace, "first", "Processing", "PodUnschedulable");
    assert!(message.contains("persistentvolumeclaim \"box\" not found"), "{message}");
    lab.apply(&snapshot("snapstuck", "second", "box", "image"));
    await_reason(&lab, namespace, "second", "Pending", "AnotherSnapshot");
    let message = await_reason(&lab, namespace, "first", "Failed", "CreationFailed");
    assert!(
        message.starts_with("it could not start within 30s (controllers.snapshot.startDeadline): pod "),
        "{message}"
    );
    assert!(message.contains("persistentvolumeclaim \"box\" not found"), "{message}");
    lab.await_gone("jobs", namespace, "first");
    await_reason(&lab, namespace, "second", "Processing", "PodUnschedulable");
    lab.apply(&format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: box, namespace: {namespace}}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: disks, resources: {{requests: {{storage: 1Gi}}}}}}
"
    ));
    lab.await_value("instancesnapshots", namespace, "second", "/status/phase", "Completed");
}

#[test]
fn a_rejected_job_does_not_make_the_status_flap() {
    let lab = Lab::shared_unsimulated();
    let mark = lab.cluster.audit().mark().expect("the audit log");
    let namespace = "tenant-snapquota";
    let course = lab.course("snapquota");
    let config = config("");
    let _daemon = course.daemon(&config);
    lab.apply(&format!(
        "apiVersion: v1
kind: ResourceQuota
metadata: {{name: none, namespace: {namespace}}}
spec: {{hard: {{count/jobs.batch: \"0\"}}}}
"
    ));
    lab.await_value("resourcequotas", namespace, "none", "/status/hard/count~1jobs.batch", "0");
    lab.apply(&stopped("snapquota", "box"));
    lab.apply(&snapshot("snapquota", "one", "box", "image"));
    let message = await_reason(&lab, namespace, "one", "Pending", "ResourceQuotaExceeded");
    assert!(message.starts_with("the Job cannot be created: "), "{message}");
    let refusals = || {
        let entries = lab.cluster.audit().since(mark).expect("the audit log");
        let refusals = entries.iter().filter(|entry| {
            (&*entry.verb, &*entry.resource, &*entry.namespace, entry.code)
                == ("create", "jobs", namespace, 403)
        });
        refusals.count()
    };
    let version = || {
        lab.get("instancesnapshots", namespace, "one").expect("there")["metadata"]["resourceVersion"].clone()
    };
    lab.await_event(namespace, "one", "ResourceQuotaExceeded: ");
    let (before, events) = (version(), lab.events(namespace, "one").len());
    // Each change of the Instance causes another attempt.
    for round in 0..3 {
        let tried = refusals();
        let change = format!(r#"{{"metadata": {{"annotations": {{"round": "{round}"}}}}}}"#);
        lab.patch("instances", namespace, "box", &change);
        wait_until(PATIENCE, || {
            (refusals() > tried).then_some(()).ok_or_else(|| format!("another refusal than {tried}"))
        });
    }
    assert_eq!((version(), lab.events(namespace, "one").len()), (before, events), "nothing is new");
    lab.delete("resourcequota", namespace, &["none"]);
    lab.patch("instances", namespace, "box", r#"{"metadata": {"annotations": {"round": "last"}}}"#);
    lab.await_value("instancesnapshots", namespace, "one", "/status/phase", "Processing");
    let job: Option<Value> = lab.get("jobs", namespace, "one");
    assert!(job.is_some());
}
