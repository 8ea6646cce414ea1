//! The errors of registry queries.

use std::time::Duration;

use super::listing::LARGEST;
use super::names::MOST;
use crate::api::reason::{
    IMAGE_LIST_TOO_LARGE, REGISTRY_BAD_ANSWER, REGISTRY_ELSEWHERE, REGISTRY_FAILED, REGISTRY_REFUSED,
    REGISTRY_SETTINGS_INVALID, REGISTRY_UNREACHABLE, Reason,
};
use crate::clients::http::HttpError;

/// The result of a query.
pub type Result<T, E = QueryError> = std::result::Result<T, E>;

/// The reason why there is no list, as the end of a sentence. Of a response, it only contains error codes, because
/// every user may read the condition with the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A key, or a file that it names, is invalid.
    #[error("{key} cannot be used: {problem}")]
    Settings {
        /// The key in the configuration of the registry.
        key: &'static str,
        /// The error.
        problem: String,
    },
    /// There is no response, or it is incomplete.
    #[error("{request}: {error}")]
    NoAnswer {
        /// The method and path.
        request: String,
        /// The error.
        error: HttpError,
    },
    /// The whole query timed out.
    #[error("it could not be read within {} s", limit.as_secs())]
    Late {
        /// The limit.
        limit: Duration,
    },
    /// The login is rejected, or the registry requires a login and none is configured.
    #[error("{request} was answered {status}{codes}: {}", if *.logged_in {
        "check the user, the content of passwordFile, and the permissions of the user"
    } else {
        "it requires a login: set username and passwordFile"
    })]
    Refused {
        /// The method and path.
        request: String,
        /// The status.
        status: u16,
        /// The error codes in the response, in parentheses.
        codes: String,
        /// Whether a login is configured.
        logged_in: bool,
    },
    /// The response has an unexpected status.
    #[error("{request} was answered {status}{codes}")]
    Status {
        /// The method and path.
        request: String,
        /// The status.
        status: u16,
        /// The error codes in the response, in parentheses.
        codes: String,
    },
    /// The registry refers to another server.
    #[error("{request} refers to {to}, and no request is sent there: {advice}")]
    Elsewhere {
        /// The method and path.
        request: String,
        /// The scheme, host and port.
        to: String,
        /// The advice to the administrator.
        advice: &'static str,
    },
    /// The response cannot be used.
    #[error("{request}: {problem}")]
    BadAnswer {
        /// The method and path.
        request: String,
        /// The error in the response.
        problem: String,
    },
    /// The registry has more entries than a list may have.
    #[error("there are more than {MOST} {0}: name a project that has fewer, or delete some")]
    TooMany(String),
    /// The list is too large for an object.
    #[error(
        "its {images} images make a list of {} KiB, and an ImageList may have {} KiB; the largest is {largest} with \
         {tags} tags: delete tags, or make several lists, each of one project", bytes >> 10, LARGEST >> 10
    )]
    TooLarge {
        /// The number of images.
        images: usize,
        /// The size of the list.
        bytes: usize,
        /// The image with the most data.
        largest: String,
        /// The number of its tags.
        tags: usize,
    },
    /// A defect of the daemon.
    #[error("the query panicked; this is a defect of the daemon")]
    Panicked,
}

impl QueryError {
    /// Whether the registry failed. Otherwise it holds more than a list may have.
    pub fn is_of_the_registry(&self) -> bool {
        !matches!(self, Self::TooMany(_) | Self::TooLarge { .. } | Self::Panicked)
    }

    /// The reason for the condition.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Settings { .. } => REGISTRY_SETTINGS_INVALID,
            Self::NoAnswer { error: HttpError::TooLong(_), .. } | Self::BadAnswer { .. } => {
                REGISTRY_BAD_ANSWER
            }
            Self::NoAnswer { .. } | Self::Late { .. } => REGISTRY_UNREACHABLE,
            Self::Refused { .. } => REGISTRY_REFUSED,
            Self::Status { .. } | Self::Panicked => REGISTRY_FAILED,
            Self::Elsewhere { .. } => REGISTRY_ELSEWHERE,
            Self::TooMany(_) | Self::TooLarge { .. } => IMAGE_LIST_TOO_LARGE,
        }
    }
}
