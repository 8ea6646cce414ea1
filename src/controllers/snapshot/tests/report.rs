use serde_json::json;

use super::*;
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::reason;
use crate::controllers::snapshot::report::tell;

/// The reasons of a decision's events, and the resulting phase and reason.
pub fn told(observed: &Observed, decision: &Decision) -> (Vec<String>, SnapshotPhase, String) {
    let report = tell(&observed.snapshot, decision, now());
    let condition = report.status.conditions.first().expect("Ready");
    let events = report.events.iter().map(|event| event.reason.to_string()).collect();
    (events, report.status.phase.clone(), condition.reason.to_string())
}

#[test]
fn each_transition_is_reported_once() {
    let at = |phase: &str, reason: &str, message: &str| {
        let condition = json!({"type": "Ready", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2026-03-04T05:06:00Z"});
        observed(&json!({"status": {"phase": phase, "conditions": [condition]}}), &json!({}))
    };
    let owned = |reasons: &[&str]| reasons.iter().map(|&reason| reason.to_owned()).collect::<Vec<_>>();
    let pending = SnapshotPhase::Pending;
    let export = Decision::Export(export());
    assert_eq!(told(&usual(), &export), (owned(&["Validating"]), pending.clone(), "Creating".to_owned()));
    let wait = Decision::Wait { reason: reason::MACHINE_STOPPING, message: "wait".to_owned() };
    assert_eq!(
        told(&usual(), &wait),
        (owned(&["Validating", "MachineStopping"]), pending.clone(), "MachineStopping".to_owned())
    );
    let waiting = at("Pending", "MachineStopping", "wait");
    assert_eq!(told(&waiting, &wait), (owned(&[]), pending, "MachineStopping".to_owned()));
    let refuse = Decision::Refuse("no".to_owned());
    let failed = SnapshotPhase::Failed;
    assert_eq!(
        told(&usual(), &refuse),
        (owned(&["Validating", "ValidationError"]), failed.clone(), "ValidationError".to_owned())
    );
    assert_eq!(told(&waiting, &refuse).0, owned(&["ValidationError"]));
    let running = Decision::Running { destination: "r/a:1".to_owned(), trouble: None, next: None };
    let processing = SnapshotPhase::Processing;
    assert_eq!(told(&waiting, &running), (owned(&["Creation"]), processing.clone(), "JobRunning".to_owned()));
    let known = at("Processing", "JobRunning", "Job snap.one makes image r/a:1");
    assert_eq!(told(&known, &running), (owned(&[]), processing.clone(), "JobRunning".to_owned()));
    let complete = Decision::Complete { destination: "r/a:1".to_owned(), took: Some(240) };
    let completed = tell(&known.snapshot, &complete, now());
    assert_eq!(completed.events[0].message, "Image my-image created and uploaded in 4m0s");
    assert_eq!(completed.status.phase, SnapshotPhase::Completed);
    let ready = &completed.status.conditions[0];
    assert_eq!(
        (ready.status.as_str(), ready.message.as_str()),
        ("True", "Image r/a:1 created and uploaded in 4m0s")
    );
    assert_eq!(
        told(&known, &Decision::Fail("why".to_owned())),
        (owned(&["CreationFailed"]), failed, "CreationFailed".to_owned())
    );
    let ended = tell(&known.snapshot, &Decision::Ended, now());
    assert_eq!((ended.status, ended.events), (known.snapshot.status.clone(), Vec::new()));
}
