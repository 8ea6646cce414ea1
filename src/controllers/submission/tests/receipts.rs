//! Receipts: from the pod into the status, and by mail to the Tenant.

use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::api::instance::Receipt;
use crate::api::text::Text;
use crate::clients::mail::{Mail, MailError, MailKind, Subject, Wording};
use crate::controllers::cleanup::delivery::{Delivered, Notice, Post};
use crate::controllers::shared::fixtures::write;
use crate::controllers::submission::children::CONTAINER;
use crate::controllers::submission::receipt_mail::Mailings;
use crate::kinds::{PodOfJob, PodOfJobKind};
use crate::runtime::ObjectKey;
use crate::runtime::plan::{KindInfo, Requeue};
use crate::runtime::reconciler::EffectError;

const RECORD: &str = crate::api::labels::MAILED_RECEIPT;

fn receipt() -> Receipt {
    Receipt { name: "exam.1.zip".to_owned(), size: 12_345, sha256: "0123456789abcdef".repeat(4) }
}

/// A pod of the Job, with this phase and termination message.
fn pod(phase: &str, message: &str) -> Arc<PodOfJob> {
    let end = json!({"exitCode": 0, "finishedAt": "2026-03-04T04:58:00Z", "message": message});
    let owner = json!({"kind": "Job", "name": "exam-1-submitter", "uid": "j1", "controller": true});
    object::<PodOfJobKind>(json!({
        "metadata": {"name": "exam-1-submitter-x", "namespace": "exams", "uid": "p1", "ownerReferences": [owner]},
        "status": {"phase": phase, "containerStatuses": [{"name": CONTAINER, "state": {"terminated": end}}]},
    }))
}

fn message() -> String {
    serde_json::to_string(&receipt()).expect("JSON")
}

/// An open request whose Job has ended at this time.
fn ended(completion: &str, pods: Vec<Arc<PodOfJob>>) -> Observed {
    let mut status = succeeded();
    status["completionTime"] = completion.into();
    Observed { job_pods: pods, ..with_job(observed(&open("Uploading", &json!({}))), 1, &status) }
}

#[test]
fn the_receipt_of_a_pod_is_recorded_with_the_success() {
    let report =
        told(&ended("2026-03-04T04:58:00Z", vec![pod("Succeeded", &message())]), &Outcome::default());
    let automation = &report.status.automation;
    assert_eq!(automation.submission_receipt.as_deref(), Some(&receipt()));
    assert_eq!(report.status.environments[0].automation, *automation);
    assert_eq!(report.status.receipts(), [&receipt()]);
    // Other uploaders leave no receipt, or another text.
    for pods in [vec![pod("Succeeded", "")], vec![pod("Succeeded", "done")], Vec::new()] {
        let report = told(&ended("2026-03-04T04:58:00Z", pods), &Outcome::default());
        assert_eq!(report.status.automation.submission_receipt, None);
        assert!(report.status.automation.submission_time.is_some() && report.status.receipts().is_empty());
    }
}

#[test]
fn a_success_waits_ten_seconds_for_its_pod() {
    // It is 05:00:00.
    let recent = "2026-03-04T04:59:55Z";
    let until = time("2026-03-04T05:00:05Z");
    for pods in [Vec::new(), vec![pod("Running", &message())]] {
        let observed = ended(recent, pods);
        assert_eq!(stage(&observed), Stage::Settling { until });
        let plan = planned(&observed);
        assert_eq!((plan.ensure.len(), plan.requeue), (0, Requeue::After(Duration::from_secs(5))));
        let report = told(&observed, &Outcome::default());
        assert_eq!(report.status.automation.submission_time, None);
        assert_eq!(report.status.conditions, observed.instance.status.conditions, "it still uploads");
    }
    let at = Some(time(recent));
    let known = ended(recent, vec![pod("Succeeded", &message())]);
    assert_eq!(stage(&known), Stage::Succeeded { at, receipt: Some(receipt()) });
    let late = ended("2026-03-04T04:59:50Z", Vec::new());
    assert_eq!(stage(&late), Stage::Succeeded { at: Some(time("2026-03-04T04:59:50Z")), receipt: None });
    // The Job controller has counted the pod, and completes the Job next.
    let counted = with_job(observed(&open("Uploading", &json!({}))), 1, &json!({"succeeded": 1}));
    assert_eq!(stage(&counted), Stage::Settling { until: time("2026-03-04T05:00:10Z") });
}

#[test]
fn a_new_request_forgets_the_receipt_of_the_former_one() {
    let former = |reason: &str, status: &str| {
        let automation = json!({"submissionTime": "2026-01-01T00:00:00Z", "submissionReceipt": receipt()});
        let mut more = open(reason, &automation);
        more["status"]["conditions"] = json!([condition(status, reason)]);
        told(&observed(&more), &Outcome::pending()).status.receipts().len()
    };
    assert_eq!(former("SubmissionCompleted", "True"), 0);
    assert_eq!(former("SubmissionFailed", "False"), 1, "an upload that succeeded is not repeated");
}

/// An Instance whose content was uploaded at 04:58, with further members.
fn completed(more: &Value) -> Observed {
    let automation = json!({"submissionTime": "2026-03-04T04:58:00Z", "submissionReceipt": receipt()});
    let mut members = open("SubmissionCompleted", &automation);
    members["status"]["conditions"] = json!([condition("True", "SubmissionCompleted")]);
    members["metadata"] = json!({"labels": {REQUESTED: "false", COMPLETED: "true"}});
    merge::apply(&mut members, more);
    let tenant = json!({
        "metadata": {"name": "service-tenant"},
        "spec": {"firstName": "Ada", "lastName": "Rossi", "email": "ada@example.org"},
    });
    Observed { tenant: Some(object(tenant)), ..observed(&members) }
}

/// The mail of a plan, if one is due.
fn mail(plan: &Plan<Effect>) -> Option<&Notice> {
    match plan.effects.first()? {
        Effect::Mail(notice) => Some(notice),
        Effect::Check => None,
    }
}

#[test]
fn a_receipt_is_mailed_to_the_tenant_after_the_request() {
    let done = completed(&json!({}));
    let plan = planned(&done);
    let Mail { kind, key, tenant_email, full_name, deadline, files, link, .. } =
        &mail(&plan).expect("a mail").mail;
    assert_eq!(
        (*kind, key.as_str()),
        (MailKind::SubmissionReceipt, "i1/SubmissionReceipt/2026-03-04T04:58:00Z")
    );
    assert_eq!((tenant_email.as_str(), full_name.as_str()), ("ada@example.org", "Ada Rossi"));
    assert_eq!((*deadline, files.as_slice()), (time("2026-03-04T04:58:00Z"), &[receipt()][..]));
    assert_eq!(link, "https://labs.example.org");
    let confirmed = [(KindInfo::of::<InstanceKind>(), ObjectKey::new("exams", "exam.1"))];
    assert_eq!(plan.confirm, confirmed, "another leader may have sent it");
    assert!(plan.ensure.is_empty() && plan.patches.is_empty(), "the upload is not repeated");
}

#[test]
fn no_mail_is_sent_without_a_reason_or_twice() {
    let is_due = |observed: &Observed| mail(&planned(observed)).is_some();
    assert!(is_due(&completed(&json!({}))));
    let no_receipt = json!({"submissionReceipt": null});
    let none = json!({"status": {"automation": no_receipt, "environments": [{"name": "desktop", "automation": {}}]}});
    let annotated = |time: &str| json!({"metadata": {"annotations": {RECORD: time}}});
    for (more, expected) in [
        (none, false),
        (json!({"status": {"automation": {"submissionTime": null}}}), false),
        (json!({"status": {"conditions": [condition("False", "SubmissionFailed")]}}), false),
        (json!({"status": {"automation": {"submissionTime": "2026-02-25T05:00:00Z"}}}), false),
        (json!({"status": {"automation": {"submissionTime": "2026-02-25T05:00:01Z"}}}), true),
        (annotated("2026-03-04T04:58:00Z"), false),
        (annotated("2026-03-04T04:57:59Z"), true),
    ] {
        assert_eq!(is_due(&completed(&more)), expected, "{more}");
    }
    assert!(!is_due(&Observed { tenant: None, ..completed(&json!({})) }));
    let settings = Settings { sends: false, ..settings(config()) };
    let silent = crate::controllers::submission::plan::plan(&completed(&json!({})), &settings, now());
    assert!(silent.effects.is_empty() && silent.requeue == Requeue::OnChange);
}

/// A mail server that gives this answer to the mail, and accepts a mail without any text of the user if `is_plain_accepted`.
struct Server {
    answer: Option<MailError>,
    is_plain_accepted: bool,
    asked: Mutex<u32>,
}

impl Post for Server {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        *self.asked.lock() += 1;
        let is_accepted = mail.wording == Wording::Plain && self.is_plain_accepted;
        self.answer.clone().filter(|_| !is_accepted).map_or(Ok(()), Err)
    }

    fn now(&self) -> Timestamp {
        now()
    }
}

/// Sends the mail of an Instance. Returns the number of requests, the outcome, and the Instance as it is observed next.
fn sent(answer: Option<MailError>, is_plain_accepted: bool) -> (u32, Delivered, Observed) {
    let done = completed(&json!({}));
    let plan = planned(&done);
    let (server, mailings) =
        (Server { answer, is_plain_accepted, asked: Mutex::default() }, Mailings::default());
    let outcome = mailings.send(&server, mail(&plan).expect("a mail")).now_or_never().expect("an answer");
    let mailing = mailings.of(&done.instance);
    (server.asked.into_inner(), outcome, Observed { mailing, ..done })
}

/// The report after this outcome, with the message of the condition.
fn reported(observed: &Observed, outcome: Delivered) -> (Report<InstanceKind>, String) {
    let report = told(observed, &Outcome { effects: vec![outcome], ..Outcome::default() });
    let message = report.status.conditions[0].message.as_str().to_owned();
    assert_eq!(report.status.conditions[0].status, "True");
    assert_eq!(report.status.automation, observed.instance.status.automation);
    (report, message)
}

#[test]
fn an_accepted_mail_is_recorded_and_never_repeated() {
    let (asked, outcome, mut observed) = sent(None, false);
    assert_eq!((asked, &outcome.error), (1, &None));
    // Before the record is written, the leader knows.
    assert_eq!(mail(&planned(&observed)), None);
    let (report, message) = reported(&observed, outcome);
    assert_eq!(message, "the content was uploaded; the receipt was sent");
    assert!(report.events.is_empty() && report.requeue_after.is_none());
    let patch = report.patch.as_ref().expect("a record").patch.clone();
    assert_eq!(patch, json!({"metadata": {"annotations": {RECORD: "2026-03-04T04:58:00Z"}}}));
    // The next leader knows from the record.
    assert!(write(report, &mut observed.instance));
    observed.mailing = Mailing::default();
    assert_eq!(mail(&planned(&observed)), None);
    let next = told(&observed, &Outcome::default());
    assert!(!write(next, &mut observed.instance), "nothing more is written");
    // The former leader ended after the record, before it wrote the condition.
    let message = &mut Arc::make_mut(&mut observed.instance).status.conditions[0].message;
    *message = Text::interned("the content was uploaded");
    let next = told(&observed, &Outcome::default());
    assert_eq!(next.status.conditions[0].message, "the content was uploaded; the receipt was sent");
}

#[test]
fn a_mail_that_is_not_accepted_changes_nothing_but_the_message() {
    let server = || "mail:25".to_owned();
    let busy =
        MailError::Unavailable { server: server(), subject: Subject::Client, said: "451 later".to_owned() };
    let (asked, outcome, observed) = sent(Some(busy), false);
    assert!(matches!(&outcome.error, Some(EffectError::Failed(_))), "{outcome:?}");
    assert_eq!((asked, mail(&planned(&observed)).is_some()), (1, true), "it is retried");
    let (report, message) = reported(&observed, outcome);
    let said = "the mail server mail:25 cannot take the mail now: 451 later";
    assert_eq!(message, format!("the content was uploaded; the receipt is not sent yet: {said}"));
    assert_eq!(report.events.len(), 1);
    assert!(report.patch.is_none());
    // A mailbox that is rejected is tried again after an hour, by this leader.
    let refused =
        MailError::Refused { server: server(), subject: Subject::Recipient, said: "550 no".to_owned() };
    let (asked, outcome, observed) = sent(Some(refused.clone()), false);
    assert!(matches!(&outcome.error, Some(EffectError::Postponed(_))), "{outcome:?}");
    assert_eq!(asked, 2, "also without any text of the user");
    let plan = planned(&observed);
    assert_eq!((mail(&plan), plan.requeue), (None, Requeue::After(Duration::from_hours(1))));
    assert_eq!(reported(&observed, outcome).0.requeue_after, Some(Duration::from_hours(1)));
    let later = planned_at(&observed, &config(), time("2026-03-04T06:00:00Z"));
    assert!(mail(&later).is_some());
    // A filter rejects the names of the user.
    let (asked, outcome, observed) = sent(Some(refused), true);
    assert_eq!((asked, outcome.error, mail(&planned(&observed))), (2, None, None));
    let (asked, outcome, _) = sent(Some(MailError::NotLeader), false);
    assert_eq!((asked, outcome.error), (1, Some(EffectError::NotLeader)));
}
