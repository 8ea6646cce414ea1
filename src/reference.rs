//! Pages of the reference (`docs/reference`): generated from the code and compared with the stored files.

use std::path::Path;

/// The line below the heading of every page.
pub const HEADER: &str = "<!-- Generated from the code by `make generate`; do not edit. -->";

/// Compares a page with its file.
///
/// # Panics
/// If they differ.
pub fn check(file: &str, page: &str) {
    check_file(&Path::new("docs/reference").join(file), page);
}

/// Compares a text with its file. With `UPDATE_MANIFESTS=1`, it writes the file instead.
///
/// # Panics
/// If they differ; the message contains the first difference.
pub fn check_file(file: &Path, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_MANIFESTS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&path, page).expect("the page can be written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let mut lines = stored.lines().zip(page.lines()).enumerate();
    let difference = lines.find(|(_, (stored, page))| stored != page);
    assert!(
        stored == page,
        "{} is not up to date: run `make generate`; first difference (line, stored, now): {difference:?}",
        path.display()
    );
}

/// A table in Markdown, with an empty line after it.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head.iter().map(|name| (*name).to_owned()).collect());
    text.push_str(&line(vec!["---".to_owned(); head.len()]).replace(' ', ""));
    for row in rows {
        assert_eq!(row.len(), head.len(), "{row:?}");
        text.push_str(&line(row.iter().map(|cell| escaped(cell)).collect()));
    }
    text + "\n"
}

/// Escapes a text for the cell of a table or for a paragraph: on one line, without characters that would be tags or
/// borders.
pub fn escaped(text: &str) -> String {
    let mut is_code = false;
    let mut escaped = String::new();
    for character in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        match character {
            '`' => {
                is_code = !is_code;
                escaped.push('`');
            }
            '|' => escaped.push_str("\\|"),
            '<' if !is_code => escaped.push_str("&lt;"),
            '*' if !is_code => escaped.push_str("\\*"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Formats a text as code; returns an empty text for an empty one.
pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

#[test]
fn cells_are_one_line_and_their_text_is_no_markup() {
    let text = escaped(" a | b\n  <c> `<d>|*` * ");
    assert_eq!(text, "a \\| b &lt;c> `<d>\\|*` \\*");
    let made = table(&["x", "y"], [vec!["1".to_owned(), code("a|b")], vec![code(""), "2".to_owned()]]);
    assert_eq!(made, "| x | y |\n|---|---|\n| 1 | `a\\|b` |\n|  | 2 |\n\n");
}
