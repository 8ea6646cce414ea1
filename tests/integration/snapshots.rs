//! Snapshots: images of the disks of stopped virtual machines. The pods of the Jobs are simulated.

use serde_json::{Value, json};

use crate::bad_input::{STRANGE_NAMES, assert_no_strange_request};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

const CONFIG: &str = "controllers: {snapshot: {vmRegistry: r.example.org/vm, vmRegistrySecret: login}}\n";
const KIND: &str = "instancesnapshots";

/// A snapshot of the Instance `of` in the tenant namespace of these fixtures.
pub fn snapshot(fixtures: &str, name: &str, of: &str, image: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: InstanceSnapshot
metadata: {{name: {name}, namespace: tenant-{fixtures}}}
spec: {{instanceRef: {{name: {of}}}, imageName: {image}}}
"
    )
}

/// Waits until a snapshot has this phase, and its condition `Ready` this reason. Returns the message of the condition.
pub fn await_reason(lab: &Lab, namespace: &str, name: &str, phase: &str, reason: &str) -> String {
    wait_until(PATIENCE, || {
        let object = lab.get(KIND, namespace, name).ok_or_else(|| format!("InstanceSnapshot {name}"))?;
        let status = &object["status"];
        let ready = status["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == "Ready");
        match ready {
            Some(ready) if ready["reason"] == reason && status["phase"] == phase => {
                Ok(ready["message"].as_str().unwrap_or_default().to_owned())
            }
            _ => Err(format!("{name}: {phase} {reason}, is {status}")),
        }
    })
}

/// The reasons of the events about a snapshot, sorted by name.
fn reasons(lab: &Lab, namespace: &str, name: &str) -> Vec<String> {
    let mut reasons: Vec<String> = lab
        .list("events", namespace)
        .into_iter()
        .filter(|event| {
            event["involvedObject"]["name"] == name && event["involvedObject"]["kind"] == "InstanceSnapshot"
        })
        .map(|event| event["reason"].as_str().unwrap_or_default().to_owned())
        .collect();
    reasons.sort();
    reasons
}

#[test]
fn an_image_of_a_stopped_machine_is_created_exactly_once() {
    let lab = Lab::shared();
    let _course = lab.course("snap");
    let namespace = "tenant-snap";
    lab.kubectl(&["create", "secret", "generic", "login", "-n", namespace]);
    let kubeconfig = lab.service_account();
    let options = Options { kubeconfig: &kubeconfig, selector: "snap", config: CONFIG };
    let daemon = Daemon::start(&options);
    lab.apply(&instance("snap", "my.box", "vm-persistent"));
    lab.await_phase(namespace, "my.box", "Ready");
    lab.apply(&snapshot("snap", "early", "my.box", "box"));
    let message = await_reason(&lab, namespace, "early", "Failed", "ValidationError");
    assert_eq!(message, "the vm is running. It is not possible to complete the InstanceSnapshot early");
    assert_eq!(reasons(&lab, namespace, "early"), ["Validating", "ValidationError"]);

    // A snapshot that is created while the virtual machine still shuts down.
    lab.patch("instances", namespace, "my.box", r#"{"spec": {"running": false}}"#);
    lab.apply(&snapshot("snap", "first", "my.box", "my-image"));
    lab.await_value(KIND, namespace, "first", "/status/phase", "Completed");
    let job = lab.get("jobs", namespace, "first").expect("the Job stays");
    let machine = lab.get("virtualmachineinstances.kubevirt.io", namespace, "my-box");
    assert_eq!(machine, None, "it was off by then");
    let owner = lab.get(KIND, namespace, "first").expect("there");
    check_job(&job, &owner);
    let destination = &job["spec"]["template"]["spec"]["containers"][0]["args"][1];
    let destination = destination.as_str().expect("an argument").trim_start_matches("--destination=");
    assert!(destination.starts_with("r.example.org/vm/snap/my-image:2"), "{destination}");
    let message = await_reason(&lab, namespace, "first", "Completed", "Completed");
    assert!(message.starts_with(&format!("Image {destination} created and uploaded in ")), "{message}");
    let reported: Vec<String> =
        reasons(&lab, namespace, "first").into_iter().filter(|reason| reason != "MachineStopping").collect();
    assert_eq!(reported, ["Created", "Creation", "Validating"]);

    // Neither the deletion of the Job nor a restart of the daemon creates the image again.
    lab.delete("job", namespace, &["first"]);
    drop(daemon);
    let _daemon = Daemon::start(&options);
    // When a later snapshot is complete, the earlier ones have been reconciled, too.
    lab.apply(&snapshot("snap", "second", "my.box", "my-image"));
    lab.await_value(KIND, namespace, "second", "/status/phase", "Completed");
    assert_eq!(lab.get("jobs", namespace, "first"), None);
    let early = lab.get(KIND, namespace, "early").expect("there");
    assert_eq!(early["status"]["phase"], "Failed", "the machine is off now; a refusal is final");

    // A rejected snapshot is validated again when its spec changes.
    lab.patch(KIND, namespace, "early", r#"{"spec": {"imageName": "late"}}"#);
    lab.await_value(KIND, namespace, "early", "/status/phase", "Completed");
}

/// Checks the Job, field by field, without what the API server adds.
fn check_job(job: &Value, owner: &Value) {
    let metadata = &job["metadata"];
    assert_eq!(
        metadata["ownerReferences"],
        json!([{
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "InstanceSnapshot", "name": "first",
            "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }])
    );
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!((&job["spec"]["backoffLimit"], &pod["restartPolicy"]), (&json!(2), &json!("OnFailure")));
    assert_eq!(job["spec"]["ttlSecondsAfterFinished"], Value::Null);
    let generator = &pod["initContainers"][0];
    assert_eq!(generator["name"], "img-generator");
    assert_eq!(
        generator["volumeMounts"],
        json!([{"name": "my-box", "mountPath": "/data"}, {"name": "tmp-vol", "mountPath": "/img-tmp"}])
    );
    assert_eq!(
        generator["resources"],
        json!({"requests": {"cpu": "1", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}})
    );
    let pusher = &pod["containers"][0];
    assert_eq!(
        (&pusher["name"], &pusher["args"][0]),
        (&json!("docker-pusher"), &json!("--dockerfile=/workspace/Dockerfile"))
    );
    assert_eq!(
        pusher["resources"],
        json!({"requests": {"cpu": "1", "memory": "8Gi"}, "limits": {"cpu": "1", "memory": "32Gi"}})
    );
    assert_eq!(
        pod["volumes"],
        json!([
            {"name": "my-box", "persistentVolumeClaim": {"claimName": "my-box"}},
            {"name": "tmp-vol", "emptyDir": {}},
            {"name": "kaniko-secret", "secret": {
                "secretName": "login", "defaultMode": 420,
                "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
            }},
        ])
    );
}

/// Snapshots of Instances with impossible names are rejected, and no request uses these names.
fn instances_that_nothing_can_be(lab: &Lab, fixtures: &str) {
    let namespace = format!("tenant-{fixtures}");
    let mark = lab.cluster.audit().mark().expect("the audit log");
    for (name, strange) in STRANGE_NAMES {
        lab.apply(&snapshot(fixtures, name, &format!("\"{strange}\""), "a"));
        let message = await_reason(lab, &namespace, name, "Failed", "ValidationError");
        let sentence = format!("instance {strange} not found in namespace {namespace}.");
        assert!(message.starts_with(&sentence), "{message}");
    }
    assert_no_strange_request(lab, mark);
}

#[test]
fn a_rejected_snapshot_reports_the_reason() {
    let lab = Lab::shared();
    let course = lab.course("snapbad");
    let namespace = "tenant-snapbad";
    let _daemon = course.daemon(CONFIG);
    lab.kubectl(&["label", "namespace", namespace, "crownlabs.polito.it/name=snapbad"]);
    let stopped = |name: &str, template: &str| {
        instance("snapbad", name, template).replace("spec:\n", "spec:\n  running: false\n")
    };
    lab.apply(&stopped("box", "vm-persistent"));
    lab.apply(&stopped("brief", "vm"));
    lab.apply(&stopped("app", "container-persistent"));
    lab.apply(&stopped("orphan", "absent"));
    lab.apply(
        &stopped("borrowed", "vm-persistent").replace("TenantRef: {name: snapbad}", "TenantRef: {name: eve}"),
    );
    lab.kubectl(&["create", "job", "-n", namespace, "taken", "--image=busybox"]);
    instances_that_nothing_can_be(&lab, "snapbad");
    for (name, of, image, sentence) in [
        ("missing", "nobody", "a", "instance nobody not found in namespace tenant-snapbad."),
        ("brief", "brief", "a", "environment main is not a persistent VM."),
        ("app", "app", "a", "environment main is not a persistent VM."),
        ("orphan", "orphan", "a", "template absent not found in namespace workspace-snapbad."),
        ("named", "box", "Not/Good", "image name \"Not/Good\" is not valid in a registry"),
        (
            "borrowed",
            "borrowed",
            "a",
            "instance borrowed names tenant eve, but namespace tenant-snapbad belongs to tenant snapbad",
        ),
        ("taken", "box", "a", "a Job named taken already exists and does not belong to this snapshot"),
    ] {
        lab.apply(&snapshot("snapbad", name, of, image));
        let message = await_reason(&lab, namespace, name, "Failed", "ValidationError");
        assert!(message.starts_with(sentence), "{message}");
    }
    let foreign = snapshot("snapbad", "foreign", "box", "a")
        .replace("{name: box}", "{name: box, namespace: tenant-eve}");
    lab.apply(&foreign);
    let message = await_reason(&lab, namespace, "foreign", "Failed", "ValidationError");
    assert!(
        message.starts_with("instance box is in namespace tenant-eve: a snapshot is made in"),
        "{message}"
    );
    let chosen = snapshot("snapbad", "chosen", "box", "a")
        .replace("imageName", "environmentRef: {name: x}, imageName");
    lab.apply(&chosen);
    let message = await_reason(&lab, namespace, "chosen", "Failed", "ValidationError");
    assert!(message.starts_with("environment x not found in template vm-persistent."), "{message}");
    let empty = lab.try_kubectl(&["apply", "-f", "-"], &snapshot("snapbad", "empty", "box", "\"\""));
    assert!(empty.expect_err("the schema").contains("spec.imageName"));
    let jobs: Vec<Value> = lab.list("jobs", namespace);
    assert_eq!(jobs.len(), 1, "only the Job that the test has created: {jobs:?}");
}

#[test]
fn a_failed_job_fails_its_snapshot() {
    let lab = Lab::shared();
    let course = lab.course("snapfail");
    let namespace = "tenant-snapfail";
    let _daemon = course.daemon(CONFIG);
    // The quota rejects the Job's pod, so that the Job exceeds its deadline.
    lab.apply(&format!(
        "apiVersion: v1
kind: ResourceQuota
metadata: {{name: small, namespace: {namespace}}}
spec: {{hard: {{limits.memory: 1Gi}}}}
"
    ));
    lab.await_value("resourcequotas", namespace, "small", "/status/hard/limits.memory", "1Gi");
    lab.apply(&instance("snapfail", "box", "vm-persistent").replace("spec:\n", "spec:\n  running: false\n"));
    lab.await_phase(namespace, "box", "Off");
    lab.apply(&snapshot("snapfail", "slow", "box", "a"));
    await_reason(&lab, namespace, "slow", "Processing", "JobRunning");
    lab.patch("jobs", namespace, "slow", r#"{"spec": {"activeDeadlineSeconds": 1}}"#);
    let message = await_reason(&lab, namespace, "slow", "Failed", "CreationFailed");
    assert!(message.starts_with("DeadlineExceeded: "), "{message}");
    // A snapshot also fails if its Job is deleted.
    lab.apply(&snapshot("snapfail", "gone", "box", "a"));
    await_reason(&lab, namespace, "gone", "Processing", "JobRunning");
    lab.delete("job", namespace, &["gone"]);
    let message = await_reason(&lab, namespace, "gone", "Failed", "CreationFailed");
    assert_eq!(message, "Job gone was deleted before it was complete: make another snapshot");
    assert_eq!(reasons(&lab, namespace, "gone"), ["Creation", "CreationFailed", "Validating"]);
}
