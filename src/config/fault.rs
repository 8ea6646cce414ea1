//! Faults of a configuration file, as messages for administrators.

use std::fmt;
use std::path::PathBuf;

use super::file::FileError;

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read: {problem}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The problem of the file.
        problem: FileError,
    },
    /// The file has faults. They are ordered by line and displayed one per line.
    #[error("{}", one_per_line(.0))]
    Faults(Vec<Fault>),
}

/// One fault of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the file.
    pub file: String,
    /// The line, from 1; `None` for a key that is missing at the top level.
    pub line: Option<u64>,
    /// The path of the key, for example `leaderElection.leaseDuration`; empty for the file as a whole.
    pub key: String,
    /// The problem with the value.
    pub problem: String,
    /// A description of valid values; empty if the problem already says it.
    pub expected: String,
}

impl Fault {
    pub(super) fn new(
        file: &str,
        line: Option<u64>,
        key: &str,
        problem: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line,
            key: key.to_owned(),
            problem: problem.into(),
            expected: expected.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        formatter.write_str(": ")?;
        if !self.key.is_empty() {
            write!(formatter, "{}: ", self.key)?;
        }
        formatter.write_str(&self.problem)?;
        if !self.expected.is_empty() {
            write!(formatter, "; {}", self.expected)?;
        }
        Ok(())
    }
}

fn one_per_line(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    lines.join("\n")
}
