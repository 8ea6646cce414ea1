//! What a rule comes to.

use json_patch::PatchOperation;

/// Whether a request is admitted, and what is to be changed or said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The changes that are made to the object before it is stored, or why it is not stored.
    pub outcome: Result<Vec<PatchOperation>, Denial>,
    /// Sentences that `kubectl` shows to whoever asked.
    pub warnings: Vec<String>,
}

impl Decision {
    /// The request is admitted as it is.
    #[must_use]
    pub fn allowed() -> Self {
        Self::patched(Vec::new())
    }

    /// The request is admitted with these changes.
    #[must_use]
    pub fn patched(patch: Vec<PatchOperation>) -> Self {
        Self { outcome: Ok(patch), warnings: Vec::new() }
    }

    /// The request is refused.
    #[must_use]
    pub fn denied(denial: Denial) -> Self {
        Self { outcome: Err(denial), warnings: Vec::new() }
    }

    /// The same with a further warning.
    #[must_use]
    pub fn with_warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Whether the request is admitted.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.outcome.is_ok()
    }
}

impl From<Result<(), Denial>> for Decision {
    fn from(result: Result<(), Denial>) -> Self {
        result.map_or_else(Self::denied, |()| Self::allowed())
    }
}

/// Why a request is refused. The API server hands code, reason and message on to whoever asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The object cannot be read (400).
    #[error("{0}")]
    Malformed(String),
    /// The rules do not allow it (403).
    #[error("{0}")]
    Forbidden(String),
    /// What the rules look at does not exist (404).
    #[error("{0}")]
    NotFound(String),
    /// It would break what is in use (409).
    #[error("{0}")]
    Conflict(String),
    /// The rules cannot be applied (500).
    #[error("{0}")]
    Internal(String),
}

impl Denial {
    /// See [`Denial::Malformed`].
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::Malformed(message.into())
    }

    /// See [`Denial::Forbidden`].
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::Forbidden(message.into())
    }

    /// The HTTP status.
    #[must_use]
    pub const fn code(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Forbidden(_) => 403,
            Self::NotFound(_) => 404,
            Self::Conflict(_) => 409,
            Self::Internal(_) => 500,
        }
    }

    /// The word that Kubernetes has for it (`metav1.StatusReason`).
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "BadRequest",
            Self::Forbidden(_) => "Forbidden",
            Self::NotFound(_) => "NotFound",
            Self::Conflict(_) => "Conflict",
            Self::Internal(_) => "InternalError",
        }
    }

    /// A sentence.
    #[must_use]
    pub fn message(&self) -> String {
        self.to_string()
    }
}
