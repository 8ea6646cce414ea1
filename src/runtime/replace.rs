//! Replaces a file atomically: readers find the former content or the new one, also after a crash.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Gives a file this content and this mode if its content differs. Returns whether it did. The new content is
/// completely on disk before it replaces the former content.
///
/// # Errors
/// When the file or its folder cannot be written; the former content is kept.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<bool> {
    let new = draft(path)?;
    // A draft left over by a killed process. Its content may be incomplete.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if has_content(path, content).unwrap_or(false) {
        return Ok(false);
    }
    let written = write(&new, content, mode).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written?;
    // Syncing the folder puts the new name on disk.
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()?;
    Ok(true)
}

/// Whether a file has this content. It is read in pieces: the file of public keys grows with the number of Tenants.
fn has_content(path: &Path, content: &[u8]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != u64::try_from(content.len()).unwrap_or(u64::MAX) {
        return Ok(false);
    }
    let (mut piece, mut rest) = (vec![0; 64 << 10], content);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(rest.is_empty()),
            length => match rest.strip_prefix(&piece[..length]) {
                Some(left) => rest = left,
                None => return Ok(false),
            },
        }
    }
}

/// Returns the name of the draft, in the same folder, so that a rename can replace the old file.
fn draft(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::other("the path has no file name"))?;
    let hidden: OsString = [OsStr::new("."), name, OsStr::new(".new")].into_iter().collect();
    Ok(path.with_file_name(hidden))
}

fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    // `create_new` does not follow symbolic links. Other users cannot read the file before it has its mode.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    // Independent of the umask.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_and_only_when_it_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        assert!(replace(&path, b"one", 0o644).expect("written"));
        let first = fs::metadata(&path).expect("there");
        assert_eq!(first.mode() & 0o777, 0o644);
        assert!(!replace(&path, b"one", 0o644).expect("equal"));
        assert_eq!(fs::metadata(&path).expect("there").ino(), first.ino(), "the same file");
        assert!(replace(&path, b"", 0o444).expect("written"));
        let second = fs::metadata(&path).expect("there");
        assert_ne!(second.ino(), first.ino(), "another file: the old one is never written to");
        assert_eq!((second.mode() & 0o777, second.len()), (0o444, 0));
    }

    #[test]
    fn a_leftover_draft_is_removed_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, elsewhere) = (folder.path().join("keys"), folder.path().join("elsewhere"));
        fs::write(&elsewhere, "mine").expect("written");
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(".keys.new")).expect("linked");
        replace(&path, b"one", 0o644).expect("written");
        fs::write(folder.path().join(".keys.new"), "half of a ke").expect("written");
        assert!(!replace(&path, b"one", 0o644).expect("equal"));
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).expect("read").map(|entry| entry.expect("one").file_name()).collect();
        names.sort();
        assert_eq!(names, ["elsewhere", "keys"]);
        assert_eq!(fs::read_to_string(&elsewhere).expect("read"), "mine");
    }

    #[test]
    fn an_error_leaves_the_former_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        replace(&path.join("below"), b"one", 0o644).expect_err("no such folder");
        fs::create_dir_all(path.join("occupied")).expect("a folder in the place of the file");
        replace(&path, b"one", 0o644).expect_err("a folder is not replaced");
        assert!(path.join("occupied").is_dir());
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 1, "no draft is left");
    }

    #[test]
    fn a_draft_that_cannot_be_removed_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        replace(&path, b"one", 0o644).expect("written");
        fs::create_dir(folder.path().join(".keys.new")).expect("a folder in the place of the draft");
        for content in [b"one", b"two"] {
            replace(&path, content, 0o644).expect_err("the next change could not be written");
        }
        assert_eq!(fs::read(&path).expect("read"), b"one");
    }
}
