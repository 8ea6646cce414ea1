//! Formatting of texts from users and other programs: on one line, without control characters, and not longer than
//! necessary. Every such text passes through this module before it becomes part of a message, a mail, a log line or a
//! response.

use std::borrow::Cow;
use std::fmt::Write;

/// The limit for a value in a message, such as a name or an address, in characters.
pub const MOST: usize = 200;

/// Whether a character is a control character: one that a terminal interprets (C0, DEL and C1), that separates lines
/// (these, and U+2028 and U+2029), that changes the order of the characters beside it (the formatting characters of
/// Unicode Standard Annex 9), or the byte order mark, which is invisible.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns the text with control characters, including line breaks, escaped as in Rust: `\u{1b}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, &[], rust_escape)
}

/// The same for a text of several lines: line breaks stay.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    replaced(text, &['\n'], rust_escape)
}

fn rust_escape(to: &mut String, character: char) -> std::fmt::Result {
    write!(to, "{}", character.escape_default())
}

/// Returns equivalent JSON with control characters escaped: `\u001b`. In JSON they occur only in strings. Line breaks
/// between members stay.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    replaced(json, &['\n'], |to, character| write!(to, "\\u{:04x}", u32::from(character)))
}

fn replaced<'t>(
    text: &'t str,
    kept: &[char],
    escape: impl Fn(&mut String, char) -> std::fmt::Result,
) -> Cow<'t, str> {
    let is_replaced = |character: char| is_control(character) && !kept.contains(&character);
    if !text.contains(is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut to = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        // Writing to a string cannot fail.
        let _ = if is_replaced(character) { escape(&mut to, character) } else { to.write_char(character) };
    }
    Cow::Owned(to)
}

/// Returns the text if it has at most `most` characters, and otherwise its beginning and an ellipsis, `most`
/// characters together.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let end = text.char_indices().nth(most.saturating_sub(1)).map_or(0, |(end, _)| end);
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Formats a value for a message: at most [`MOST`] characters, without control characters.
pub fn shown(text: &str) -> Cow<'_, str> {
    match cut(text, MOST) {
        Cow::Borrowed(text) => escaped(text),
        Cow::Owned(text) => Cow::Owned(escaped(&text).into_owned()),
    }
}

/// Formats the answer of another server: one line of at most 300 characters.
pub fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

/// The limit for a whole message in characters.
const MOST_OF_MESSAGE: usize = 1_000;

/// Formats a message without control characters. If it is longer than [`MOST_OF_MESSAGE`], because it quotes a text
/// of a user or another program, the middle is left out. The beginning, with the problem, and the end, with the
/// remedy, are kept.
pub fn message(text: &str) -> String {
    let text = escaped(text);
    let length = text.chars().count();
    if length <= MOST_OF_MESSAGE {
        return text.into_owned();
    }
    let at = |character: usize| text.char_indices().nth(character).map_or(text.len(), |(at, _)| at);
    let (begin, end) = (at(MOST_OF_MESSAGE * 2 / 3), at(length - MOST_OF_MESSAGE / 3));
    format!("{}…{}", &text[..begin], &text[end..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        for (text, shown) in [
            ("Ada's \u{e9}ditor \u{1f469}\u{200d}\u{1f52c}", "Ada's \u{e9}ditor \u{1f469}\u{200d}\u{1f52c}"),
            ("a\nb\r\tc\0", "a\\nb\\r\\tc\\u{0}"),
            ("\u{1b}]0;x\u{7}\u{7f}\u{9b}2J\u{85}", "\\u{1b}]0;x\\u{7}\\u{7f}\\u{9b}2J\\u{85}"),
            ("\u{202e}\u{2066}\u{2028}\u{200f}\u{feff}", "\\u{202e}\\u{2066}\\u{2028}\\u{200f}\\u{feff}"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, most, expected) in [
            ("", 0, ""),
            ("ab", 2, "ab"),
            ("abc", 2, "a…"),
            ("äöü", 2, "ä…"),
            ("äöü", 3, "äöü"),
            ("abc", 1, "…"),
        ] {
            assert_eq!(cut(text, most), expected, "{text} {most}");
        }
        let long = shown(&"\u{1b}".repeat(1_000_000)).into_owned();
        assert_eq!(long, format!("{}…", "\\u{1b}".repeat(MOST - 1)));
    }

    #[test]
    fn a_message_keeps_its_beginning_and_its_end() {
        let long = message(&format!("image \"{}\" is no image: write one", "é\n".repeat(1_000_000)));
        assert!(long.starts_with("image \"é\\né") && long.ends_with("\" is no image: write one"), "{long}");
        assert!(long.chars().count() <= MOST_OF_MESSAGE && message(&long) == long, "{long}");
        assert_eq!(message("short"), "short");
    }

    proptest! {
        #[test]
        fn json_says_the_same(text in "(?s).{0,20}", control in "[\u{7f}-\u{9f}\u{2020}-\u{2070}\u{0}-\u{20}\u{feff}]{0,4}") {
            let value = serde_json::json!({&text: [format!("{control}{text}")]});
            for json in [value.to_string(), format!("{value:#}")] {
                let escaped = escaped_json(&json);
                prop_assert!(!escaped.contains(|c| is_control(c) && c != '\n'), "{:?}", escaped);
                prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).ok(), Some(value.clone()));
            }
        }
    }
}
