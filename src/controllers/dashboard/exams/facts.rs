//! What the automation of an exam has done with a machine, with only the values that the page shows.

use jiff::Timestamp;

use crate::api::condition::{Condition, ConditionType, STATUS_CHECKED, SUBMITTED};
use crate::api::instance::Receipt;
use crate::api::reason::{self, Reason};
use crate::api::shown::cut;
use crate::api::text::Text;
use crate::api::{Instance, labels};
use crate::controllers::dashboard::texts::template::table_key;

/// The maximum number of characters of a message.
const MOST_OF_MESSAGE: usize = 300;
/// The maximum number of receipts: an environment has one.
const MOST_RECEIPTS: usize = 10;

table_key! {
    /// The result of the last status check.
    pub enum Check {
        /// The machine has no status URL.
        Absent,
        /// It was not checked yet.
        NotYet,
        /// The exam goes on.
        Kept,
        /// The check failed, and is repeated.
        Failed,
        /// The server says that the exam is over, and will be asked again.
        Unconfirmed,
        /// The exam is over.
        Over,
    }
}

table_key! {
    /// The state of the upload.
    pub enum Upload {
        /// There is nothing to upload.
        Absent,
        /// It was not requested yet.
        NotYet,
        /// It waits until the machine is off.
        Waiting,
        /// It runs.
        Running,
        /// An attempt has failed, and another one follows.
        Retrying,
        /// It cannot start, and is tried again.
        Blocked,
        /// The server has accepted it.
        Done,
        /// It has failed permanently.
        Failed,
        /// The request was withdrawn, or there was nothing to upload.
        Ended,
    }
}

/// The exam of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exam {
    /// The uid of the Instance.
    pub uid: Text,
    /// The result of the last status check.
    pub check: Check,
    /// The time of the last status check.
    pub checked: Option<Timestamp>,
    /// The message of a check that failed.
    pub check_said: Text,
    /// The announced deadline, or the time of the end.
    pub ends: Option<Timestamp>,
    /// The state of the upload.
    pub upload: Upload,
    /// The message about the upload.
    pub upload_said: Text,
    /// The number of attempts.
    pub attempts: i32,
    /// The time of the upload.
    pub uploaded: Option<Timestamp>,
    /// The receipts.
    pub receipts: Vec<Receipt>,
    /// Whether they were sent by mail.
    pub is_mailed: bool,
}

impl Exam {
    /// Returns the exam of an Instance; `None` if neither a server ends it nor anything is uploaded.
    pub fn of(instance: &Instance) -> Option<Self> {
        let (spec, status) = (&instance.spec, &instance.status);
        let condition = |type_: ConditionType| status.conditions.iter().find(|known| known.type_ == type_);
        let (checked, submitted) = (condition(STATUS_CHECKED), condition(SUBMITTED));
        let has_url = !spec.effective_status_check_url().is_empty();
        let has_destination = spec.has_content_destination();
        if !has_url && !has_destination && checked.is_none() && submitted.is_none() {
            return None;
        }
        let check = check(has_url, checked);
        let automation = &status.automation;
        let of_environments = status.environments.iter().map(|environment| &environment.automation);
        let attempts = of_environments.chain([automation]).map(|one| one.submission_attempts).max();
        let uploaded = automation.submission_time.as_ref().map(|time| time.0);
        let mailed = instance.annotation(labels::MAILED_RECEIPT).and_then(|text| text.parse().ok());
        Some(Self {
            uid: instance.metadata.uid.clone(),
            check,
            checked: automation.last_check_time.as_ref().map(|time| time.0),
            check_said: checked.filter(|_| check == Check::Failed).map(said).unwrap_or_default(),
            ends: automation.termination_time.as_ref().map(|time| time.0),
            upload: upload(instance, has_destination, submitted),
            upload_said: submitted.map(said).unwrap_or_default(),
            attempts: attempts.unwrap_or_default(),
            uploaded,
            receipts: status.receipts().into_iter().take(MOST_RECEIPTS).cloned().collect(),
            is_mailed: uploaded.is_some() && mailed == uploaded,
        })
    }

    /// Returns about the number of bytes in memory.
    pub fn bytes(&self) -> usize {
        let Self { check_said, upload_said, receipts, .. } = self;
        let of_receipts =
            receipts.iter().map(|receipt| size_of::<Receipt>() + receipt.name.len() + receipt.sha256.len());
        size_of::<Self>() + check_said.len() + upload_said.len() + of_receipts.sum::<usize>()
    }
}

fn check(has_url: bool, condition: Option<&Condition>) -> Check {
    let Some(condition) = condition else { return if has_url { Check::NotYet } else { Check::Absent } };
    let is = |reason: Reason| condition.reason == reason;
    if is(reason::TERMINATED) || is(reason::TERMINATING) {
        Check::Over
    } else if is(reason::UNCONFIRMED) {
        Check::Unconfirmed
    } else if is(reason::KEPT) {
        Check::Kept
    } else {
        Check::Failed
    }
}

fn upload(instance: &Instance, has_destination: bool, condition: Option<&Condition>) -> Upload {
    let is_requested = instance.label(labels::SUBMISSION_REQUESTED) == Some("true")
        && instance.label(labels::SUBMISSION_COMPLETED) != Some("true");
    let Some(condition) = condition else {
        return match (is_requested, has_destination) {
            (true, _) => Upload::Waiting,
            (false, true) => Upload::NotYet,
            (false, false) => Upload::Absent,
        };
    };
    let is = |reason: Reason| condition.reason == reason;
    match condition.status.as_str() {
        // A new request that the daemon has not seen yet.
        "True" | "False" if is_requested => Upload::Waiting,
        "True" => Upload::Done,
        "False" if is(reason::SUBMISSION_FAILED) => Upload::Failed,
        "False" => Upload::Ended,
        _ if is(reason::WAITING_FOR_OFF) => Upload::Waiting,
        _ if is(reason::RETRYING) || is(reason::GIVING_UP) => Upload::Retrying,
        _ if is(reason::STARTING) || is(reason::UPLOADING) || is(reason::UPLOADED) => Upload::Running,
        _ => Upload::Blocked,
    }
}

fn said(condition: &Condition) -> Text {
    Text::from(&*cut(&condition.message, MOST_OF_MESSAGE))
}

impl Check {
    /// Returns its mark, as that of a machine.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Kept => "good",
            Self::NotYet | Self::Unconfirmed => "busy",
            Self::Failed => "bad",
            Self::Absent | Self::Over => "quiet",
        }
    }
}

impl Upload {
    /// Returns its mark, as that of a machine.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Done => "good",
            Self::Waiting | Self::Running | Self::Retrying => "busy",
            Self::Blocked | Self::Failed => "bad",
            Self::Absent | Self::NotYet | Self::Ended => "quiet",
        }
    }

    /// Whether it can be requested again.
    pub const fn can_retry(self) -> bool {
        matches!(self, Self::Failed | Self::Ended)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controllers::dashboard::tests::fixtures::{condition, read};
    use crate::fixtures::time;
    use crate::runtime::merge;

    fn exam(more: &Value) -> Option<Exam> {
        let mut instance = json!({
            "metadata": {"name": "exam", "namespace": "tenant-ada", "uid": "u1"},
            "spec": {"statusCheckUrl": "https://exams.example.org/status",
                "contentUrls": {"default": {"destination": "https://exams.example.org/upload"}}},
            "status": {"phase": "Ready"},
        });
        merge::apply(&mut instance, more);
        Exam::of(&read(instance))
    }

    fn with(conditions: &Value) -> Exam {
        exam(&json!({"status": {"conditions": conditions}})).expect("an exam")
    }

    #[test]
    fn only_machines_with_a_server_or_an_upload_are_exams() {
        assert!(exam(&json!({})).is_some());
        let plain = json!({"spec": {"statusCheckUrl": null, "contentUrls": null}});
        assert_eq!(exam(&plain), None);
        for (member, value) in [
            ("spec", json!({"customizationUrls": {"statusCheck": "https://x"}})),
            ("spec", json!({"customizationUrls": {"contentDestination": "https://x"}})),
            ("status", json!({"conditions": [condition("Submitted", "False", "NotEligible", "")]})),
        ] {
            let mut more = plain.clone();
            merge::apply(&mut more[member], &value);
            assert!(exam(&more).is_some(), "{more}");
        }
    }

    #[test]
    fn the_condition_states_the_result_of_the_last_check() {
        let of = |status: &str, reason: &str| {
            let exam = with(&json!([condition("StatusChecked", status, reason, "no response")]));
            (exam.check, exam.check_said.to_string())
        };
        assert_eq!(of("True", "Kept"), (Check::Kept, String::new()));
        assert_eq!(of("False", "StatusCheckFailed"), (Check::Failed, "no response".to_owned()));
        assert_eq!(of("True", "Unconfirmed").0, Check::Unconfirmed);
        assert_eq!([of("True", "Terminating").0, of("True", "Terminated").0], [Check::Over; 2]);
        assert_eq!(with(&json!([])).check, Check::NotYet);
        let unchecked = exam(&json!({"spec": {"statusCheckUrl": null}})).expect("an exam");
        assert_eq!(unchecked.check, Check::Absent);
    }

    #[test]
    fn labels_and_condition_state_the_progress_of_the_upload() {
        let of =
            |status: &str, reason: &str| with(&json!([condition("Submitted", status, reason, "m")])).upload;
        for (status, reason, expected) in [
            ("Unknown", "WaitingForOff", Upload::Waiting),
            ("Unknown", "Starting", Upload::Running),
            ("Unknown", "Uploading", Upload::Running),
            ("Unknown", "Uploaded", Upload::Running),
            ("Unknown", "Retrying", Upload::Retrying),
            ("Unknown", "PodNotStarted", Upload::Blocked),
            ("Unknown", "ResourceQuotaExceeded", Upload::Blocked),
            ("True", "SubmissionCompleted", Upload::Done),
            ("False", "SubmissionFailed", Upload::Failed),
            ("False", "Withdrawn", Upload::Ended),
        ] {
            assert_eq!(of(status, reason), expected, "{reason}");
        }
        assert_eq!(with(&json!([])).upload, Upload::NotYet);
        let labelled = |labels: Value, conditions: Value| {
            let more = json!({"metadata": {"labels": labels}, "status": {"conditions": conditions}});
            exam(&more).expect("an exam").upload
        };
        let requested = json!({"crownlabs.polito.it/instance-submission-requested": "true"});
        assert_eq!(labelled(requested.clone(), json!([])), Upload::Waiting);
        let failed = json!([condition("Submitted", "False", "SubmissionFailed", "m")]);
        assert_eq!(labelled(requested, failed), Upload::Waiting, "requested again");
        let no_upload = exam(&json!({"spec": {"contentUrls": null}})).expect("an exam");
        assert_eq!(no_upload.upload, Upload::Absent);
    }

    #[test]
    fn times_attempts_and_receipts_come_from_the_status() {
        let receipt = json!({"name": "exam.zip", "size": 9, "sha256": "ab".repeat(32)});
        let automation = json!({"lastCheckTime": "2026-11-26T17:00:00Z", "terminationTime": "2026-11-26T19:00:00Z",
            "submissionTime": "2026-11-26T18:00:00Z", "submissionAttempts": 1});
        let of_environment = json!({"submissionAttempts": 3, "submissionReceipt": receipt});
        let status = json!({"automation": automation, "environments": [{"name": "a", "automation": of_environment}],
            "conditions": [condition("Submitted", "True", "SubmissionCompleted", &"x".repeat(5_000))]});
        let annotations = json!({"crownlabs.polito.it/mailed-submission-receipt": "2026-11-26T18:00:00Z"});
        let of = |annotations: &Value| {
            exam(&json!({"metadata": {"annotations": annotations}, "status": status})).expect("an exam")
        };
        let found = of(&annotations);
        assert_eq!(
            (found.checked, found.ends),
            (Some(time("2026-11-26T17:00:00Z")), Some(time("2026-11-26T19:00:00Z")))
        );
        assert_eq!(
            (found.attempts, found.uploaded, found.is_mailed),
            (3, Some(time("2026-11-26T18:00:00Z")), true)
        );
        assert_eq!(found.receipts.iter().map(|receipt| receipt.size).collect::<Vec<_>>(), [9]);
        assert_eq!(found.upload_said.chars().count(), MOST_OF_MESSAGE);
        assert!(found.bytes() < 1_000);
        let former = json!({"crownlabs.polito.it/mailed-submission-receipt": "2026-11-26T17:59:59Z"});
        assert!(!of(&former).is_mailed && !of(&json!({})).is_mailed);
    }
}
