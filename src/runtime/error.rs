//! The errors of API server requests that loops handle differently.

use std::iter::successors;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::key::ObjectKey;
use crate::api::denial::Cause;
use crate::api::shown::cut;
use crate::api::text::Text;

/// The error of a failed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The object was changed or replaced since it was read (409).
    #[error("the object has changed meanwhile: {0}")]
    Conflict(String),
    /// An object with that name already exists (409).
    #[error("an object of that name already exists: {0}")]
    AlreadyExists(String),
    /// The object, or its namespace, or its kind, does not exist (404).
    #[error("not found: {0}")]
    NotFound(String),
    /// A `ResourceQuota` rejects the object (403).
    #[error("{0}")]
    QuotaExceeded(String),
    /// The daemon is not authorised to do this (401, 403).
    #[error("the API server rejected the request: {0}")]
    Forbidden(String),
    /// A webhook of CrownLabs refuses the change.
    #[error("{message}")]
    Denied {
        /// The error message.
        message: String,
        /// The reasons, with the values that they are about.
        causes: Vec<Cause>,
    },
    /// The object is invalid (400, 422).
    #[error("the API server rejected the object as invalid: {0}")]
    Invalid(String),
    /// Fields of an object that a user writes are invalid (400, 422).
    #[error("the API server rejected the object as invalid: {message}")]
    InvalidFields {
        /// The error message.
        message: String,
        /// The fields, at most [`MOST_FIELDS`].
        fields: Vec<InvalidField>,
    },
    /// Overload, outage or timeout: the same request may succeed later (429, 5xx, no response).
    #[error("{message}")]
    Transient {
        /// The error message.
        message: String,
        /// The retry delay requested by the API server, if any.
        retry_after: Option<Duration>,
    },
    /// The API server does not answer: the request was not sent, or only reads.
    #[error("the API server does not answer; nothing was changed")]
    Silent,
    /// A precondition does not hold because the store lagged behind. Nothing was deleted, and the store is up to date
    /// now.
    #[error("{0}")]
    Stale(String),
    /// The requested list exceeds the size limit.
    #[error("{0}")]
    TooLong(String),
    /// The lease is not held (any more): no request was sent.
    #[error("not the leader: nothing was sent")]
    NotLeader,
    /// An object with that name belongs to another owner. It was not changed.
    #[error("{kind} {name} exists and {owner}")]
    NameConflict {
        /// Kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The owner, as the end of the message: `belongs to Instance a`.
        owner: String,
    },
    /// The object is being deleted, or belongs to a deleted owner. It is created again once it is gone.
    #[error("{0}")]
    Leaving(Box<Leaving>),
}

/// The maximum number of invalid fields of an error.
const MOST_FIELDS: usize = 64;
/// The maximum length of the path of an invalid field, and of its message, in characters.
const LONGEST_OF_FIELD: usize = 500;

/// A field that the API server or a webhook rejects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidField {
    /// Its path, such as `spec.environmentList[0].image`.
    pub path: String,
    /// Why it is rejected.
    pub message: String,
}

/// An object that must be gone before it can be created again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leaving {
    /// The kind of the object.
    pub kind: &'static str,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// The kind of the deleted owner that it belongs to; `None` if its owner still exists.
    pub former_owner: Option<String>,
    /// The start of its deletion; `None` if the garbage collector has not deleted it yet.
    pub since: Option<Timestamp>,
    /// The finalizers that hold it.
    pub finalizers: Vec<Text>,
}

impl std::fmt::Display for Leaving {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, name) = (self.kind, &self.key.name);
        let Some(owner) = &self.former_owner else {
            return write!(formatter, "{kind} {name} is being deleted and will be recreated");
        };
        write!(formatter, "{kind} {name} of a deleted {owner} of the same name is still being removed")
    }
}

impl ApiError {
    /// Whether a retry can succeed without a change by a user. Such failures are logged and retried but not reported to
    /// users: their conditions and events would disappear again at once.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Conflict(_)
                | Self::AlreadyExists(_)
                | Self::NotFound(_)
                | Self::Transient { .. }
                | Self::Silent
                | Self::Stale(_)
                | Self::NotLeader
                | Self::Leaving(_)
        )
    }

    /// Whether the API server does not respond, or cannot process the request.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Transient { .. } | Self::Silent)
    }

    /// Whether a retry is pointless: the object was deleted meanwhile, or the lease is not held. The next watch event,
    /// or the new leader, continues.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::NotLeader)
    }

    /// Returns the minimum time before the request may be repeated, as requested by the API server.
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Transient { retry_after: Some(after), .. } => *after,
            _ => Duration::ZERO,
        }
    }

    /// Creates a transient error with this message.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::Transient { message: message.into(), retry_after: None }
    }

    /// Returns the refusal of a `Status` with reasons of our webhooks; `None` for every other `Status`.
    pub(super) fn denied(status: &kube::core::Status) -> Option<Self> {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let causes: Vec<Cause> =
            causes.filter_map(|cause| Cause::parse(&cause.reason, &cause.message)).collect();
        (!causes.is_empty()).then(|| Self::Denied { message: status.message.clone(), causes })
    }

    /// Adds the invalid fields that a `Status` names to the error of the `Status`.
    pub(super) fn with_fields(self, status: &kube::core::Status) -> Self {
        let Self::Invalid(message) = self else { return self };
        let bounded = |text: &str| cut(text, LONGEST_OF_FIELD).into_owned();
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let named = causes.filter(|cause| !cause.field.is_empty()).take(MOST_FIELDS);
        let fields: Vec<InvalidField> = named
            .map(|cause| InvalidField { path: bounded(&cause.field), message: bounded(&cause.message) })
            .collect();
        if fields.is_empty() { Self::Invalid(message) } else { Self::InvalidFields { message, fields } }
    }

    /// Maps a failed `Status` of the API server to an error.
    pub(super) fn from_status(status: &kube::core::Status) -> Self {
        let message = status.message.clone();
        match (status.code, status.reason.as_str()) {
            (409, "AlreadyExists") => Self::AlreadyExists(message),
            (409, _) => Self::Conflict(message),
            (404, _) => Self::NotFound(message),
            // A namespace that is being deleted rejects creations with 403.
            (403, _) if message.contains("because it is being terminated") => Self::transient(message),
            (403, _) if message.contains("exceeded quota") => Self::QuotaExceeded(message),
            // A controller initialises quotas; until then creations are rejected.
            (403, _) if message.contains("status unknown for quota") => Self::transient(message),
            // For the check of owner references, the API server discovers the kinds of new CRDs within half a minute.
            (403, _) if message.contains("cannot find RESTMapping") => Self::transient(message),
            (401 | 403, _) => Self::Forbidden(message),
            (400 | 405 | 406 | 413 | 415 | 422, _) => Self::Invalid(message),
            _ => {
                let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                Self::Transient {
                    message,
                    retry_after: (seconds > 0).then(|| Duration::from_secs(u64::from(seconds))),
                }
            }
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from_status(&status),
            kube::Error::Service(error) if error.is::<NotLeader>() => Self::NotLeader,
            other => Self::transient(with_sources(&other)),
        }
    }
}

/// The error that the lease gate returns instead of sending a write.
#[derive(Debug, thiserror::Error)]
#[error("the lease is not held")]
pub struct NotLeader;

/// Decodes a response of the API server.
pub fn decoded<T: DeserializeOwned>(answer: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(answer).map_err(|error| unreadable(&error))
}

/// The error for a response that cannot be decoded.
pub fn unreadable(error: &serde_json::Error) -> ApiError {
    ApiError::transient(format!("the response cannot be decoded: {error}"))
}

/// Formats an error and all its sources on one line.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    // kube prepends the name of its variant, and appends the whole `Status` in its debug format.
    let brief = |error: &dyn std::error::Error| {
        let text = error.to_string();
        let text = text.strip_prefix("ServiceError: ").unwrap_or(&text);
        text.split(" (Status {").next().unwrap_or_default().to_owned()
    };
    let mut text = brief(error);
    for source in successors(error.source(), |&inner| inner.source()) {
        let source = brief(source);
        if !text.contains(&source) {
            text.push_str(": ");
            text.push_str(&source);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::denial::DenialReason;

    fn error(code: u16, reason: &str, message: &str, retry_after: u32) -> ApiError {
        let status = json!({
            "status": "Failure", "code": code, "reason": reason, "message": message,
            "details": {"retryAfterSeconds": retry_after},
        });
        let status = serde_json::from_value(status).expect("a Status");
        ApiError::from(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn responses_of_the_api_server_map_to_errors() {
        let transient = |message: &str, seconds: Option<u64>| ApiError::Transient {
            message: message.to_owned(),
            retry_after: seconds.map(Duration::from_secs),
        };
        let leaving = "unable to create: because it is being terminated";
        let quota = "exceeded quota: small";
        let unknown = "status unknown for quota: small";
        let new_kind =
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for g/v1 Kind Tenant";
        for (code, reason, message, expected) in [
            (409, "AlreadyExists", "m", ApiError::AlreadyExists("m".to_owned())),
            (409, "Conflict", "m", ApiError::Conflict("m".to_owned())),
            (404, "NotFound", "m", ApiError::NotFound("m".to_owned())),
            (403, "Forbidden", leaving, transient(leaving, None)),
            (403, "Forbidden", quota, ApiError::QuotaExceeded(quota.to_owned())),
            (403, "Forbidden", unknown, transient(unknown, None)),
            (403, "Forbidden", new_kind, transient(new_kind, None)),
            (403, "Forbidden", "m", ApiError::Forbidden("m".to_owned())),
            (401, "Unauthorized", "m", ApiError::Forbidden("m".to_owned())),
            (400, "BadRequest", "m", ApiError::Invalid("m".to_owned())),
            (422, "Invalid", "m", ApiError::Invalid("m".to_owned())),
            (429, "TooManyRequests", "m", transient("m", None)),
            (500, "InternalError", "m", transient("m", None)),
            (503, "ServiceUnavailable", "m", transient("m", None)),
        ] {
            assert_eq!(error(code, reason, message, 0), expected, "{code} {reason}");
        }
        let asked = error(429, "TooManyRequests", "m", 7);
        assert_eq!((&asked, asked.retry_after()), (&transient("m", Some(7)), Duration::from_secs(7)));
        assert_eq!(error(500, "InternalError", "m", 0).retry_after(), Duration::ZERO);
        assert_eq!(error(409, "Conflict", "m", 7).retry_after(), Duration::ZERO);
    }

    #[test]
    fn the_reasons_of_our_webhooks_are_read_and_other_causes_are_not() {
        let denied = |code: u16, causes: serde_json::Value| {
            let status = json!({
                "status": "Failure", "code": code, "reason": "Forbidden", "message": "m", "details": {"causes": causes},
            });
            ApiError::denied(&serde_json::from_value(status).expect("a Status"))
        };
        let other = json!({"reason": "FieldValueInvalid", "message": "no", "field": "spec.x"});
        let ours = json!({"reason": "NotEnrolled", "message": "tea"});
        let causes = vec![Cause::new(DenialReason::NotEnrolled, "tea")];
        let expected = ApiError::Denied { message: "m".to_owned(), causes };
        for code in [400, 403, 404, 409, 500] {
            assert_eq!(denied(code, json!([other, ours])), Some(expected.clone()), "{code}");
        }
        assert!(!expected.is_transient() && !expected.is_away());
        assert_eq!((denied(403, json!([other])), denied(403, json!([]))), (None, None));
    }

    #[test]
    fn the_invalid_fields_of_an_object_are_kept_within_limits() {
        let status = |causes: serde_json::Value| -> kube::core::Status {
            let status = json!({
                "status": "Failure", "code": 422, "reason": "Invalid", "message": "m", "details": {"causes": causes},
            });
            serde_json::from_value(status).expect("a Status")
        };
        let of = |causes| {
            let status = status(causes);
            ApiError::from_status(&status).with_fields(&status)
        };
        let cause = json!({"reason": "FieldValueInvalid", "message": "no", "field": "spec.x"});
        let fields = vec![InvalidField { path: "spec.x".to_owned(), message: "no".to_owned() }];
        let expected = ApiError::InvalidFields { message: "m".to_owned(), fields };
        assert_eq!(of(json!([cause, {"reason": "FieldValueInvalid", "message": "whole"}])), expected);
        assert!(!expected.is_transient() && !expected.is_away());
        assert_eq!(of(json!([])), ApiError::Invalid("m".to_owned()));
        let long = json!({"message": "x".repeat(9_999), "field": "y".repeat(9_999)});
        let ApiError::InvalidFields { fields, .. } = of(vec![long; 999].into()) else { panic!("no fields") };
        let lengths = fields.iter().map(|field| field.path.chars().count() + field.message.chars().count());
        assert_eq!(lengths.collect::<Vec<_>>(), [2 * LONGEST_OF_FIELD; MOST_FIELDS]);
        let conflict = ApiError::Conflict("m".to_owned());
        assert_eq!(conflict.clone().with_fields(&status(json!([cause]))), conflict);
    }

    #[test]
    fn a_write_rejected_by_the_gate_was_not_sent() {
        let of =
            |error: Box<dyn std::error::Error + Send + Sync>| ApiError::from(kube::Error::Service(error));
        assert_eq!(of(Box::new(NotLeader)), ApiError::NotLeader);
        let broken = of("the connection is broken".into());
        assert!(
            matches!(&broken, ApiError::Transient { message, .. } if message.contains("is broken")),
            "{broken}"
        );
    }

    #[test]
    fn only_errors_that_can_resolve_themselves_are_transient() {
        let text = String::new;
        let conflict = ApiError::NameConflict { kind: "Secret", name: text(), owner: text() };
        for (error, expected) in [
            (ApiError::Conflict(text()), true),
            (ApiError::AlreadyExists(text()), true),
            (ApiError::NotFound(text()), true),
            (ApiError::transient(""), true),
            (ApiError::Silent, true),
            (ApiError::Stale(text()), true),
            (ApiError::NotLeader, true),
            (ApiError::Leaving(Box::default()), true),
            (ApiError::QuotaExceeded(text()), false),
            (ApiError::Forbidden(text()), false),
            (ApiError::Invalid(text()), false),
            (ApiError::TooLong(text()), false),
            (conflict, false),
        ] {
            assert_eq!(error.is_transient(), expected, "{error:?}");
        }
    }
}
