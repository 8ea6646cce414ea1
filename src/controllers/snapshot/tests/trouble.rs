use std::time::Duration;

use serde_json::{Value, json};

use super::report::told;
use super::*;
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::reason;
use crate::controllers::snapshot::plan::plan;
use crate::controllers::snapshot::report::report;
use crate::runtime::apply::Failure;
use crate::runtime::component::Component;
use crate::runtime::error::ApiError;
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::{Outcome, Reconciled};

/// A snapshot with a Job that was created at this time, the status of the Job, and its pods.
fn with_pods(created: &str, status: &Value, pods: &[Value]) -> Observed {
    let mut observed = with_job(observed(&json!({"status": {"phase": "Processing"}}), &json!({})), status);
    let mut job = Object::clone(observed.job().expect("the Job"));
    job.metadata.creation_timestamp = serde_json::from_value(created.into()).expect("a time");
    observed.children.set([Arc::new(job)]);
    observed.job_pods = pods.iter().map(object).collect();
    observed
}

/// A pod that was created with the Job, with this status.
fn pod(status: &Value) -> Value {
    json!({
        "metadata": {"name": "snap-1", "namespace": "tenant-ada", "creationTimestamp": "2026-03-04T05:05:07Z"},
        "status": status,
    })
}

/// A minute before [`now`].
const A_MINUTE_AGO: &str = "2026-03-04T05:05:07Z";

/// The reason and the message of the problem; empty without a problem.
fn trouble_of(observed: &Observed) -> (&'static str, String) {
    match next(observed) {
        Decision::Running { trouble: Some(trouble), .. } => (trouble.reason.as_str(), trouble.to_string()),
        Decision::Running { trouble: None, .. } => ("", String::new()),
        other => panic!("{other:?}"),
    }
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "initContainerStatuses": [
        {"name": "img-generator", "state": {"waiting": {"reason": reason, "message": message}}},
    ]})
}

#[test]
fn a_job_that_has_or_had_a_pod_does_not_wait_for_one() {
    let reason = |created: &str, status: Value| trouble_of(&with_pods(created, &status, &[])).0;
    assert_eq!(reason("2026-03-04T05:05:08Z", json!({})), "");
    assert_eq!(reason(A_MINUTE_AGO, json!({})), "WaitingForPod");
    assert_eq!(reason(A_MINUTE_AGO, json!({"active": 0})), "WaitingForPod");
    // The pod counts of the Job change before its conditions.
    for status in [json!({"active": 1}), json!({"succeeded": 1}), json!({"failed": 1})] {
        assert_eq!(reason(A_MINUTE_AGO, status.clone()), "", "{status}");
    }
    let starved = with_pods(A_MINUTE_AGO, &json!({}), &[]);
    let (events, phase, reason) = told(&starved, &next(&starved));
    assert_eq!((events, phase), (vec!["WaitingForPod".to_owned()], SnapshotPhase::Processing));
    assert_eq!(reason, "WaitingForPod");
}

#[test]
fn an_obstacle_to_a_pod_is_reported_within_a_minute() {
    let of = |created: &str, status: &Value| {
        trouble_of(&with_pods(created, &json!({"active": 1}), &[pod(status)]))
    };
    let now = "2026-03-04T05:06:07Z";
    for reason in ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"] {
        let (known, message) = of(now, &waiting(reason, "no such image"));
        assert_eq!(known, "ContainerNotStarted");
        assert_eq!(
            message,
            "container img-generator of pod snap-1 does not start, its image cannot be pulled: no such image"
        );
    }
    let (_, message) = of(now, &waiting("CreateContainerConfigError", ""));
    assert!(message.ends_with("it cannot be created: CreateContainerConfigError"), "{message}");
    let unplaced = |message: &str| {
        json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message},
        ]})
    };
    let claim = "0/3 nodes are available: persistentvolumeclaim \"my-box\" not found.";
    assert_eq!(
        of(now, &unplaced(claim)),
        ("PodUnschedulable", format!("pod snap-1 cannot be placed on a node: {claim}"))
    );
    // A volume cannot be mounted, and the status of the pod does not show it.
    let creating = waiting("PodInitializing", "");
    let mut missing = with_pods(A_MINUTE_AGO, &json!({"active": 1}), &[pod(&creating)]);
    assert_eq!(trouble_of(&missing).0, "PodNotStarted");
    missing.has_secret = false;
    let (reason, message) = trouble_of(&missing);
    assert_eq!(reason, "SecretMissing");
    assert!(message.starts_with("pod snap-1 waits for Secret registry-credentials: "), "{message}");
    // Once it is running, there is no problem.
    let running = json!({"phase": "Pending", "initContainerStatuses": [{"name": "img-generator", "state": {"running": {}}}]});
    let running = with_pods("2026-03-04T01:00:00Z", &json!({"active": 1}), &[pod(&running)]);
    assert!(
        matches!(next(&running), Decision::Running { trouble: None, next: None, .. }),
        "{:?}",
        next(&running)
    );
}

#[test]
fn a_job_that_has_not_started_in_time_is_deleted() {
    let at = |created: &str, status: &Value| {
        let mut observed = with_pods(created, &json!({"active": 1}), &[pod(status)]);
        let mut pod = Object::clone(&observed.job_pods[0]);
        pod.metadata.creation_timestamp = serde_json::from_value(created.into()).expect("a time");
        observed.job_pods = vec![Arc::new(pod)];
        observed
    };
    let pull = waiting("ImagePullBackOff", "no such image");
    let nearly = at("2026-03-04T04:36:08Z", &pull);
    let Decision::Running { next: left, .. } = next(&nearly) else { panic!("{:?}", next(&nearly)) };
    assert_eq!(left, Some(Duration::from_secs(1)));
    let late = at("2026-03-04T04:36:07Z", &pull);
    let plan = plan(&late, &config(), now());
    assert_eq!(plan.remove.len(), 1, "its pod must not start later, while the disk is used");
    let confirmed: Vec<&str> = plan.confirm.iter().map(|(kind, _)| kind.kind).collect();
    assert_eq!((confirmed, plan.requeue), (vec!["Job", "Pod"], Requeue::OnChange));
    let gone = Observed { children: Children::default(), job_pods: Vec::new(), ..late };
    let report = report(&Reconciled::of(&gone, &config(), &plan, &Outcome::default(), now()));
    assert_eq!(report.status.phase, SnapshotPhase::Failed);
    let message = report.status.conditions[0].message.to_string();
    assert!(message.starts_with("it could not start within 30m"), "{message}");
    assert!(message.ends_with("its image cannot be pulled: no such image"), "{message}");
    // The time counts from the last change: here the exporter ended a minute ago.
    let pusher = json!({"phase": "Pending",
        "initContainerStatuses": [
            {"name": "img-generator", "state": {"terminated": {"exitCode": 0, "finishedAt": A_MINUTE_AGO}}},
        ],
        "containerStatuses": [
            {"name": "docker-pusher", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}},
        ],
    });
    assert!(matches!(next(&at("2026-03-04T01:00:00Z", &pusher)), Decision::Running { trouble: Some(_), .. }));
    // A container that has run is retried.
    let failed = json!({"phase": "Pending", "initContainerStatuses": [{"name": "img-generator",
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-03-04T04:00:00Z"}},
    }]});
    assert!(matches!(next(&at("2026-03-04T04:00:00Z", &failed)), Decision::Running { .. }));
}

#[test]
fn the_reason_of_a_container_that_failed_is_in_the_status() {
    let log = "exporter: converting /data/disk.img\nexporter: /data/disk.img is empty\n";
    let failed = |exit: u8, reason: &str, message: &str| {
        json!({"phase": "Pending", "initContainerStatuses": [{"name": "img-generator",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
            "lastState": {"terminated": {"exitCode": exit, "reason": reason, "message": message}},
        }]})
    };
    let of = |status: &Value| trouble_of(&with_pods(A_MINUTE_AGO, &json!({"active": 1}), &[pod(status)]));
    let said =
        "container img-generator of pod snap-1 failed (exit code 1): exporter: /data/disk.img is empty";
    assert_eq!(of(&failed(1, "Error", log)), ("ContainerFailed", said.to_owned()));
    let (_, killed) = of(&failed(137, "OOMKilled", ""));
    assert!(killed.ends_with("failed (exit code 137, OOMKilled): it left no message"), "{killed}");
    // When the Job has failed, its pods may still exist or not.
    let end = json!({"failed": 1, "conditions": [
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"},
    ]});
    let whole = format!("BackoffLimitExceeded: too often; {said}");
    let ended = with_pods(A_MINUTE_AGO, &end, &[pod(&failed(1, "Error", log))]);
    assert_eq!(next(&ended), Decision::Fail(whole.clone()));
    let condition = json!({"type": "Ready", "status": "False", "reason": "ContainerFailed", "message": said});
    let mut reported = with_pods(A_MINUTE_AGO, &end, &[]);
    let status = json!({"status": {"phase": "Processing", "conditions": [condition]}});
    reported.snapshot = object(snapshot(&status));
    assert_eq!(next(&reported), Decision::Fail(whole));
    // The failure is final, so the Job is read from the API server first.
    let confirmed = plan(&reported, &config(), now()).confirm;
    assert_eq!(confirmed.iter().map(|(kind, _)| kind.kind).collect::<Vec<_>>(), ["Job"]);
}

/// A snapshot with this condition since a time.
fn stored(phase: &str, status: &str, reason: &str, since: &str) -> Observed {
    let condition = json!({"type": "Ready", "status": status, "reason": reason, "message": "the reason",
        "lastTransitionTime": since});
    observed(&json!({"status": {"phase": phase, "conditions": [condition]}}), &json!({}))
}

#[test]
fn a_snapshot_that_waits_too_long_fails_and_the_next_one_follows() {
    let machine = json!({"metadata": {"name": "my-box"}, "status": {"phase": "Running"}});
    let stopping = |since: &str| Observed {
        running: vec![object(&machine)],
        ..stored("Pending", "False", "MachineStopping", since)
    };
    assert!(matches!(next(&stopping("2026-03-04T04:36:08Z")), Decision::Wait { .. }));
    let Decision::Fail(message) = next(&stopping("2026-03-04T04:36:07Z")) else { panic!("it is too late") };
    assert!(message.ends_with("waiting until virtual machine my-box is off"), "{message}");
    // The deadline does not apply to a snapshot that waits for another one. Its own time begins when the other one has
    // ended.
    let metadata = json!({"name": "z", "uid": "s2", "creationTimestamp": "2026-03-04T06:00:00Z"});
    let other = object(snapshot(&json!({"metadata": metadata, "status": {"phase": "Processing"}})));
    let queued = Observed {
        others: vec![other],
        ..stored("Pending", "Unknown", "AnotherSnapshot", "2026-03-04T01:00:00Z")
    };
    assert!(matches!(next(&queued), Decision::Wait { reason: reason::ANOTHER_SNAPSHOT, .. }));
    let waits = Decision::Wait { reason: reason::ANOTHER_SNAPSHOT, message: "wait".to_owned() };
    let begun = super::super::report::tell(&usual().snapshot, &waits, now()).status;
    assert_eq!(begun.conditions[0].status, "Unknown");
    let turn = Observed { running: vec![object(&machine)], others: Vec::new(), ..queued };
    let report =
        report(&Reconciled::of(&turn, &config(), &plan(&turn, &config(), now()), &Outcome::default(), now()));
    assert_eq!(report.status.conditions[0].last_transition_time.0, now());
    // The time of a failed snapshot restarts too, when its spec changes.
    let wait = Decision::Wait { reason: reason::MACHINE_STOPPING, message: "wait".to_owned() };
    let revised = stored("Failed", "False", "ValidationError", "2026-03-04T01:00:00Z");
    let again = super::super::report::tell(&revised.snapshot, &wait, now()).status;
    assert_eq!(again.conditions[0].last_transition_time.0, now());
}

#[test]
fn a_refused_job_does_not_flip_the_status() {
    let refusal = |error: ApiError| {
        let failure =
            Failure { component: Component::Whole, kind: "Job", name: "snap.one".to_owned(), error };
        Outcome::of(vec![failure])
    };
    for (error, reason) in [
        (ApiError::QuotaExceeded("exceeded quota: small".to_owned()), "ResourceQuotaExceeded"),
        (ApiError::Forbidden("admission webhook denied".to_owned()), "JobRefused"),
    ] {
        let first = usual();
        let announced = plan(&first, &config(), now());
        assert!(announced.announce);
        let refused = report(&Reconciled::of(&first, &config(), &announced, &refusal(error.clone()), now()));
        let condition = &refused.status.conditions[0];
        assert_eq!((condition.reason.as_str(), &refused.status.phase), (reason, &SnapshotPhase::Pending));
        // The next attempt: nothing is announced, and the same rejection changes nothing.
        let known =
            observed(&json!({"status": serde_json::to_value(&refused.status).expect("JSON")}), &json!({}));
        let again = plan(&known, &config(), now());
        assert_eq!((again.announce, again.ensure.len()), (false, 1));
        let confirmed: Vec<&str> = again.confirm.iter().map(|(kind, _)| kind.kind).collect();
        assert_eq!(confirmed, ["InstanceSnapshot"]);
        let report = report(&Reconciled::of(&known, &config(), &again, &refusal(error), now()));
        assert_eq!((&report.status, report.events.len()), (&refused.status, 0));
    }
    let late = stored("Pending", "False", "ResourceQuotaExceeded", "2026-03-04T04:36:07Z");
    let Decision::Fail(message) = next(&late) else { panic!("it is too late") };
    assert!(message.ends_with("the reason"), "{message}");
}
