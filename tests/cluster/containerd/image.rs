//! The one image of the tests: a static program, in an archive as `docker save` writes it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use ring::digest::{SHA256, digest};
use serde_json::json;

/// The name of the image.
pub const IMAGE: &str = "crownlabs.test/lab:1";

/// Builds the program, and writes the archive into `dir`.
pub fn archive(dir: &Path) -> Result<PathBuf> {
    let (source, program) = (dir.join("lab.c"), dir.join("lab"));
    fs::write(&source, include_str!("lab.c"))?;
    run(Command::new("cc").args(["-static", "-O1", "-o"]).args([&program, &source]))?;
    tar(dir, "layer.tar", &["lab"])?;
    let layer = digest(&SHA256, &fs::read(dir.join("layer.tar"))?);
    let mut hex = String::new();
    for byte in layer.as_ref() {
        let _ = write!(hex, "{byte:02x}");
    }
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": ["/lab"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{hex}")]},
    });
    fs::write(dir.join("config.json"), config.to_string())?;
    let manifest = json!([{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]);
    fs::write(dir.join("manifest.json"), manifest.to_string())?;
    tar(dir, "image.tar", &["manifest.json", "config.json", "layer.tar"])?;
    Ok(dir.join("image.tar"))
}

fn tar(dir: &Path, archive: &str, files: &[&str]) -> Result<()> {
    run(Command::new("tar").current_dir(dir).args(["-cf", archive]).args(files))
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
