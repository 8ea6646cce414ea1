//! The daemon is killed after each of its writes for exams with a status URL, and after each response to its queries;
//! the resulting objects are the same.

use serde_json::Value;

use super::{Effects, Scenario, crash_after_every_write_and_effect};
use crate::exam_server::{Answer, ExamServer};
use crate::lab::Lab;
use crate::termination::exam;
use cluster::config::only;

/// The object without the times of the queries to the URL.
pub fn without_times(mut object: Value) -> Value {
    for time in ["lastCheckTime", "terminationTime", "submissionTime", "submissionAttemptTime"] {
        if let Some(time) = object["status"]["automation"].get_mut(time) {
            *time = "set".into();
        }
    }
    object
}

#[test]
fn terminations_survive_a_crash_after_every_write_and_query() {
    let lab = Lab::shared();
    let _course = lab.course("termcrash");
    let (namespace, server) = ("tenant-termcrash", ExamServer::start());
    server.set("over", Answer::Body(404, ""));
    server.set("kept", Answer::Body(200, r#"{"deadline": "2030-01-02T03:04:05Z"}"#));
    let scenario = Scenario {
        name: "terminations",
        fixtures: "termcrash",
        steps: vec![
            Box::new(|lab| {
                for name in ["over", "kept"] {
                    let url = server.url(name);
                    let spec = format!(
                        "  statusCheckUrl: \"{url}\"\n  contentUrls: {{main: {{destination: \"https://x.example\"}}}}\n"
                    );
                    lab.apply(&exam("termcrash", name, "container-persistent", &spec));
                    // The status that the instance loop writes.
                    let ready = r#"{"status": {"phase": "Ready", "initialReadyTime": "9s"}}"#;
                    lab.patch_status("instances", namespace, name, ready);
                    let watched = r#"{"crownlabs.polito.it/watch-for-instance-termination": "true"}"#;
                    lab.patch(
                        "instances",
                        namespace,
                        name,
                        &format!(r#"{{"metadata": {{"labels": {watched}}}}}"#),
                    );
                }
            }),
            Box::new(|lab| {
                lab.delete_all("instances", namespace);
            }),
        ],
        list: Box::new(|lab| {
            lab.list("instances.crownlabs.polito.it", namespace).into_iter().map(without_times).collect()
        }),
        is_complete: |object| {
            matches!(object["status"]["conditions"][0]["reason"].as_str(), Some("Kept" | "Terminated"))
        },
        configs: &[&only(&[("termination", "confirmAfter: 5s, allowCidrs: [127.0.0.0/8]")])],
    };
    let effects = Effects::new("answer", server.answered());
    let (writes, answers) = crash_after_every_write_and_effect(&lab, &scenario, &effects);
    assert!(writes >= 4, "only {writes} writes");
    assert_eq!(answers, 3, "one that keeps, and two that end");
    println!("{} crashes", writes + answers);
}
