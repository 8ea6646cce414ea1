//! The lines that `docs/troubleshooting.md` tells readers to look for exist in the code.

use std::path::Path;

use crate::{assert_none, is_rust, read, sources};

const PAGE: &str = "docs/troubleshooting.md";

/// The texts of Kubernetes, Helm, OpenSSH and container runtimes.
const OF_OTHERS: [&str; 14] = [
    "manifest unknown",
    "no basic auth credentials",
    "certificate signed by unknown authority",
    "cannot create resource \"instances",
    "no endpoints available for service",
    "context deadline exceeded",
    "i/o timeout",
    "Permission denied (publickey",
    "additional properties",
    "not allowed",
    "does not match pattern",
    "got string, want",
    "timed out waiting for the condition",
    "Job in progress",
];

/// The texts in backquotes in the first cells of tables, each with its line. They are split at placeholders and numbers,
/// and signs at their ends are left out. Short parts are left out, too.
fn quoted(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in page.lines().enumerate() {
        let Some(row) = line.strip_prefix("| ") else { continue };
        let cell = row.split(" | ").next().unwrap_or_default();
        for text in cell.split('`').skip(1).step_by(2) {
            let parts = text.split(|sign: char| sign == '…' || sign.is_ascii_digit());
            let parts = parts.map(|part| part.trim_matches(|sign: char| !sign.is_alphanumeric()));
            found.extend(parts.filter(|part| part.len() > 3).map(|part| (number + 1, part)));
        }
    }
    found
}

/// The text of a source file, with each string literal on one line and without escapes of quotation marks.
fn joined(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |joined, line| joined + line.trim_start()).replace("\\\"", "\"")
}

#[test]
fn each_line_to_look_for_is_a_text_of_the_code() {
    let page = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE));
    let code: Vec<String> = sources(&["src"], is_rust).iter().map(|source| joined(&source.text)).collect();
    let quoted = quoted(&page);
    assert!(quoted.len() > 50, "{PAGE} has tables: {quoted:?}");
    let is_missing = |text: &str| !code.iter().any(|file| file.contains(text));
    let missing = quoted.iter().filter(|(_, text)| !OF_OTHERS.contains(text) && is_missing(text));
    let violations: Vec<String> =
        missing.map(|(line, text)| format!("{PAGE}:{line}: no text of src has {text:?}")).collect();
    assert_none("lines to look for exist", &violations);
    let unused = OF_OTHERS.iter().filter(|text| !quoted.iter().any(|(_, found)| found == *text));
    assert_eq!(unused.collect::<Vec<_>>(), Vec::<&&str>::new(), "texts of others that {PAGE} does not have");
}

#[test]
fn texts_are_read_from_rows_and_across_lines_of_literals() {
    let page = "`not in a table`\n| a `b … longer text` and `[!] it fails: 0/3 nodes` | `second cell` |\n";
    assert_eq!(quoted(page), [(2, "longer text"), (2, "it fails"), (2, "nodes")]);
    assert_eq!(joined("\"one \\\n    line has \\\"marks\\\"\""), "\"one line has \"marks\"\"");
}
