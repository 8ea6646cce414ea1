//! The outcome of an action, which is kept until a page shows it.

use derive_more::From;

use crate::controllers::dashboard::texts::Problem;
use crate::runtime::error::ApiError;

/// Why an action failed, or may have failed.
#[derive(Debug, From)]
pub enum Failure {
    /// The API server rejected the change, or did not confirm it.
    Api(ApiError),
    /// The form is invalid.
    Invalid(Problem),
}

impl Failure {
    /// Returns the problem, with the message of the API server or webhook that rejected the change.
    pub fn problem(&self) -> (Problem, String) {
        let error = match self {
            Self::Invalid(problem) => return (*problem, String::new()),
            Self::Api(error) => error,
        };
        let problem = match error {
            ApiError::Conflict(_) | ApiError::Stale(_) => Problem::Changed,
            ApiError::NotFound(_) => Problem::Gone,
            ApiError::AlreadyExists(_) | ApiError::NameConflict { .. } => Problem::Taken,
            ApiError::Transient { .. } | ApiError::NotLeader | ApiError::Leaving(_) => Problem::Unknown,
            ApiError::QuotaExceeded(_)
            | ApiError::Forbidden(_)
            | ApiError::Invalid(_)
            | ApiError::TooLong(_) => Problem::Refused,
        };
        let message = if problem == Problem::Refused { error.to_string() } else { String::new() };
        (problem, message)
    }
}

/// The outcome of an action, as a cookie carries it to the next page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The action with this name succeeded.
    Done(String),
    /// The action failed.
    Failed(Problem),
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn an_unconfirmed_write_is_reported_as_unknown() {
        // A server that asks to retry later may have made the change.
        for retry_after in [None, Some(std::time::Duration::from_secs(1))] {
            let failure = Failure::Api(ApiError::Transient { message: "m".to_owned(), retry_after });
            assert_eq!(failure.problem(), (Problem::Unknown, String::new()));
        }
    }

    #[test]
    fn a_rejection_keeps_its_message() {
        let sentence = "admission webhook denied the request: 3 of 2 machines";
        let (problem, message) = Failure::Api(ApiError::Forbidden(sentence.to_owned())).problem();
        assert_eq!(problem, Problem::Refused);
        assert!(message.ends_with(sentence), "{message}");
    }
}
