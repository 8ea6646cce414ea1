//! The result of a rule: a request is admitted or refused.

use json_patch::PatchOperation;

/// Whether a request is admitted, with changes to the object and warnings to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The changes that the API server makes to the object before it stores it, or why it must not store it.
    pub outcome: Result<Vec<PatchOperation>, Denial>,
    /// Warnings, which `kubectl` shows to the user whose request it is.
    pub warnings: Vec<String>,
}

impl Decision {
    /// Admits the request without changes.
    pub fn allowed() -> Self {
        Self::patched(Vec::new())
    }

    /// Admits the request with these changes of the object.
    pub fn patched(patch: Vec<PatchOperation>) -> Self {
        Self { outcome: Ok(patch), warnings: Vec::new() }
    }

    /// Refuses the request.
    pub fn denied(denial: Denial) -> Self {
        Self { outcome: Err(denial), warnings: Vec::new() }
    }

    /// The same decision with one more warning.
    pub fn with_warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Whether the request is admitted.
    pub fn is_allowed(&self) -> bool {
        self.outcome.is_ok()
    }
}

impl From<Result<(), Denial>> for Decision {
    fn from(result: Result<(), Denial>) -> Self {
        result.map_or_else(Self::denied, |()| Self::allowed())
    }
}

/// Why a request is refused. The API server returns code, reason and message to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The object cannot be read (400).
    #[error("{0}")]
    Malformed(String),
    /// The rules do not allow the change (403).
    #[error("{0}")]
    Forbidden(String),
    /// An object that the rules need does not exist (404).
    #[error("{0}")]
    NotFound(String),
    /// The change would remove something that is in use (409).
    #[error("{0}")]
    Conflict(String),
    /// The rules cannot be applied, for example because a Workspace that the object names does not exist
    /// (500).
    #[error("{0}")]
    Internal(String),
}

impl Denial {
    /// A [`Denial::Malformed`] with this message.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::Malformed(message.into())
    }

    /// A [`Denial::Forbidden`] with this message.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::Forbidden(message.into())
    }

    /// The HTTP status code.
    pub const fn code(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Forbidden(_) => 403,
            Self::NotFound(_) => 404,
            Self::Conflict(_) => 409,
            Self::Internal(_) => 500,
        }
    }

    /// The reason, in the words of Kubernetes (`metav1.StatusReason`).
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "BadRequest",
            Self::Forbidden(_) => "Forbidden",
            Self::NotFound(_) => "NotFound",
            Self::Conflict(_) => "Conflict",
            Self::Internal(_) => "InternalError",
        }
    }

    /// The message for the user.
    pub fn message(&self) -> String {
        self.to_string()
    }
}
