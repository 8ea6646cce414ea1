//! The folders of clusters.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

/// The folder of a cluster: the given one, or a temporary one named after this process.
pub fn run_dir(given: Option<&Path>) -> Result<(PathBuf, Option<TempDir>)> {
    if let Some(dir) = given {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let dir = dir.canonicalize()?;
        if dir.join("etcd").exists() {
            bail!("{} holds the data of another cluster: remove it or choose another folder", dir.display());
        }
        return Ok((dir, None));
    }
    let temporary = temporary_dir()?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

/// A temporary folder named after this process.
pub fn temporary_dir() -> Result<TempDir> {
    remove_leftovers();
    let prefix = format!("{RUN_PREFIX}{}-", std::process::id());
    Ok(tempfile::Builder::new().prefix(&prefix).tempdir()?)
}

/// The beginning of the names of temporary folders; the process id follows.
const RUN_PREFIX: &str = "crownlabs-cluster-";

/// Removes the folders of test processes that were killed before they could remove them.
fn remove_leftovers() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(RUN_PREFIX).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| Path::new("/proc/self").exists() && !Path::new("/proc").join(pid).exists()) {
            // Fails if another user created the folder.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The paths of the files in a folder.
pub fn files_of(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    Ok(entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?)
}
