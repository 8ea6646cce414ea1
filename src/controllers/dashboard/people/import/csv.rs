//! Tables as text: lines of fields (RFC 4180). Spreadsheets separate the fields by commas, semicolons or tabs. A field with
//! a line break is an error, because no column of a list of people has one.

/// The separators that spreadsheets use.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// A line that is not empty: its number, and its fields; `None` if a quotation mark is wrong.
pub type Line = (usize, Option<Vec<String>>);

/// Returns the lines of a text that are not empty. The first one decides the separator.
pub fn lines(text: &str) -> impl Iterator<Item = Line> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let first = lines.clone().next().map_or("", |(_, line)| line);
    let separator = separator(first);
    lines.map(move |(number, line)| (number, fields(line, separator)))
}

/// Returns the separator that a line has most often.
fn separator(line: &str) -> char {
    let count = |separator: &char| line.matches(*separator).count();
    // The first of several with the same count.
    SEPARATORS.into_iter().rev().max_by_key(count).unwrap_or(',')
}

fn fields(line: &str, separator: char) -> Option<Vec<String>> {
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let (field, after) = field(text, separator)?;
        fields.push(field);
        rest = after;
    }
    Some(fields)
}

/// Returns the first field of a line, and the text behind its separator, if there is one.
fn field(text: &str, separator: char) -> Option<(String, Option<&str>)> {
    let Some(mut quoted) = text.strip_prefix('"') else {
        let (field, after) =
            text.split_once(separator).map_or((text, None), |(field, after)| (field, Some(after)));
        return (!field.contains('"')).then(|| (field.to_owned(), after));
    };
    let mut field = String::new();
    loop {
        let (before, after) = quoted.split_once('"')?;
        field.push_str(before);
        if let Some(after) = after.strip_prefix('"') {
            // Two quotation marks stand for one.
            field.push('"');
            quoted = after;
        } else if after.is_empty() {
            return Some((field, None));
        } else {
            return after.strip_prefix(separator).map(|after| (field, Some(after)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_separated_as_the_first_line_is() {
        for (text, expected) in [
            ("a,b\r\n1,\"2, 3\"\r\n", vec![(1, vec!["a", "b"]), (2, vec!["1", "2, 3"])]),
            ("\u{feff}a;b\n1;2,5\n", vec![(1, vec!["a", "b"]), (2, vec!["1", "2,5"])]),
            ("\n\na\tb\n\n \n1\t", vec![(3, vec!["a", "b"]), (6, vec!["1", ""])]),
            ("a\n\"say \"\"hi\"\"\"", vec![(1, vec!["a"]), (2, vec!["say \"hi\""])]),
            ("", vec![]),
        ] {
            let found: Vec<Line> = lines(text).collect();
            let owned = |fields: Vec<&str>| fields.into_iter().map(str::to_owned).collect();
            let expected: Vec<Line> =
                expected.into_iter().map(|(number, fields)| (number, Some(owned(fields)))).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn a_wrong_quotation_mark_makes_one_line_invalid() {
        for line in ["\"b", "\"b,c", "b\"c", "\"b\"c,d", "\"", "\"\"\"", "x,\"b"] {
            let found: Vec<Line> = lines(&format!("a,b\n{line}\n1,2\n")).collect();
            let numbers: Vec<(usize, bool)> =
                found.iter().map(|(number, fields)| (*number, fields.is_some())).collect();
            assert_eq!(numbers, [(1, true), (2, false), (3, true)], "{line}");
        }
    }

    proptest! {
        #[test]
        fn quoted_fields_are_read_as_they_were(
            rows in prop::collection::vec(prop::collection::vec("[a-z,;\"\t é]{0,6}", 2), 1..5),
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",");
            let text = rows.iter().map(line).collect::<Vec<_>>().join("\r\n");
            let head = "a,b\r\n".to_owned();
            let read: Vec<Vec<String>> = lines(&(head + &text)).skip(1).filter_map(|(_, fields)| fields).collect();
            prop_assert_eq!(read, rows);
        }
    }
}
