//! The errors of Prometheus queries.

use http::StatusCode;

use crate::api::shown::one_line;
use crate::clients::http::HttpError;
use crate::config::file::FileError;

/// The result of a query.
pub(super) type Result<T, E = QueryError> = std::result::Result<T, E>;

/// The reason why a query failed. Messages may contain texts of Prometheus but never the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryError {
    /// The file with the token cannot be used.
    #[error("integrations.prometheus.bearerTokenFile: {path} cannot be used: {problem}")]
    Token {
        /// The file.
        path: String,
        /// The problem of the file.
        problem: FileError,
    },
    /// The server cannot be reached.
    #[error("{0}")]
    Http(#[from] HttpError),
    /// The response to `/-/healthy` is not 200.
    #[error("it says that it is not healthy (HTTP {0})")]
    Unhealthy(StatusCode),
    /// Prometheus rejects the query or aborts it.
    #[error("the query is refused: {}", one_line(.0))]
    Refused(String),
    /// Another server responds, such as a proxy.
    #[error("the answer is HTTP {0}")]
    Status(StatusCode),
    /// The result has another type.
    #[error("the result of the query is a {0} and not a vector")]
    NotAVector(String),
    /// The response does not have the form of the query API.
    #[error("the answer does not come from Prometheus")]
    BadAnswer,
}

impl QueryError {
    /// Whether other queries would fail for the same reason, perhaps after a timeout.
    pub fn is_of_the_server(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::NotAVector(_))
    }
}
