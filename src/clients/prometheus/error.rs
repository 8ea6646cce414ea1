//! The errors of queries of Prometheus.

use std::path::PathBuf;

use http::StatusCode;

use crate::api::shown::one_line;
use crate::clients::http::HttpError;

/// Why a query has no answer. The words of Prometheus are in it; the token never is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryError {
    /// The file with the token cannot be used.
    #[error("the token in {} cannot be read: {problem}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: String,
    },
    /// The server cannot be reached.
    #[error("{0}")]
    Http(#[from] HttpError),
    /// `/-/healthy` is not answered with 200.
    #[error("it says that it is not healthy (HTTP {0})")]
    Unhealthy(StatusCode),
    /// Prometheus refuses the query, or gives up on it.
    #[error("the query is refused: {}", one_line(.0))]
    Refused(String),
    /// Somebody else answers, such as a proxy.
    #[error("the answer is HTTP {0}")]
    Status(StatusCode),
    /// The result is of another type.
    #[error("the result of the query is a {0} and not a vector")]
    NotAVector(String),
    /// The answer is not in the form of the query API.
    #[error("the answer is not that of Prometheus")]
    BadAnswer,
}

impl QueryError {
    /// Whether another query would fail for the same reason, perhaps after the time limit.
    pub fn is_of_the_server(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::NotAVector(_))
    }
}
