//! The cgroups of the containers, which outlive their processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folders with the cgroups: one for each controller in version 1.
fn hierarchies() -> Vec<PathBuf> {
    let root = PathBuf::from("/sys/fs/cgroup");
    let folders = fs::read_dir(&root).into_iter().flatten().flatten().map(|entry| entry.path());
    folders.filter(|path| path.is_dir()).chain([root.clone()]).collect()
}

/// Creates a cgroup, for each controller in version 1.
pub fn make_cgroups(name: &str) -> io::Result<()> {
    let root = Path::new("/sys/fs/cgroup");
    let is_one = root.join("cgroup.controllers").exists();
    let folders = if is_one { vec![root.to_path_buf()] } else { hierarchies() };
    let mut folders = folders.iter().filter(|folder| is_one || *folder != root);
    folders.try_for_each(|folder| fs::create_dir_all(folder.join(name.trim_start_matches('/'))))
}

/// Removes a cgroup and its children, which must not have processes. Returns whether they are gone.
pub fn remove_cgroups(name: &str) -> bool {
    fn remove(folder: &Path) -> bool {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&entry.path());
            }
        }
        fs::remove_dir(folder).is_ok() || !folder.exists()
    }
    hierarchies().iter().all(|folder| remove(&folder.join(name.trim_start_matches('/'))))
}

/// Removes the cgroups of test processes that were killed before they could remove them.
pub fn remove_old_cgroups() {
    for folder in hierarchies() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let id = name.strip_prefix("crownlabs-").and_then(|rest| rest.split('-').next());
            let is_old = |id: &str| id.parse::<u32>().is_ok() && !Path::new("/proc").join(id).exists();
            if id.is_some_and(is_old) {
                remove_cgroups(&name);
            }
        }
    }
}
