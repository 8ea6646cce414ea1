//! Tables as CSV (RFC 4180) for spreadsheets.

/// The mark that makes spreadsheets read the text as UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Formats rows as CSV. A cell that a spreadsheet would take for a formula begins with an apostrophe instead.
pub fn csv<R: AsRef<[String]>>(rows: impl IntoIterator<Item = R>) -> String {
    let mut text = String::from(BYTE_ORDER_MARK);
    for row in rows {
        let cells: Vec<String> = row.as_ref().iter().map(|text| cell(text)).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

/// Formats a cell. See <https://owasp.org/www-community/attacks/CSV_Injection> for the characters that begin a formula.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let apostrophe = if is_formula { "'" } else { "" };
    if text.contains(['"', ',', ';', '\r', '\n', '\t']) {
        return format!("\"{apostrophe}{}\"", text.replace('"', "\"\""));
    }
    format!("{apostrophe}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_texts() {
        for (text, expected) in [
            ("", ""),
            ("Ada Rossi", "Ada Rossi"),
            ("a,b", "\"a,b\""),
            ("a;b", "\"a;b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("+39 011", "'+39 011"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\r=1\""),
            ("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""),
            ("a=1", "a=1"),
            ("è", "è"),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }

    #[test]
    fn rows_end_with_line_breaks_and_the_text_begins_with_a_byte_order_mark() {
        let rows = [["user", "state"], ["ada", "a,b"]].map(|row| row.map(str::to_owned));
        assert_eq!(csv(rows), "\u{feff}user,state\r\nada,\"a,b\"\r\n");
    }
}
