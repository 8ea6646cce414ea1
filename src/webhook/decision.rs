//! The result of a rule: a request is admitted or refused.

use json_patch::PatchOperation;

use crate::api::denial::{Cause, DenialReason};

/// Whether a request is admitted, with changes to the object and warnings to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The changes that the API server makes to the object before it stores it, or the reason for the refusal.
    pub outcome: Result<Vec<PatchOperation>, Denial>,
    /// Warnings, which `kubectl` shows to the user.
    pub warnings: Vec<String>,
}

impl Decision {
    /// Admits the request without changes.
    pub fn allowed() -> Self {
        Self::patched(Vec::new())
    }

    /// Admits the request with these changes to the object.
    pub fn patched(patch: Vec<PatchOperation>) -> Self {
        Self { outcome: Ok(patch), warnings: Vec::new() }
    }

    /// Refuses the request.
    pub fn denied(denial: Denial) -> Self {
        Self { outcome: Err(denial), warnings: Vec::new() }
    }

    /// Adds a warning to the decision.
    pub fn with_warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Whether the request is admitted.
    pub fn is_allowed(&self) -> bool {
        self.outcome.is_ok()
    }
}

/// The reason why a request is refused. The API server returns it to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    /// The HTTP status code.
    pub code: u16,
    /// The reason as defined by Kubernetes (`metav1.StatusReason`).
    pub reason: &'static str,
    /// The message for the user.
    pub message: String,
    /// The reasons for programs. The dashboard translates them for refusals that its pages can cause; other refusals have
    /// none.
    pub causes: Vec<Cause>,
    /// The invalid fields, for pages that show each message beside its field.
    pub fields: Vec<FieldCause>,
}

/// An invalid field of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldCause {
    /// Its path, such as `spec.environmentList[0].image`.
    pub path: String,
    /// Why it is invalid.
    pub message: String,
}

impl Denial {
    /// The object is invalid.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    /// The rules forbid the change.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message.into())
    }

    /// An object that the rules need does not exist.
    pub fn not_found(message: String) -> Self {
        Self::new(404, "NotFound", message)
    }

    /// The change would remove something that is in use.
    pub fn conflict(message: String) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// The rules cannot be applied, for example because a Workspace that the object names does not exist.
    pub fn internal(message: String) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// Adds a reason for programs, with the value that it is about.
    #[must_use]
    pub fn because(mut self, reason: DenialReason, value: &str) -> Self {
        self.causes.push(Cause::new(reason, value));
        self
    }

    /// Names an invalid field.
    #[must_use]
    pub fn at(mut self, path: String, message: &str) -> Self {
        self.fields.push(FieldCause { path, message: message.to_owned() });
        self
    }

    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, causes: Vec::new(), fields: Vec::new() }
    }
}
