//! The outcome of an action, which is kept until a page shows it.

use derive_more::From;

use crate::api::denial::{Cause, DenialReason};
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::error::ApiError;

/// The maximum number of reasons in a cookie.
const MOST_CAUSES: usize = 4;

/// Why an action failed, or may have failed.
#[derive(Debug, From)]
pub enum Failure {
    /// The API server rejected the change, or did not confirm it.
    Api(ApiError),
    /// The form is invalid.
    Invalid(Problem),
}

impl Failure {
    /// Returns the outcome, with the message of the API server or webhook that rejected the change. The message is empty
    /// if the texts have a sentence.
    pub fn outcome(&self) -> (Outcome, String) {
        let error = match self {
            Self::Invalid(problem) => return (Outcome::Failed(*problem), String::new()),
            Self::Api(ApiError::Denied { causes, .. }) => return (denied(causes), String::new()),
            Self::Api(error) => error,
        };
        let problem = match error {
            ApiError::Conflict(_) | ApiError::Stale(_) => Problem::Changed,
            ApiError::NotFound(_) => Problem::Gone,
            ApiError::AlreadyExists(_) | ApiError::NameConflict { .. } => Problem::Taken,
            ApiError::Silent => Problem::NotNow,
            ApiError::Transient { .. } | ApiError::NotLeader | ApiError::Leaving(_) => Problem::Unknown,
            ApiError::QuotaExceeded(_) => Problem::QuotaFull,
            ApiError::Forbidden(_)
            | ApiError::Invalid(_)
            | ApiError::InvalidFields { .. }
            | ApiError::TooLong(_)
            | ApiError::Denied { .. } => Problem::Refused,
        };
        let message = if problem == Problem::Refused { error.to_string() } else { String::new() };
        (Outcome::Failed(problem), message)
    }
}

/// Returns the outcome of a change that a webhook refused for these reasons. A reason about a field of the form is shown
/// beside the field.
fn denied(causes: &[Cause]) -> Outcome {
    let of_field = causes.iter().find_map(|cause| match cause.reason {
        DenialReason::PortNameTaken => Some(Problem::PortNameTaken),
        DenialReason::PortTargetTaken => Some(Problem::PortTargetTaken),
        DenialReason::PublicPortTaken => Some(Problem::PublicPortTaken),
        DenialReason::SharedWithOutsider => Some(Problem::ShareOutsider),
        DenialReason::SharedWithOwner => Some(Problem::ShareOwner),
        _ => None,
    });
    let denied = || Outcome::Denied(causes.iter().take(MOST_CAUSES).cloned().collect());
    of_field.map_or_else(denied, Outcome::Failed)
}

/// The outcome of an action, as a cookie carries it to the next page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The action with this name succeeded.
    Done(String),
    /// The action failed.
    Failed(Problem),
    /// A webhook refused the change for these reasons.
    Denied(Vec<Cause>),
}

impl Outcome {
    /// Returns the field that made the action fail: its name, and the id of its element.
    pub fn wrong_field(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Done(_) | Self::Denied(_) => None,
            Self::Failed(problem) => problem.field(),
        }
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn an_unconfirmed_write_is_reported_as_unknown() {
        // A server that asks to retry later may have made the change.
        for retry_after in [None, Some(std::time::Duration::from_secs(1))] {
            let failure = Failure::Api(ApiError::Transient { message: "m".to_owned(), retry_after });
            assert_eq!(failure.outcome(), (Outcome::Failed(Problem::Unknown), String::new()));
        }
    }

    #[test]
    fn a_change_that_is_not_sent_to_a_silent_api_server_is_reported_as_not_made() {
        let outcome = Failure::Api(ApiError::Silent).outcome();
        assert_eq!(outcome, (Outcome::Failed(Problem::NotNow), String::new()));
    }

    #[test]
    fn a_rejection_keeps_its_message() {
        let sentence = "admission webhook denied the request: 3 of 2 machines";
        let (outcome, message) = Failure::Api(ApiError::Forbidden(sentence.to_owned())).outcome();
        assert_eq!(outcome, Outcome::Failed(Problem::Refused));
        assert!(message.ends_with(sentence), "{message}");
    }

    #[test]
    fn a_refusal_by_a_webhook_keeps_its_reasons_and_not_its_message() {
        let of = |reasons: &[DenialReason]| {
            let causes = reasons.iter().map(|reason| Cause::new(*reason, "x")).collect();
            Failure::Api(ApiError::Denied { message: "m".to_owned(), causes }).outcome()
        };
        let full = [DenialReason::QuotaExceeded, DenialReason::NotEnrolled];
        let causes = full.map(|reason| Cause::new(reason, "x")).to_vec();
        assert_eq!(of(&full), (Outcome::Denied(causes), String::new()));
        let many = of(&[DenialReason::QuotaExceeded; 9]).0;
        assert!(matches!(&many, Outcome::Denied(causes) if causes.len() == MOST_CAUSES), "{many:?}");
        for (reason, problem, field) in [
            (DenialReason::PortNameTaken, Problem::PortNameTaken, "name"),
            (DenialReason::PortTargetTaken, Problem::PortTargetTaken, "targetPort"),
            (DenialReason::PublicPortTaken, Problem::PublicPortTaken, "port"),
            (DenialReason::SharedWithOutsider, Problem::ShareOutsider, "user"),
            (DenialReason::SharedWithOwner, Problem::ShareOwner, "user"),
        ] {
            let outcome = of(&[reason]).0;
            assert_eq!(outcome, Outcome::Failed(problem));
            assert_eq!(outcome.wrong_field().map(|(name, _)| name), Some(field));
        }
    }
}
