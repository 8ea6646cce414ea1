//! What goes wrong with the container runtime.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Code, Status};

use crate::api::shown::one_line;
use crate::runtime::error::with_sources;

/// Why the container runtime did not do what it was asked for. The messages are ends of sentences.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CriError {
    /// The socket cannot be reached, or the connection breaks.
    #[error("{} does not answer: {reason}", socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is no answer in time.
    #[error("{} did not answer {method} within {after:?}", socket.display())]
    Deadline {
        /// The socket.
        socket: PathBuf,
        /// The method that was called.
        method: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The runtime refuses, or its answer cannot be read.
    #[error("{method} is answered with {code:?}: {message}")]
    Refused {
        /// The method that was called.
        method: &'static str,
        /// The status of gRPC.
        code: Code,
        /// The words of the runtime, on one line of at most 300 characters.
        message: String,
    },
    /// None of the sockets that are tried answers.
    #[error("no container runtime answers: {}", .0.join("; "))]
    NoRuntime(Vec<String>),
    /// The container or sandbox does not run.
    #[error("{0} does not run")]
    NotRunning(String),
    /// The runtime does not say which process a container or sandbox has.
    #[error("the runtime does not say which process {0} has")]
    NoProcess(String),
}

impl CriError {
    /// The error for a status that tonic returns: the runtime's, or tonic's own, which has a source, for a connection that
    /// cannot be made or breaks.
    pub(super) fn of(status: &Status, socket: PathBuf, method: &'static str) -> Self {
        if let Some(source) = status.source() {
            return Self::Unreachable { socket, reason: one_line(&with_sources(source)) };
        }
        Self::Refused { method, code: status.code(), message: one_line(status.message()) }
    }

    /// Whether the runtime says that there is no such container or sandbox.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: Code::NotFound, .. })
    }
}
