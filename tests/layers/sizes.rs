//! The maximum length of a file. Clippy bounds the length of a function.

use crate::{Source, assert_none, is_rust, sources};

/// Lines of a file.
const FILE: usize = 400;

fn long_files(sources: &[Source]) -> Vec<String> {
    let lines = |source: &Source| source.text.lines().count();
    let long = sources.iter().filter(|source| lines(source) > FILE);
    long.map(|source| format!("{}: {} lines", source.path, lines(source))).collect()
}

#[test]
fn no_file_has_more_than_400_lines() {
    assert_none("long files", &long_files(&sources(&["src", "tests", "benches", "examples"], is_rust)));
}

#[test]
fn lines_of_files_are_counted() {
    let of = |lines: usize| Source { path: "a.rs".to_owned(), text: "\n".repeat(lines) };
    assert_eq!(long_files(&[of(FILE), of(FILE + 1)]), ["a.rs: 401 lines"]);
}
