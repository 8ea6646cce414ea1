//! The programs of each part of the demo: `tests/prerequisites.sh` where none is installed.

use std::path::Path;
use std::process::Command;

/// The programs of each demo.
const ALWAYS: [&str; 3] = ["openssl", "util-linux", "gcc"];

/// The packages that a demo with these parts lists as missing, besides [`ALWAYS`].
fn missing(parts: &[&str]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prerequisites.sh");
    let mut command = Command::new("/bin/bash");
    // Without a program on the path, nothing can be installed, and the script lists what is missing.
    command.arg(script).args(["demo", "archives"]).args(parts).env("PATH", "/nonexistent");
    let output = command.output().expect("bash");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    let list = said.lines().find_map(|line| line.strip_prefix("missing: ")).expect("a list");
    let (packages, _) = list.split_once(" (").expect("the packages before the command");
    let found: Vec<String> = packages.split(' ').map(str::to_owned).collect();
    assert_eq!(found[..ALWAYS.len()], ALWAYS, "{said}");
    found[ALWAYS.len()..].to_vec()
}

#[test]
fn a_demo_needs_only_the_programs_of_its_parts() {
    let keycloak = ["default-jre-headless", "maven"];
    assert_eq!(missing(&[]), [""; 0]);
    assert_eq!(missing(&["keycloak"]), keycloak);
    assert_eq!(missing(&["dashboard"]), [&keycloak[..], &["nginx-light", "npm", "curl"]].concat());
    assert_eq!(missing(&["automation"]), ["prometheus"]);
    assert_eq!(missing(&["images"]), ["docker-registry"]);
    assert_eq!(missing(&["keycloak", "images"]), [&keycloak[..], &["docker-registry"]].concat());
    for part in ["metrics", "podconfig"] {
        assert_eq!(missing(&[part])[..2], ["containerd", "runc"], "{part}");
    }
}
