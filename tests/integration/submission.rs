//! The upload of a student's files. The pods of the Jobs are simulated: they succeed as soon as they run, or the test runs
//! the script of the uploader's image.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::exam_server::{Answer, ExamServer};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::termination::{await_condition, exam};
use crate::uploader::Uploader;
use cluster::audit::{AuditEntry, Mark};
use cluster::config::only;

pub const COMPLETED: &str = "/metadata/labels/crownlabs.polito.it~1instance-submission-completed";
const REQUESTED: &str = "/metadata/labels/crownlabs.polito.it~1instance-submission-requested";
const DESTINATION: &str = "  customizationUrls: {contentDestination: \"https://x.example/up?key=secret\"}\n";

/// The configuration with only this loop, without wait times.
pub fn config() -> String {
    only(&[("submission", "maxAttempts: 2, retryDelay: 0s")])
}

/// A stopped Instance whose upload is requested, and that was never started.
pub fn requested(fixtures: &str, destination: &str) -> String {
    let instance = instance(fixtures, "exam", "container-persistent");
    let labels = "{crownlabs.polito.it/instance-submission-requested: \"true\"}";
    let spec = format!("  running: false\n  contentUrls: {{default: {{destination: \"{destination}\"}}}}\n");
    format!("{}{spec}", instance.replace("metadata: {", &format!("metadata: {{labels: {labels}, ")))
}

/// Requests an upload, as the termination loop or a user does.
pub fn request(lab: &Lab, namespace: &str, name: &str) {
    let labels = json!({
        "crownlabs.polito.it/instance-submission-requested": "true",
        "crownlabs.polito.it/instance-submission-completed": "false",
    });
    lab.patch("instances", namespace, name, &json!({"metadata": {"labels": labels}}).to_string());
}

/// A quota that leaves no capacity for the pods of uploads, so that their Jobs stay.
pub fn hold_jobs(lab: &Lab, namespace: &str) {
    lab.apply(&format!(
        "apiVersion: v1
kind: ResourceQuota
metadata: {{name: small, namespace: {namespace}}}
spec: {{hard: {{limits.memory: 512Mi}}}}
"
    ));
    lab.await_value("resourcequotas", namespace, "small", "/status/hard/limits.memory", "512Mi");
}

/// Waits for a Job with another uid than `former`.
fn await_job(lab: &Lab, namespace: &str, name: &str, former: &Value) -> Value {
    wait_until(PATIENCE, || {
        let job = lab.get("jobs", namespace, name).filter(|job| job["metadata"]["uid"] != *former);
        job.ok_or_else(|| format!("Job {name}, other than {former}"))
    })
}

/// The number of Jobs that were created in a namespace.
pub fn created_jobs(lab: &Lab, namespace: &str) -> usize {
    let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
    let is_creation = |entry: &&AuditEntry| {
        entry.verb == "create"
            && entry.resource == "jobs"
            && entry.namespace == namespace
            && entry.code == 201
    };
    entries.iter().filter(is_creation).count()
}

#[test]
fn a_finished_exam_is_uploaded_exactly_once() {
    let lab = Lab::shared();
    let _course = lab.course("sub");
    let (namespace, server) = ("tenant-sub", ExamServer::start());
    let kubeconfig = lab.service_account();
    let config = "controllers:
  termination: {enabled: true, statusCheckInterval: 5s, allowCidrs: [127.0.0.0/8]}
  submission: {enabled: true}\n";
    let options = Options { kubeconfig: &kubeconfig, selector: "sub", config };
    let daemon = Daemon::start(&options);
    server.set("exam", Answer::Body(200, ""));
    let url = format!("  statusCheckUrl: \"{}\"\n{DESTINATION}", server.url("exam"));
    lab.apply(&exam("sub", "exam.1", "container-persistent", &url));
    lab.await_phase(namespace, "exam.1", "Ready");
    assert_eq!(lab.list("jobs", namespace).len(), 0);
    server.set("exam", Answer::Body(404, ""));
    let object = lab.await_value("instances", namespace, "exam.1", COMPLETED, "true");
    assert_eq!(object.pointer(REQUESTED), Some(&json!("false")));
    let time = object["status"]["automation"]["submissionTime"].clone();
    assert!(time.is_string(), "{object}");
    assert_eq!(object["status"]["environments"][0]["automation"]["submissionTime"], time);
    assert_eq!(object["status"]["phase"], "Off");
    let condition = await_condition(&lab, namespace, "exam.1", "Submitted", "SubmissionCompleted");
    assert_eq!(condition["status"], "True");
    lab.await_event(namespace, "exam.1", "SubmissionCompleted: ");
    let job = lab.get("jobs", namespace, "exam-1-submitter").expect("it is kept for a while");
    assert_eq!(job["status"]["completionTime"], time);
    check_job(&job, &object);
    // Neither a restart nor the deletion of the Job causes another upload.
    drop(daemon);
    let _daemon = Daemon::start(&options);
    lab.delete("job", namespace, &["exam-1-submitter"]);
    lab.apply(&exam("sub", "later", "container-persistent", &format!("  running: false\n{DESTINATION}")));
    lab.await_phase(namespace, "later", "Off");
    request(&lab, namespace, "later");
    lab.await_value("instances", namespace, "later", COMPLETED, "true");
    wait_until(PATIENCE, || match created_jobs(&lab, namespace) {
        2 => Ok(()),
        other => Err(format!("2 Jobs in the audit log, are {other}")),
    });
    assert_eq!(lab.get("jobs", namespace, "exam-1-submitter"), None);
}

/// Checks the Job in the API server, field by field, without the fields that the API server adds.
fn check_job(job: &Value, owner: &Value) {
    let metadata = &job["metadata"];
    assert_eq!(
        metadata["labels"],
        json!({
            "crownlabs.polito.it/component": "submitter",
            "crownlabs.polito.it/managed-by": "instance",
            "crownlabs.polito.it/instance": "exam.1",
            "crownlabs.polito.it/template": "container-persistent",
            "crownlabs.polito.it/tenant": "sub",
        })
    );
    assert_eq!(metadata["annotations"], json!({"crownlabs.polito.it/submission-attempt": "1"}));
    assert_eq!(
        metadata["ownerReferences"],
        json!([{
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": "exam.1",
            "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }])
    );
    let spec = &job["spec"];
    assert_eq!((&spec["backoffLimit"], &spec["ttlSecondsAfterFinished"]), (&json!(10), &Value::Null));
    let pod = &spec["template"]["spec"];
    assert_eq!(
        (&pod["restartPolicy"], &pod["automountServiceAccountToken"]),
        (&json!("OnFailure"), &json!(false))
    );
    assert_eq!(
        pod["securityContext"],
        json!({"runAsUser": 1010, "runAsGroup": 1010, "fsGroup": 1010, "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"}})
    );
    let container = &pod["containers"][0];
    assert_eq!(container["image"], concat!("crownlabs/uploader:", env!("CARGO_PKG_VERSION")));
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}})
    );
    assert_eq!(
        container["env"],
        json!([
            {"name": "SOURCE_PATH", "value": "/media/data"},
            {"name": "DESTINATION_URL", "value": "https://x.example/up?key=secret"},
            {"name": "FILENAME", "value": "exam.1"},
        ])
    );
    assert_eq!(
        pod["volumes"],
        json!([{"name": "persistent", "persistentVolumeClaim": {"claimName": "exam-1"}}])
    );
}

#[test]
fn the_upload_waits_until_the_instance_is_off() {
    let lab = Lab::shared();
    let course = lab.course("suboff");
    let namespace = "tenant-suboff";
    let config = "controllers: {submission: {enabled: true}}\n";
    let _daemon = course.daemon(config);
    lab.apply(&exam("suboff", "exam", "vm-persistent", DESTINATION));
    lab.await_phase(namespace, "exam", "Ready");
    request(&lab, namespace, "exam");
    let condition = await_condition(&lab, namespace, "exam", "Submitted", "WaitingForOff");
    assert_eq!(condition["status"], "Unknown");
    assert_eq!(
        condition["message"],
        "the upload waits until the Instance is off, at most 10m: spec.running is true"
    );
    assert_eq!(lab.list("jobs", namespace).len(), 0);
    lab.patch("instances", namespace, "exam", r#"{"spec": {"running": false}}"#);
    await_job(&lab, namespace, "exam-submitter", &Value::Null);
    assert_eq!(lab.get("virtualmachineinstances.kubevirt.io", namespace, "exam"), None, "it was off by then");
    await_condition(&lab, namespace, "exam", "Submitted", "SubmissionCompleted");
}

#[test]
fn a_success_counts_even_after_a_long_absence_of_the_daemon() {
    let lab = Lab::shared();
    let _course = lab.course("subaway");
    let namespace = "tenant-subaway";
    let kubeconfig = lab.service_account();
    let config = "controllers: {submission: {enabled: true}}\n";
    let options = Options { kubeconfig: &kubeconfig, selector: "subaway", config };
    let daemon = Daemon::start(&options);
    lab.apply(&exam("subaway", "exam", "container-persistent", &format!("  running: false\n{DESTINATION}")));
    lab.await_phase(namespace, "exam", "Off");
    hold_jobs(&lab, namespace);
    request(&lab, namespace, "exam");
    let job = await_job(&lab, namespace, "exam-submitter", &Value::Null);
    await_condition(&lab, namespace, "exam", "Submitted", "Uploading");
    drop(daemon);
    lab.delete("resourcequota", namespace, &["small"]);
    let done = wait_until(PATIENCE, || {
        let job = lab.get("jobs", namespace, "exam-submitter").expect("the Job");
        if job["status"]["completionTime"].is_string() { Ok(job) } else { Err(job["status"].to_string()) }
    });
    let _daemon = Daemon::start(&options);
    let object = lab.await_value("instances", namespace, "exam", COMPLETED, "true");
    let automation = &object["status"]["automation"];
    assert_eq!(automation["submissionTime"], done["status"]["completionTime"]);
    assert_eq!(automation["submissionAttempts"], 1);
    let kept = lab.get("jobs", namespace, "exam-submitter").expect("the Job");
    assert_eq!(kept["metadata"]["uid"], job["metadata"]["uid"]);
}

/// Makes the Job fail, which has no pods.
fn let_fail(lab: &Lab, namespace: &str, name: &str) {
    lab.patch("jobs", namespace, name, r#"{"spec": {"activeDeadlineSeconds": 1}}"#);
}

#[test]
fn a_failed_job_is_replaced_a_limited_number_of_times() {
    let lab = Lab::shared();
    let _course = lab.course("subfail");
    let (namespace, name) = ("tenant-subfail", "exam-submitter");
    let kubeconfig = lab.service_account();
    let config = "controllers: {submission: {enabled: true, maxAttempts: 2, retryDelay: 0s}}\n";
    let options = Options { kubeconfig: &kubeconfig, selector: "subfail", config };
    let daemon = Daemon::start(&options);
    lab.apply(&exam("subfail", "exam", "container-persistent", &format!("  running: false\n{DESTINATION}")));
    lab.await_phase(namespace, "exam", "Off");
    hold_jobs(&lab, namespace);
    request(&lab, namespace, "exam");
    let first = await_job(&lab, namespace, name, &Value::Null);
    let_fail(&lab, namespace, name);
    let second = await_job(&lab, namespace, name, &first["metadata"]["uid"]);
    let attempts = "/status/automation/submissionAttempts";
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, "exam").expect("there");
        (object.pointer(attempts) == Some(&json!(2)))
            .then_some(())
            .ok_or_else(|| object["status"].to_string())
    });
    // A restart does not reset the count.
    drop(daemon);
    let_fail(&lab, namespace, name);
    let _daemon = Daemon::start(&options);
    let condition = await_condition(&lab, namespace, "exam", "Submitted", "SubmissionFailed");
    let message = condition["message"].as_str().unwrap_or_default();
    let begin =
        "the content could not be uploaded in 2 attempts: Job exam-submitter has failed: DeadlineExceeded: ";
    assert!(message.starts_with(begin), "{message}");
    let end = "kubectl label instance -n tenant-subfail exam \
               crownlabs.polito.it/instance-submission-requested=true --overwrite";
    assert!(message.ends_with(end), "{message}");
    lab.await_event(namespace, "exam", "SubmissionFailed: ");
    let object = lab.get("instances", namespace, "exam").expect("there");
    let both = (object.pointer(REQUESTED), object.pointer(COMPLETED));
    assert_eq!(both, (Some(&json!("false")), Some(&json!("false"))));
    let kept = lab.get("jobs", namespace, name).expect("it is kept for its log");
    assert_eq!(kept["metadata"]["uid"], second["metadata"]["uid"]);
    // A new request, as the message advises, starts from the beginning.
    lab.delete("resourcequota", namespace, &["small"]);
    let command: Vec<&str> = end.split(' ').skip(1).collect();
    lab.kubectl(&command);
    await_condition(&lab, namespace, "exam", "Submitted", "SubmissionCompleted");
    let object = lab.get("instances", namespace, "exam").expect("there");
    assert_eq!(object.pointer(attempts), Some(&json!(1)));
}

#[test]
fn a_deleted_job_counts_and_the_next_one_waits_for_its_time() {
    let lab = Lab::shared();
    let course = lab.course("subgone");
    let (namespace, name) = ("tenant-subgone", "exam-submitter");
    let config = |delay: &str| {
        format!("controllers: {{submission: {{enabled: true, maxAttempts: 3, retryDelay: {delay}}}}}\n")
    };
    let start = |config: &str| course.daemon(config);
    let daemon = start(&config("1h"));
    lab.apply(&exam("subgone", "exam", "container-persistent", &format!("  running: false\n{DESTINATION}")));
    lab.await_phase(namespace, "exam", "Off");
    hold_jobs(&lab, namespace);
    request(&lab, namespace, "exam");
    await_job(&lab, namespace, name, &Value::Null);
    let_fail(&lab, namespace, name);
    let condition = await_condition(&lab, namespace, "exam", "Submitted", "Retrying");
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("Job exam-submitter has failed: "), "{condition}");
    lab.delete("job", namespace, &[name]);
    let await_deleted = || {
        wait_until(PATIENCE, || {
            let found = await_condition(&lab, namespace, "exam", "Submitted", "Retrying");
            let is_told = found["message"] == "Job exam-submitter was deleted; attempt 2 of 3 follows";
            is_told.then_some(()).ok_or_else(|| found.to_string())
        });
    };
    await_deleted();
    assert_eq!((lab.list("jobs", namespace).len(), created_jobs(&lab, namespace)), (0, 1));
    // The next process does not begin at once either. Its next action shows that it has seen the Instance.
    drop(daemon);
    let daemon = start(&config("1h"));
    lab.apply(&exam("subgone", "other", "container-persistent", &format!("  running: false\n{DESTINATION}")));
    lab.await_phase(namespace, "other", "Off");
    request(&lab, namespace, "other");
    await_job(&lab, namespace, "other-submitter", &Value::Null);
    assert_eq!(lab.get("jobs", namespace, name), None);
    drop(daemon);
    // The second attempt happens at its time.
    let _daemon = start(&config("0s"));
    let second = await_job(&lab, namespace, name, &Value::Null);
    assert_eq!(second["metadata"]["annotations"]["crownlabs.polito.it/submission-attempt"], "2");
}

#[test]
fn a_pod_that_dies_after_its_upload_is_replaced_and_uploads_again() {
    let lab = Lab::shared();
    let course = lab.course("subpod");
    let (namespace, server) = ("tenant-subpod", ExamServer::start());
    server.set("up", Answer::Body(200, ""));
    let _daemon = course.daemon(&config());
    lab.apply(&requested("subpod", &server.url("up")));
    let mut uploader = Uploader::new(&lab, namespace);
    let pod = wait_until(PATIENCE, || uploader.pods().pop().ok_or_else(|| "a pod".to_owned()));
    assert!(uploader.post(&pod));
    lab.begin_delete("pods", namespace, &[pod["metadata"]["name"].as_str().expect("a name")]);
    let object = uploader.await_upload("exam");
    assert_eq!(server.uploads("up"), ["exam.zip", "exam.zip"]);
    let receipts = server.receipts("up");
    assert_eq!(receipts[0], receipts[1], "the same bytes");
    assert_eq!(object["status"]["automation"]["submissionAttempts"], 1, "by the same Job");
}

#[test]
fn each_environment_with_a_destination_is_uploaded() {
    let lab = Lab::shared();
    let course = lab.course("subenv");
    let namespace = "tenant-subenv";
    let environment = |name: &str, persistent: bool| {
        json!({
            "name": name, "environmentType": "Container", "image": "r.example.org/app:1", "persistent": persistent,
            "mountMyDriveVolume": false,
            "resources": {"cpu": 1, "reservedCPUPercentage": 10, "memory": "64Mi", "disk": "1Gi"},
        })
    };
    let list = [environment("web", false), environment("db", true), environment("app", true)];
    let patch = json!({"spec": {"environmentList": list}}).to_string();
    lab.patch("templates", "workspace-subenv", "container", &patch);
    let config = "controllers: {submission: {enabled: true}}\n";
    let _daemon = course.daemon(config);
    let urls = "  running: false
  contentUrls:
    web: {destination: \"https://x.example/web\"}
    db: {destination: \"https://x.example/db\"}
    app: {destination: \"https://x.example/app\"}\n";
    lab.apply(&exam("subenv", "exam", "container", urls));
    lab.await_phase(namespace, "exam", "Off");
    request(&lab, namespace, "exam");
    let object = lab.await_value("instances", namespace, "exam", COMPLETED, "true");
    assert_eq!(object["metadata"]["labels"]["crownlabs.polito.it/environment-name"], "app");
    let uploaded: Vec<bool> = (0..3)
        .map(|at| object["status"]["environments"][at]["automation"]["submissionTime"].is_string())
        .collect();
    assert_eq!(uploaded, [false, true, true]);
    assert!(object["status"]["automation"]["submissionTime"].is_string());
    let mut names: Vec<Value> =
        lab.list("jobs", namespace).into_iter().map(|job| job["metadata"]["name"].clone()).collect();
    names.sort_by_key(Value::to_string);
    assert_eq!(names, ["exam-app-submitter", "exam-db-submitter"]);
}
