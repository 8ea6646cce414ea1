//! The content of the image.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest size of the shipped binary, in bytes.
const LARGEST: u64 = 32_000_000;

/// The unpacked image.
pub fn root() -> PathBuf {
    let folder = std::env::var("CROWNLABS_ROOT").expect("CROWNLABS_ROOT, the folder of the unpacked image");
    Path::new(&folder).canonicalize().expect("the unpacked image")
}

/// The files below a folder, by their path in it.
fn files(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(root, &path, found);
        } else {
            found.insert(path.strip_prefix(root).expect("below it").display().to_string());
        }
    }
}

#[test]
fn the_image_has_only_a_small_static_binary_and_the_authorities() {
    let root = root();
    let mut found = BTreeSet::new();
    files(&root, &root, &mut found);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["crownlabs", "etc/ssl/certs/ca-certificates.crt"]);
    let size = fs::metadata(root.join("crownlabs")).expect("the binary").len();
    println!("the binary has {size} bytes");
    assert!(size <= LARGEST, "{size} bytes, {LARGEST} at most");
    // As a container engine does: the folder has no libraries, no shell and no users.
    let output = Command::new("chroot")
        .args(["--userspec=20000:20000"])
        .args([&root, Path::new("/crownlabs")])
        .arg("--version")
        .output()
        .expect("chroot");
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = concat!("crownlabs ", env!("CARGO_PKG_VERSION"), " (");
    assert!(version.starts_with(expected) && version.ends_with(")\n"), "{output:?}");
}

#[test]
fn the_binary_does_not_contain_the_names_of_its_build_folders() {
    let binary = fs::read(root().join("crownlabs")).expect("the binary");
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME")).expect("a home");
    for folder in [env!("CARGO_MANIFEST_DIR"), &home] {
        let found =
            binary.windows(folder.len() + 1).position(|bytes| bytes == format!("{folder}/").as_bytes());
        let context = found.map(|place| String::from_utf8_lossy(&binary[place..place + 120]).into_owned());
        assert_eq!(context, None, "{folder}");
    }
}
