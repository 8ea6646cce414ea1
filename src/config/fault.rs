//! What is wrong with a configuration file, in words for an administrator.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// All that is wrong in it, in the order of the lines; displayed as one line each.
    #[error("{}", one_per_line(.0))]
    Faults(Vec<Fault>),
}

/// One thing that is wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the file.
    pub file: String,
    /// The line, from 1; none where something is missing that has no place.
    pub line: Option<u64>,
    /// The key with those above it, `leaderElection.leaseDuration`; empty for the file as a whole.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right; empty where the problem says it.
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
