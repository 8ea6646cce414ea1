//! The errors of calls to the container runtime.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Code, Status};

use crate::api::shown::one_line;
use crate::runtime::error::with_sources;

/// The reason why a call to the container runtime failed. The messages are ends of sentences.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CriError {
    /// The socket cannot be reached, or the connection was interrupted.
    #[error("{} does not answer: {reason}", socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// The error.
        reason: String,
    },
    /// The call timed out.
    #[error("{} did not answer {method} within {after:?}", socket.display())]
    Deadline {
        /// The socket.
        socket: PathBuf,
        /// The method that was called.
        method: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// The runtime returned an error, or its response cannot be read.
    #[error("{method} is answered with {code:?}: {message}")]
    Refused {
        /// The method that was called.
        method: &'static str,
        /// The gRPC status code.
        code: Code,
        /// The message of the runtime, on one line of at most 300 characters.
        message: String,
    },
    /// No socket answers.
    #[error("no container runtime answers: {}", .0.join("; "))]
    NoRuntime(Vec<String>),
    /// The container or sandbox is not running.
    #[error("{0} does not run")]
    NotRunning(String),
    /// The runtime does not report the process of a container or sandbox.
    #[error("the runtime does not say which process {0} has")]
    NoProcess(String),
}

impl CriError {
    /// The error for a status that tonic returns. It is the runtime's status or, if it has a source, tonic's own
    /// status for a connection that cannot be opened or was interrupted.
    pub(super) fn of(status: &Status, socket: PathBuf, method: &'static str) -> Self {
        if let Some(source) = status.source() {
            return Self::Unreachable { socket, reason: one_line(&with_sources(source)) };
        }
        Self::Refused { method, code: status.code(), message: one_line(status.message()) }
    }

    /// Whether the runtime reports that the container or sandbox does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: Code::NotFound, .. })
    }
}
