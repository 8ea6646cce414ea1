//! Reads the input files of `crownlabs plan`: named files, standard input, and files in folders.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::config::file::{self, FileError};

/// The extensions of files that are read from a folder, as in `kubectl`.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// A file and its content.
pub struct Input {
    /// Its name, for messages.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Reads files, and the files in folders sorted by name, in the given order. `-` is standard input.
///
/// # Errors
/// When a file cannot be read, or a folder contains no file.
pub fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in paths {
        if path.is_dir() {
            for file in within(path)? {
                inputs.push(read_one(&file)?);
            }
        } else {
            inputs.push(read_one(path)?);
        }
    }
    Ok(inputs)
}

/// The files of a folder, without subfolders.
fn within(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("{} cannot be read", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_file() && ENDINGS.contains(&ending) {
            files.push(path);
        }
    }
    files.sort();
    anyhow::ensure!(!files.is_empty(), "{} has no file with YAML or JSON in it", folder.display());
    Ok(files)
}

/// Reads a file; `-` is standard input.
///
/// # Errors
/// When the file cannot be read, or is not UTF-8.
pub fn read_one(file: &Path) -> anyhow::Result<Input> {
    let is_input = file == Path::new("-");
    let name = if is_input { "standard input".to_owned() } else { file.display().to_string() };
    let text = read_text(file).with_context(|| format!("{name} cannot be read"))?;
    Ok(Input { name, text })
}

fn read_text(path: &Path) -> Result<String, FileError> {
    if path != Path::new("-") {
        return file::read_text(path);
    }
    let mut content = Vec::new();
    let read = io::stdin().read_to_end(&mut content);
    read.map_err(|error| FileError::System(error.to_string()))?;
    file::text(&content).map(str::to_owned)
}
