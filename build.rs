//! Collects the languages of the dashboard, of which each file of its texts is one, and finds the scripts that `make assets`
//! makes: `cfg(live)` if the script of live pages is there, and so on.

#![allow(clippy::expect_used, reason = "a build script fails by a panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The folder with a file for each language, such as `en.yaml`.
const TEXTS: &str = "src/controllers/dashboard/texts";

/// The folder that exists without the scripts, and the scripts: `assets/vendor/live.js.gz` is `live`.
const ASSETS: &str = "assets";
const SCRIPTS: &[&str] = &["console", "live", "terminal"];

fn main() {
    println!("cargo:rerun-if-changed={TEXTS}");
    println!("cargo:rerun-if-changed={ASSETS}");
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    for script in SCRIPTS {
        println!("cargo:rustc-check-cfg=cfg({script})");
        if root.join(format!("{ASSETS}/vendor/{script}.js.gz")).exists() {
            println!("cargo:rustc-cfg={script}");
        }
    }
    let entries = std::fs::read_dir(root.join(TEXTS)).expect("the folder of the texts");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    // English comes first.
    files.sort_by_key(|file| (code(file) != "en", code(file).to_owned()));
    let mut table = String::from("[\n");
    for file in &files {
        let code = code(file);
        let path = format!("/{TEXTS}/{code}.yaml");
        writeln!(table, "    ({code:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),")
            .expect("a String takes all");
    }
    table.push_str("]\n");
    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    std::fs::write(output.join("languages.rs"), table).expect("the output folder");
}

/// The code of the language of a file.
fn code(file: &Path) -> &str {
    file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}
