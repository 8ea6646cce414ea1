//! Comments and documents refer only to content of the repository, and not to numbered sections, rows and
//! decisions of texts that a reader cannot open.

use std::path::Path;

use crate::{assert_none, sources};

/// The files that are read.
const EXTENSIONS: [&str; 7] = ["rs", "md", "yaml", "yml", "toml", "sh", "mod"];
const NAMES: [&str; 2] = ["Makefile", "Dockerfile"];

const SECTION_SIGN: char = '\u{a7}';

/// The reference in a line to content outside the repository. `before` is the previous line, in which the sentence
/// may have begun.
fn reference(before: &str, line: &str) -> Option<String> {
    let both = format!("{before} {line}");
    if line.contains(SECTION_SIGN) && !both.contains("RFC") {
        return Some(format!("a section ({SECTION_SIGN}) of something that is no RFC"));
    }
    let decision = line.to_lowercase().find("decision").map(|at| &line[at + "decision".len()..]);
    let number = decision.map(|rest| rest.trim_start_matches('s')).and_then(|rest| rest.strip_prefix(' '));
    if number.is_some_and(starts_with_digit) && !both.contains("docs/decisions") {
        return Some("a decision by number, without a link to docs/decisions".to_owned());
    }
    let words = line.char_indices().filter(|(at, _)| begins_word(line, *at));
    words.map(|(at, _)| &line[at..]).find_map(numbered)
}

/// Whether a word begins here: not within a date, a version, a path or a longer word.
fn begins_word(line: &str, at: usize) -> bool {
    let before = line[..at].chars().next_back();
    before.is_none_or(|before| !before.is_alphanumeric() && !"-_.:/".contains(before))
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// The number of a rule or a row at the beginning of a text.
fn numbered(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let word = || text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    // The letter B, two letters and a number, with hyphens between them.
    if let [b'B', b'-', first, second, b'-', digit, ..] = bytes
        && first.is_ascii_uppercase()
        && second.is_ascii_uppercase()
        && digit.is_ascii_digit()
    {
        return Some(format!("the rule {}", word()));
    }
    let [b'0', digit, rest @ ..] = bytes else { return None };
    if !digit.is_ascii_digit() {
        return None;
    }
    // A chapter, then a row of its table, with or without the letter D.
    let is_row = match rest {
        [b' ', b'D', digit, ..] => digit.is_ascii_digit(),
        [b' ', rest @ ..] => rest.starts_with(b"row "),
        [b'-', rest @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let end = rest.get(digits).copied().unwrap_or(b' ');
            digits > 0 && !end.is_ascii_alphanumeric() && end != b'-'
        }
        _ => false,
    };
    is_row.then(|| format!("the row {}", word()))
}

#[test]
fn comments_and_documents_refer_only_to_the_repository() {
    let is_text = |path: &str| {
        let path = Path::new(path);
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        EXTENSIONS.contains(&extension.as_str()) || NAMES.contains(&name.as_str())
    };
    let mut violations = Vec::new();
    for source in sources(&["."], is_text) {
        let mut before = "";
        for (number, line) in source.text.lines().enumerate() {
            if let Some(what) = reference(before, line) {
                violations.push(format!("{}:{}: {what}: {}", source.path, number + 1, line.trim()));
            }
            before = line;
        }
    }
    assert_none("references to what is not in the repository", &violations);
}

#[test]
fn references_to_absent_texts_are_found() {
    // Put together here, because the test above reads this file, too.
    for line in [
        format!("/// The objects (03 {SECTION_SIGN}1.8)."),
        format!("/// {SECTION_SIGN}17, \"Personal workspace\")."),
        concat!("// 02 ", "D9: retried.").to_owned(),
        concat!("// 05 ", "row 25: who has promised it.").to_owned(),
        concat!("// As 00", "-23: no login.").to_owned(),
        concat!("a store (00", "-7)").to_owned(),
        concat!("/// One event each (B-", "SN-2).").to_owned(),
        concat!("by decision", " 18").to_owned(),
        concat!("Decisions", " 2, 26").to_owned(),
    ] {
        assert!(reference("", &line).is_some(), "{line}");
    }
}

#[test]
fn other_numbers_are_not_references() {
    for line in [
        "created: 2026-01-05T00:00:01Z",
        "/// RFC 3986, \u{a7}2.3",
        "cluster.apply_files(&[\"00-namespace.yaml\", \"10-rbac.yaml\"])",
        "ports 05-17x, 0.5-2, v1.02-3, A-B-C-1",
        "a decision that 2 people make",
        "see docs/decisions/0003",
        "let mask = 0o4000; 07 DAYS; 10 D4",
    ] {
        assert_eq!(reference("", line), None, "{line}");
    }
    assert_eq!(reference("/// See RFC 6749,", "/// \u{a7}2.3.1."), None, "the sentence began a line before");
}
