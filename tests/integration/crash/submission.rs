//! The daemon is killed after each of its writes for uploads; each exam has exactly one successful upload, and one that
//! fails is tried as often as configured, not more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::termination::without_times;
use super::{Scenario, assert_jobs_made, crash_after_every_write};
use crate::lab::{Lab, instance};
use crate::submission::hold_jobs;

/// Only this loop runs.
const CONFIG: &str = "controllers: {instance: {enabled: false}, publicExposure: {enabled: false}, \
                      sharedVolume: {enabled: false}, tenant: {enabled: false}, workspace: {enabled: false}, \
                      snapshot: {enabled: false}, submission: {enabled: true, maxAttempts: 2, retryDelay: 0s}}\n";

/// A stopped Instance whose upload is requested, and that was never started.
fn requested(fixtures: &str) -> String {
    let instance = instance(fixtures, "exam", "container-persistent");
    let labels = "{crownlabs.polito.it/instance-submission-requested: \"true\"}";
    let spec = "  running: false\n  contentUrls: {default: {destination: \"https://x.example\"}}\n";
    format!("{}{spec}", instance.replace("metadata: {", &format!("metadata: {{labels: {labels}, ")))
}

/// Uploads an exam, then deletes it. `reason` is that of the condition at the end.
fn scenario<'a>(fixtures: &'a str, namespace: &'a str, is_complete: fn(&Value) -> bool) -> Scenario<'a> {
    Scenario {
        name: "uploads",
        fixtures,
        steps: vec![
            Box::new(move |lab| lab.apply(&requested(fixtures))),
            Box::new(move |lab| {
                lab.delete_all_in_foreground("instances", namespace);
            }),
        ],
        list: Box::new(move |lab| {
            let objects = lab.list("instances.crownlabs.polito.it,jobs", namespace).into_iter();
            let objects = objects.map(|mut object| {
                if object["kind"] == "Job" {
                    // The Instance shows how the Job has ended.
                    object.as_object_mut().expect("an object").remove("status");
                    object["spec"].as_object_mut().expect("an object").remove("activeDeadlineSeconds");
                }
                without_times(object)
            });
            objects.collect()
        }),
        is_complete,
        configs: &[CONFIG],
    }
}

fn has_reason(object: &Value, reason: &str) -> bool {
    object["kind"] == "Job" || object["status"]["conditions"][0]["reason"] == reason
}

#[test]
fn an_upload_that_succeeds_survives_a_crash_after_every_write() {
    let lab = Lab::shared();
    let mark = lab.cluster.audit().mark().expect("the audit log");
    lab.create_fixtures("subcrash");
    let namespace = "tenant-subcrash";
    // The instance loop does not run; the pods of the Jobs wait for the claim.
    lab.apply(&format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: exam, namespace: {namespace}}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: disks, resources: {{requests: {{storage: 1Gi}}}}}}
"
    ));
    let scenario = scenario("subcrash", namespace, |object| has_reason(object, "SubmissionCompleted"));
    let writes = crash_after_every_write(&lab, &scenario);
    assert!(writes >= 6, "only {writes} writes");
    assert_jobs_made(&lab, mark, namespace, writes + 1);
    println!("{writes} crashes");
    lab.delete_fixtures("subcrash");
}

#[test]
fn an_upload_that_fails_survives_a_crash_after_every_write() {
    let lab = Lab::shared();
    let mark = lab.cluster.audit().mark().expect("the audit log");
    lab.create_fixtures("subcrashfail");
    let namespace = "tenant-subcrashfail";
    hold_jobs(&lab, namespace);
    let is_over = AtomicBool::new(false);
    let writes = thread::scope(|scope| {
        // Each Job fails a second after it was created.
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                for job in lab.list("jobs", namespace) {
                    let name = job["metadata"]["name"].as_str().unwrap_or_default();
                    if job["spec"]["activeDeadlineSeconds"].is_null() {
                        // It may be deleted meanwhile.
                        let patch = r#"{"spec": {"activeDeadlineSeconds": 1}}"#;
                        let _ = lab.cluster.patch("jobs", namespace, name, None, patch);
                    }
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        let scenario = scenario("subcrashfail", namespace, |object| has_reason(object, "SubmissionFailed"));
        let writes = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            crash_after_every_write(&lab, &scenario)
        }));
        is_over.store(true, Ordering::SeqCst);
        writes.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    assert!(writes >= 8, "only {writes} writes");
    assert_jobs_made(&lab, mark, namespace, 2 * (writes + 1));
    println!("{writes} crashes");
    lab.delete_fixtures("subcrashfail");
}
