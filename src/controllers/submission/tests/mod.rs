//! Tests of decisions, plans, Jobs and reports, with JSON as the API server returns it.

mod decide;
mod job;
mod receipts;
mod report;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Settings;
use super::decide::{Decision, Stage, Work, decide};
use super::observe::{Observed, Upload};
use super::receipt_mail::Mailing;
use crate::api::Object;
use crate::api::instance::InstanceKind;
use crate::api::openings::Site;
use crate::config::SubmissionConfig;
use crate::controllers::cleanup::delivery::Sent;
use crate::controllers::cleanup::ending::Effect;
use crate::fixtures::{object, time};
use crate::kinds::Job;
use crate::runtime::children::Children;
use crate::runtime::merge;
use crate::runtime::object_events::Events;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Outcome, Reconciled, Report};

const REQUESTED: &str = "crownlabs.polito.it/instance-submission-requested";
const COMPLETED: &str = "crownlabs.polito.it/instance-submission-completed";
const DESTINATION: &str = "https://exams.example.org/upload?key=secret";

fn now() -> Timestamp {
    time("2026-03-04T05:00:00Z")
}

fn config() -> SubmissionConfig {
    SubmissionConfig { max_attempts: 3, ..SubmissionConfig::default() }
}

fn settings(config: SubmissionConfig) -> Settings {
    let site = Site { dashboard: String::new(), website: "labs.example.org".to_owned() };
    Settings { config, site, sends: true }
}

fn template(environments: &Value) -> Value {
    json!({"metadata": {"name": "exam", "namespace": "workspace-exams"}, "spec": {"environmentList": environments}})
}

fn one() -> Value {
    json!([{"name": "desktop", "environmentType": "Container", "persistent": true}])
}

/// A stopped exam with a request for an upload, and further members of the Instance.
fn observed(more: &Value) -> Observed {
    let mut instance = json!({
        "metadata": {
            "name": "exam.1", "namespace": "exams", "uid": "i1", "generation": 3, "resourceVersion": "7",
            "labels": {REQUESTED: "true"},
        },
        "spec": {
            "running": false,
            "template.crownlabs.polito.it/TemplateRef": {"name": "exam", "namespace": "workspace-exams"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "service-tenant"},
            "customizationUrls": {"contentDestination": DESTINATION},
        },
        "status": {"phase": "Off", "environments": [{"name": "desktop", "phase": "Off"}]},
    });
    merge::apply(&mut instance, more);
    Observed {
        instance: object(&instance),
        template: Some(object(template(&one()))),
        foreign_tenant: None,
        workloads: ["exam-1".to_owned()].into(),
        children: Children::default(),
        events: Events::Unknown,
        pods: Vec::new(),
        machines: Vec::new(),
        job_pods: Vec::new(),
        tenant: None,
        mailing: Mailing::default(),
    }
}

/// The members of an Instance with an open request, with this reason and record.
fn open(reason: &str, automation: &Value) -> Value {
    json!({"status": {
        "conditions": [condition("Unknown", reason)],
        "automation": automation,
        "environments": [{"name": "desktop", "phase": "Off", "automation": automation}],
    }})
}

fn condition(status: &str, reason: &str) -> Value {
    json!({"type": "Submitted", "status": status, "reason": reason, "message": "stored",
        "lastTransitionTime": "2026-03-04T04:55:00Z"})
}

fn upload() -> Upload {
    Upload { environment: String::new(), destination: DESTINATION.to_owned() }
}

/// The Job of an attempt, created five minutes ago, with this status.
fn job_of(observed: &Observed, upload: &Upload, attempt: i32, status: &Value) -> Arc<Job> {
    let desired = super::children::job(observed, &config(), upload, attempt).made();
    let mut made = desired.manifest.as_ref().expect("a Job").json().clone();
    made["metadata"]["uid"] = "j1".into();
    made["metadata"]["creationTimestamp"] = "2026-03-04T04:55:00Z".into();
    made["status"] = status.clone();
    object(&made)
}

fn with_job(observed: Observed, attempt: i32, status: &Value) -> Observed {
    let job = job_of(&observed, &upload(), attempt, status);
    Observed { children: Children::default().with([job]), ..observed }
}

fn succeeded() -> Value {
    json!({
        "succeeded": 1, "startTime": "2026-03-04T04:55:00Z", "completionTime": "2026-03-04T04:58:00Z",
        "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
    })
}

fn failed() -> Value {
    json!({"conditions": [
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"},
    ]})
}

fn next(observed: &Observed) -> Decision {
    decide(observed, &config(), now())
}

fn planned(observed: &Observed) -> Plan<Effect> {
    planned_at(observed, &config(), now())
}

fn planned_at(observed: &Observed, config: &SubmissionConfig, now: Timestamp) -> Plan<Effect> {
    super::plan::plan(observed, &settings(config.clone()), now)
}

fn told(observed: &Observed, outcome: &Outcome<Sent>) -> Report<InstanceKind> {
    let settings = settings(config());
    super::report::report(&Reconciled::of(observed, &settings, &planned(observed), outcome, now()))
}

/// The progress of the only upload.
fn stage(observed: &Observed) -> Stage {
    match next(observed) {
        Decision::Work(Work { mut uploads, .. }) if uploads.len() == 1 => uploads.remove(0).1,
        other => panic!("{other:?}"),
    }
}
