//! The errors of a query of a registry.

use std::time::Duration;

use crate::api::reason::{
    IMAGE_LIST_TOO_LARGE, REGISTRY_BAD_ANSWER, REGISTRY_ELSEWHERE, REGISTRY_FAILED, REGISTRY_REFUSED,
    REGISTRY_SETTINGS_INVALID, REGISTRY_UNREACHABLE, Reason,
};
use crate::clients::http::HttpError;

/// Why there is no list, as the end of a sentence. It repeats nothing of an answer but the codes of errors, because
/// everybody may read the condition that it gets into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A file that a key names, or the key itself, cannot be used.
    #[error("{key} cannot be used: {problem}")]
    Settings {
        /// The key of the registry's entry.
        key: &'static str,
        /// The fault.
        problem: String,
    },
    /// There is no answer, or no whole one.
    #[error("{request}: {error}")]
    NoAnswer {
        /// The method and path.
        request: String,
        /// The error.
        error: HttpError,
    },
    /// All requests together take too long.
    #[error("it could not be read within {} s", limit.as_secs())]
    Late {
        /// The limit.
        limit: Duration,
    },
    /// The login is not accepted, or there is none and the registry asks for one.
    #[error("{request} was answered {status}{codes}: {}", if *.logged_in {
        "check the user, the content of passwordFile, and what the user may read"
    } else {
        "it asks for a login: set username and passwordFile"
    })]
    Refused {
        /// The method and path.
        request: String,
        /// The status.
        status: u16,
        /// The codes in its body, in parentheses.
        codes: String,
        /// Whether somebody logs in.
        logged_in: bool,
    },
    /// Another status than was asked for.
    #[error("{request} was answered {status}{codes}")]
    Status {
        /// The method and path.
        request: String,
        /// The status.
        status: u16,
        /// The codes in its body, in parentheses.
        codes: String,
    },
    /// The registry sends us to another place.
    #[error("{request} leads to {to}, where nothing is sent: {advice}")]
    Elsewhere {
        /// The method and path.
        request: String,
        /// The scheme, host and port.
        to: String,
        /// The advice to the administrator.
        advice: &'static str,
    },
    /// The answer cannot be used.
    #[error("{request}: {problem}")]
    BadAnswer {
        /// The method and path.
        request: String,
        /// The fault of the answer.
        problem: String,
    },
    /// There is more than a list may have.
    #[error("there are more than {bound} {what}: name a project that has fewer, or delete some")]
    TooMany {
        /// The things of which there are too many.
        what: String,
        /// How many there may be.
        bound: usize,
    },
    /// The list would not fit into an object.
    #[error(
        "its {images} images make a list of {} KiB, and an ImageList may have {} KiB; the largest is {largest} with \
         {tags} tags: delete tags, or make several lists, each of one project", bytes >> 10, bound >> 10
    )]
    TooLarge {
        /// The number of images.
        images: usize,
        /// The size of the list.
        bytes: usize,
        /// The bound.
        bound: usize,
        /// The image that takes most of it.
        largest: String,
        /// The number of its tags.
        tags: usize,
    },
    /// A defect of ours.
    #[error("the query panicked; this is a defect of the daemon")]
    Panicked,
}

impl QueryError {
    /// The reason, for the condition.
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
            Self::TooMany { .. } | Self::TooLarge { .. } => IMAGE_LIST_TOO_LARGE,
        }
    }
}
