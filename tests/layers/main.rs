//! Rules about the text of the repository, checked without a cluster in under a second: the allowed imports of each
//! module ([`imports`]), the imports within the dashboard ([`dashboard`]), the length of files ([`sizes`]), the
//! choice of ports ([`ports`]), that comments and documents refer only to content of the repository
//! ([`references`]), and that the code has the texts in the page about troubleshooting ([`troubleshooting`]).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod claims;
mod dashboard;
mod imports;
mod ports;
mod references;
mod sizes;
mod troubleshooting;

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
struct Source {
    /// Its path below the root of the repository, with `/` between the parts.
    path: String,
    text: String,
}

/// The text files below some files and folders of the repository, in the order of their paths. Build output, hidden
/// folders and lock files are left out.
fn sources(roots: &[&str], is_wanted: impl Fn(&str) -> bool) -> Vec<Source> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for root in roots {
        collect(&repository.join(root), &mut files);
    }
    files.sort();
    let relative = |file: &Path| {
        let path = file.strip_prefix(repository).expect("it is below the root");
        path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
    };
    files
        .iter()
        .map(|file| (relative(file), file))
        .filter(|(path, _)| is_wanted(path))
        .map(|(path, file)| Source { text: read(file), path })
        .collect()
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

fn read(file: &Path) -> String {
    let bytes = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a directory entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Fails with one line for each violation.
fn assert_none(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}: {} violations\n{}", violations.len(), violations.join("\n"));
}
