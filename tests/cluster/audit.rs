//! The audit log of the API server: the sender of each request, and the response. Tests count requests with it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde_json::Value;

/// The audit policy: one entry per request at level `Metadata`, written when the response is complete (for a watch,
/// when the watch ends).
pub const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
";

/// A reader of the audit log.
#[derive(Debug, Clone)]
pub struct Audit {
    path: PathBuf,
}

/// A position in the audit log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// One answered request. A text is empty if the request has no such part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The user, for example `system:serviceaccount:crownlabs-system:crownlabs`.
    pub user: String,
    /// The user agent, for example `crownlabs/0.1.0`.
    pub user_agent: String,
    /// get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: String,
    /// The API group, for example `apps`.
    pub group: String,
    /// The plural, for example `instances`.
    pub resource: String,
    /// For example `status`.
    pub subresource: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// HTTP status.
    pub code: u16,
    /// The reason for the rejection.
    pub message: String,
    /// Path and query.
    pub request_uri: String,
    /// The time of the end of the response.
    pub stage_timestamp: Timestamp,
}

impl AuditEntry {
    /// Whether the request is a write, successful or not.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    fn parse(line: &str) -> Result<Self> {
        let event: Value = serde_json::from_str(line)?;
        let text =
            |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
        Ok(Self {
            user: text("/user/username"),
            user_agent: text("/userAgent"),
            verb: text("/verb"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: u16::try_from(code).unwrap_or_default(),
            message: text("/responseStatus/message"),
            request_uri: text("/requestURI"),
            stage_timestamp: text("/stageTimestamp").parse()?,
        })
    }
}

/// The longest line of the log is shorter than this, in bytes.
const LONGEST: u64 = 4 << 20;

impl Audit {
    /// A reader of the log at `path`.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The current end of the log: the end of its last complete line.
    pub fn mark(&self) -> Result<Mark> {
        let mut log = File::open(&self.path).with_context(|| format!("opening {}", self.path.display()))?;
        let start = log.metadata()?.len().saturating_sub(LONGEST);
        log.seek(SeekFrom::Start(start))?;
        let mut text = Vec::new();
        log.read_to_end(&mut text)?;
        let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        Ok(Mark(start + complete as u64))
    }

    /// Every request answered since `mark`, and the position to continue from.
    ///
    /// The API server writes an entry before it ends the answer, so every request whose response was read completely is
    /// in the log.
    pub fn read(&self, mark: Mark) -> Result<(Vec<AuditEntry>, Mark)> {
        let mut log = File::open(&self.path).with_context(|| format!("opening {}", self.path.display()))?;
        log.seek(SeekFrom::Start(mark.0))?;
        let mut text = Vec::new();
        log.read_to_end(&mut text)?;
        // The last line may be incomplete.
        let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let entries = String::from_utf8_lossy(&text[..complete])
            .lines()
            .map(|line| AuditEntry::parse(line).with_context(|| format!("audit entry {line}")))
            .collect::<Result<_>>()?;
        Ok((entries, Mark(mark.0 + complete as u64)))
    }

    /// Every request answered since `mark`.
    pub fn since(&self, mark: Mark) -> Result<Vec<AuditEntry>> {
        self.read(mark).map(|(entries, _)| entries)
    }
}

/// The writes among some entries.
pub fn writes(entries: &[AuditEntry]) -> impl Iterator<Item = &AuditEntry> {
    entries.iter().filter(|entry| entry.is_write())
}

/// The entries whose user agent begins with `prefix`.
pub fn by_agent<'a>(entries: &'a [AuditEntry], prefix: &'a str) -> impl Iterator<Item = &'a AuditEntry> {
    entries.iter().filter(move |entry| entry.user_agent.starts_with(prefix))
}
