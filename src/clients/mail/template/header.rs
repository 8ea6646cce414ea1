//! Values of headers: each on one line, with non-ASCII characters encoded as RFC 2047 requires. Other values stay
//! unchanged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::values::one_line;
use crate::config::{Mailbox, split_mailbox};

/// The limit for a line with an encoded word (RFC 2047, section 2).
const ENCODED_LINE: usize = 76;
/// The limit for a line. Longer lines are folded. Servers must accept 998 characters (RFC 5322, section 2.1.1).
const LONGEST_LINE: usize = 900;
/// The delimiters of an encoded word.
const BEGIN: &str = "=?UTF-8?B?";
const END: &str = "?=";

/// Encodes a value as text, such as the value of `Subject`. `column` is the length of the line before it.
pub(super) fn text(value: &str, column: usize) -> String {
    let value = one_line(value);
    let mut line = Line::at(column);
    let mut words = value.trim().split(' ').peekable();
    while let Some(word) = words.next() {
        if is_plain(word) {
            line.word(word);
            continue;
        }
        // Blanks between encoded words are not shown, so a blank between two such words is encoded with them.
        let mut run = word.to_owned();
        while let Some(next) = words.next_if(|next| !is_plain(next)) {
            run.push(' ');
            run.push_str(next);
        }
        line.encoded(&run);
    }
    line.text
}

/// Encodes a value as an address with or without a name, such as the value of `To`.
pub(super) fn mailbox(value: &str, column: usize) -> String {
    let value = one_line(value);
    match split_mailbox(&value) {
        Some((name, address)) if !value.is_ascii() => {
            let mut line = Line::at(column);
            line.encoded(&name);
            line.word(&format!("<{address}>"));
            line.text
        }
        // A non-ASCII address has no encoding. The server must support SMTPUTF8.
        None if !value.is_ascii() => value.trim().to_owned(),
        _ => text(&value, column),
    }
}

/// Encodes the sender.
pub(super) fn sender(from: &Mailbox, column: usize) -> String {
    let Mailbox { name, address } = from;
    if name.is_empty() {
        return address.to_string();
    }
    let is_phrase = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-./=?^_`{|}~ ".contains(c);
    if name.chars().all(is_phrase) || !name.is_ascii() {
        return mailbox(&format!("{name} <{address}>"), column);
    }
    let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
    text(&format!("\"{quoted}\" <{address}>"), column)
}

/// Replaces the characters that have a meaning in a list of addresses.
pub(super) fn without_specials(text: &str) -> String {
    text.chars().map(|c| if "<>,;:\"\\()[]@".contains(c) { ' ' } else { c }).collect()
}

/// Removes the beginnings of encoded words from a text of a user.
pub(super) fn without_encoded_words(text: &str) -> String {
    text.replace("=?", "= ?")
}

fn is_plain(word: &str) -> bool {
    word.is_ascii() && word.len() < LONGEST_LINE / 2
}

/// A header value that is written word by word.
struct Line {
    text: String,
    /// The current length of the line.
    column: usize,
    /// The limit for the line.
    limit: usize,
}

impl Line {
    fn at(column: usize) -> Self {
        Self { text: String::new(), column, limit: LONGEST_LINE }
    }

    /// Appends a word, on a new line if the current line would become too long.
    fn word(&mut self, word: &str) {
        if !self.text.is_empty() {
            let is_full = self.column + 1 + word.len() > self.limit;
            self.text.push_str(if is_full { "\n " } else { " " });
            (self.column, self.limit) =
                if is_full { (1, LONGEST_LINE) } else { (self.column + 1, self.limit) };
        }
        self.text.push_str(word);
        self.column += word.len();
    }

    /// Appends a text as encoded words.
    fn encoded(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let frame = BEGIN.len() + END.len();
            let room = |column: usize| ENCODED_LINE.saturating_sub(column + 1 + frame) / 4 * 3;
            let (here, below) = (room(self.column), room(1));
            // A whole word on the next line is better than two parts. A part has at least three characters of four
            // bytes.
            let is_better_below = here < 12 || (here < rest.len() && rest.len() <= below);
            let room = if is_better_below { below } else { here };
            let (now, later) = rest.split_at(rest.floor_char_boundary(room));
            self.limit = ENCODED_LINE;
            self.word(&format!("{BEGIN}{}{END}", STANDARD.encode(now)));
            self.limit = ENCODED_LINE;
            rest = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_are_not_changed() {
        for value in ["", "a", "[CrownLabs] Your  machine $x will be \"stopped\"", "=?UTF-8?B?w6Q=?="] {
            assert_eq!(text(value, 9), value);
            assert_eq!(mailbox(value, 4), value);
        }
        assert_eq!(mailbox("Ada L. <ada@example.com>", 4), "Ada L. <ada@example.com>");
    }

    #[test]
    fn non_ascii_characters_are_encoded() {
        // Checked against Python's email.header.decode_header.
        assert_eq!(text("a ä b", 9), "a =?UTF-8?B?w6Q=?= b");
        assert_eq!(text("ä ö b", 9), "=?UTF-8?B?w6Qgw7Y=?= b");
        assert_eq!(mailbox("Zoë <z@example.com>", 4), "=?UTF-8?B?Wm/Dqw==?= <z@example.com>");
        assert_eq!(mailbox("\"Zoë \\\"Z\\\"\" <z@a.b>", 4), "=?UTF-8?B?Wm/DqyAiWiI=?= <z@a.b>");
        assert_eq!(mailbox("zoë@example.com", 4), "zoë@example.com");
    }

    #[test]
    fn line_ends_are_only_added_by_folding() {
        assert_eq!(text("a\r\nBcc: x@y.z\n\n<html>", 9), "a  Bcc: x@y.z  <html>");
        assert_eq!(mailbox("a@b.c\r\nBcc: x@y.z", 4), "a@b.c  Bcc: x@y.z");
        let emoji = text(&"🎓".repeat(300), 9);
        let mut lines = emoji.split('\n');
        assert!(lines.next().is_some_and(|first| first.len() + 9 <= 76), "{emoji}");
        assert!(lines.all(|line| line.starts_with(" =?UTF-8?B?") && line.len() <= 76), "{emoji}");
        let long = text(&"x".repeat(2_000), 9);
        assert!(long.lines().all(|line| line.len() <= 76), "{long}");
        let words = text(&"word ".repeat(500), 9);
        assert!(words.lines().all(|line| line.len() <= 900) && words.contains('\n'), "{words}");
        assert_eq!(words.replace('\n', ""), "word ".repeat(500).trim());
    }

    #[test]
    fn names_of_senders() {
        let from = |text: &str| sender(&text.parse().unwrap(), 6);
        assert_eq!(from("noreply@example.com"), "noreply@example.com");
        assert_eq!(from("CrownLabs <noreply@example.com>"), "CrownLabs <noreply@example.com>");
        assert_eq!(from("Labs, Torino <n@a.b>"), "\"Labs, Torino\" <n@a.b>");
        assert_eq!(from("\"Labs \\\"T\\\"\" <n@a.b>"), "\"Labs \\\"T\\\"\" <n@a.b>");
        assert_eq!(from("Città <n@a.b>"), "=?UTF-8?B?Q2l0dMOg?= <n@a.b>");
    }
}
