//! Helm, for the chart of the project.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The folder of the project.
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The path of Helm 3, which is built once.
pub fn helm() -> &'static Path {
    static HELM: LazyLock<PathBuf> = LazyLock::new(|| built("3"));
    &HELM
}

/// The path of Helm 4, which is built once.
pub fn helm4() -> &'static Path {
    static HELM: LazyLock<PathBuf> = LazyLock::new(|| built("4"));
    &HELM
}

fn built(major: &str) -> PathBuf {
    let script = ". tests/helm.sh && printf '\\n%s' \"$HELM\"";
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .env("HELM_MAJOR", major)
        .current_dir(PROJECT)
        .output()
        .expect("bash starts");
    assert!(output.status.success(), "Helm {major}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    PathBuf::from(text.lines().last().expect("its path"))
}

/// The objects that the chart renders from these values (YAML), for a release in this namespace.
pub fn template(release: &str, namespace: &str, values: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values).expect("written");
    let output = Command::new(helm())
        .args(["template", release, "manifests/chart", "--no-hooks", "--namespace", namespace, "--values"])
        .arg(&file)
        .current_dir(PROJECT)
        .output()
        .expect("helm starts");
    assert!(output.status.success(), "helm template: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
