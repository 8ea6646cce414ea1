//! The daemon is killed after each of its writes for uploads, and after each upload; each exam has exactly one
//! successful upload and one mail with its receipt, and a failing upload is tried as often as configured, not more.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::termination::without_times;
use super::{
    Effects, Scenario, Step, assert_jobs_made, crash_after_every_write, crash_after_every_write_and_effect,
};
use crate::exam_server::{Answer, ExamServer};
use crate::expiration::mails;
use crate::lab::Lab;
use crate::submission::{config, hold_jobs, requested};
use crate::uploader::Uploader;

/// Uploads an exam, then deletes it after a check.
fn scenario<'a>(
    fixtures: &'a str,
    configs: &'a [&'a str],
    namespace: &'a str,
    destination: &'a str,
    check: Step<'a>,
    is_complete: fn(&Value) -> bool,
) -> Scenario<'a> {
    Scenario {
        name: "uploads",
        fixtures,
        steps: vec![
            Box::new(move |lab| lab.apply(&requested(fixtures, destination))),
            Box::new(move |lab| {
                check(lab);
                lab.delete_all_in_foreground("instances", namespace);
            }),
        ],
        list: Box::new(move |lab| {
            let objects = lab.list("instances.crownlabs.polito.it,jobs", namespace).into_iter();
            let objects = objects.map(|mut object| {
                if object["kind"] == "Job" {
                    // The Instance shows the result of the Job.
                    object.as_object_mut().expect("an object").remove("status");
                    object["spec"].as_object_mut().expect("an object").remove("activeDeadlineSeconds");
                }
                let record = "crownlabs.polito.it/mailed-submission-receipt";
                if let Some(time) = object["metadata"]["annotations"].get_mut(record) {
                    *time = "set".into();
                }
                without_times(object)
            });
            objects.collect()
        }),
        is_complete,
        configs,
    }
}

fn has_reason(object: &Value, reason: &str) -> bool {
    object["kind"] == "Job" || object["status"]["conditions"][0]["reason"] == reason
}

/// Repeats `chore` in a thread while `work` runs. Returns the result of `work`.
fn meanwhile<T>(mut chore: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                chore();
                thread::sleep(Duration::from_millis(100));
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::SeqCst);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn an_exam_is_uploaded_exactly_once_after_a_crash_at_any_write_or_upload() {
    let lab = Lab::shared();
    let mark = lab.cluster.audit().mark().expect("the audit log");
    let _course = lab.course("subcrash");
    let (namespace, server) = ("tenant-subcrash", ExamServer::start());
    server.set("up", Answer::Body(201, "thanks"));
    let destination = server.url("up");
    let (before, folder) = (Cell::new(0), tempfile::tempdir().expect("a folder"));
    let check: Step<'_> = Box::new(|_| {
        let arrived = server.uploads("up");
        assert_eq!(arrived[before.get()..], ["exam.zip"], "in this run");
        before.set(arrived.len());
        // A mail that was not recorded is sent again under the same name.
        assert_eq!(mails(folder.path()).len(), arrived.len(), "one for each run");
    });
    let is_complete = |object: &Value| {
        object["kind"] == "Job"
            || object["status"]["conditions"][0]["message"]
                == "the content was uploaded; the receipt was sent"
    };
    let config = format!(
        "{}integrations: {{mail: {{transport: file, folder: \"{}\", from: labs@example.org}}}}\n",
        config(),
        folder.path().display()
    );
    let configs = [&*config];
    let scenario = scenario("subcrash", &configs, namespace, &destination, check, is_complete);
    let effects = Effects::new("upload", server.answered());
    let mut uploader = Uploader::new(&lab, namespace);
    let (writes, uploads) =
        meanwhile(|| uploader.run(), || crash_after_every_write_and_effect(&lab, &scenario, &effects));
    assert!(writes >= 6, "only {writes} writes");
    assert_eq!(uploads, 1);
    let runs = writes + uploads + 1;
    assert_eq!(server.requests("up") as u64, runs, "one for each run, the last one included");
    assert_jobs_made(&lab, mark, namespace, runs);
    println!("{} crashes", writes + uploads);
}

#[test]
fn an_upload_that_fails_survives_a_crash_after_every_write() {
    let lab = Lab::shared();
    let mark = lab.cluster.audit().mark().expect("the audit log");
    let _course = lab.course("subcrashfail");
    let namespace = "tenant-subcrashfail";
    hold_jobs(&lab, namespace);
    // Each Job fails a second after it was created.
    let fail = || {
        for job in lab.list("jobs", namespace) {
            let name = job["metadata"]["name"].as_str().unwrap_or_default();
            if job["spec"]["activeDeadlineSeconds"].is_null() {
                // It may be deleted in the meantime.
                let patch = r#"{"spec": {"activeDeadlineSeconds": 1}}"#;
                let _ = lab.cluster.patch("jobs", namespace, name, None, patch);
            }
        }
    };
    let is_complete = |object: &Value| has_reason(object, "SubmissionFailed");
    let config = config();
    let configs = [&*config];
    let scenario =
        scenario("subcrashfail", &configs, namespace, "https://x.example", Box::new(|_| ()), is_complete);
    let writes = meanwhile(fail, || crash_after_every_write(&lab, &scenario));
    assert!(writes >= 8, "only {writes} writes");
    assert_jobs_made(&lab, mark, namespace, 2 * (writes + 1));
    println!("{writes} crashes");
}
