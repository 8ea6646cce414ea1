//! Renders a mail from its templates. Texts that users choose (the names of Instances and Tenants) are marked during
//! rendering, so that they cannot begin a header, end a part of the mail, or make a line longer than mail servers
//! accept. Texts of administrators are not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::header;
use super::placeholder::{Piece, pieces, unknown};
use super::values::{self, ADDRESS};
use crate::clients::mail::Mail;
use crate::config::Mailbox;

/// The limit for a line with a text of a user. Longer lines are broken. Servers must accept 998 bytes (RFC 5322,
/// section 2.1.1).
const LONGEST_LINE: usize = 990;

/// The templates of one mail.
#[derive(Debug)]
pub(in crate::clients::mail) struct TemplateSet {
    /// The header lines of the mail, with LF at their ends.
    pub(super) head: String,
    /// The text after the empty line that ends the headers.
    pub(super) body: String,
    /// The texts that all mails share. They take precedence over the content.
    pub(super) fragments: BTreeMap<String, String>,
    /// The texts of this mail. The placeholders of an Instance in them are replaced.
    pub(super) content: BTreeMap<String, String>,
}

/// The values for the placeholders.
pub(in crate::clients::mail) struct Letter<'a> {
    /// The mail.
    pub mail: &'a Mail,
    /// The sender.
    pub from: &'a Mailbox,
    /// The Message-ID, in angle brackets.
    pub message_id: String,
    /// The time of sending.
    pub date: Timestamp,
    /// The time zone of times in the text.
    pub zone: &'a TimeZone,
    /// The name of the time zone.
    pub zone_name: &'a str,
}

/// A part of a text.
struct Part {
    text: String,
    /// The placeholder that the part replaces; `None` for a text of an administrator.
    placeholder: Option<&'static str>,
}

/// A text, with the bytes that users chose.
#[derive(Default)]
struct Marked {
    text: String,
    foreign: Vec<Range<usize>>,
}

impl TemplateSet {
    /// Renders the mail with CRLF line ends.
    pub(in crate::clients::mail) fn render(&self, letter: &Letter) -> Vec<u8> {
        let head = self.head(letter);
        let body = self.body(letter, html_after(&self.head, false));
        let mut boundaries = boundaries(&head);
        boundaries.extend(self::boundaries(&body.text));
        let message = head + "\n\n" + &body.guarded(&boundaries);
        message.replace('\n', "\r\n").into_bytes()
    }

    fn head(&self, letter: &Letter) -> String {
        let mut head = String::new();
        for piece in pieces(&self.head, |name| self.knows(name)) {
            match piece {
                Piece::Text(text) => head.push_str(&text),
                Piece::Name(key) => {
                    let column = head.len() - head.rfind('\n').map_or(0, |at| at + 1);
                    head.push_str(&self.header_value(key, letter, column));
                }
            }
        }
        head
    }

    fn header_value(&self, key: &str, letter: &Letter, column: usize) -> String {
        if key == "from" {
            return header::sender(letter.from, column);
        }
        let is_address = key == "to";
        let parts = self.parts(key, letter).into_iter().map(|part| match part.placeholder {
            Some(name) if is_address && name != ADDRESS => header::without_specials(&part.text),
            Some(_) => header::without_encoded_words(&part.text),
            None => part.text,
        });
        let value: String = parts.collect();
        if is_address { header::mailbox(&value, column) } else { header::text(&value, column) }
    }

    fn body(&self, letter: &Letter, mut is_html: bool) -> Marked {
        let mut body = Marked::default();
        for piece in pieces(&self.body, |name| self.knows(name)) {
            match piece {
                Piece::Text(text) => {
                    is_html = html_after(&text, is_html);
                    body.text.push_str(&text);
                }
                Piece::Name(key) => {
                    let escape = is_html || key.to_ascii_lowercase().contains("html");
                    for part in self.parts(key, letter) {
                        body.push(&part, escape);
                    }
                }
            }
        }
        body
    }

    /// Returns the names in the whole mail that look like placeholders and are in none of the files.
    pub(super) fn undefined(&self) -> BTreeSet<String> {
        [&self.head, &self.body].into_iter().flat_map(|text| unknown(text, |key| self.knows(key))).collect()
    }

    fn knows(&self, key: &str) -> bool {
        BUILT_IN.contains(&key) || self.fragments.contains_key(key) || self.content.contains_key(key)
    }

    /// Returns the value of a key. Built-in values take precedence over fragments, and fragments over the content.
    fn parts(&self, key: &str, letter: &Letter) -> Vec<Part> {
        let written = |text: String| vec![Part { text, placeholder: None }];
        match (key, self.fragments.get(key), self.content.get(key)) {
            ("from", ..) => written(letter.from.to_string()),
            ("message-id", ..) => written(letter.message_id.clone()),
            // RFC 1123 with a numeric offset.
            ("date", ..) => written(letter.date.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()),
            (_, Some(fragment), _) => written(fragment.clone()),
            (_, None, Some(content)) => letter.parts(content),
            (_, None, None) => Vec::new(),
        }
    }
}

/// The built-in keys.
pub(super) const BUILT_IN: [&str; 3] = ["from", "message-id", "date"];

impl Letter<'_> {
    /// Splits a text and replaces the placeholders of the Instance.
    fn parts(&self, content: &str) -> Vec<Part> {
        let part = |piece| match piece {
            Piece::Text(text) => Some(Part { text, placeholder: None }),
            Piece::Name(name) => {
                let (name, value) = values::ALL.into_iter().find(|(known, _)| *known == name)?;
                Some(Part { text: value(self), placeholder: Some(name) })
            }
        };
        pieces(content, values::is_known).into_iter().filter_map(part).collect()
    }
}

impl Marked {
    fn push(&mut self, part: &Part, escape: bool) {
        let begin = self.text.len();
        match part.placeholder {
            Some(_) if escape => self.text.push_str(&escaped(&part.text)),
            _ => self.text.push_str(&part.text),
        }
        if part.placeholder.is_some() && self.text.len() > begin {
            self.foreign.push(begin..self.text.len());
        }
    }

    /// Whether some of these bytes come from a user.
    fn is_foreign(&self, bytes: &Range<usize>) -> bool {
        // The ranges are sorted.
        let after = self.foreign.partition_point(|range| range.end <= bytes.start);
        self.foreign.get(after).is_some_and(|range| range.start < bytes.end)
    }

    /// Returns the text with a blank before each line that is a MIME delimiter only because of a text of a user, and
    /// with breaks in lines that are too long because of a text of a user.
    fn guarded(&self, boundaries: &[String]) -> String {
        let mut guarded = String::with_capacity(self.text.len());
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            let end = at + line.len();
            let limit = if self.is_foreign(&(at..end)) { LONGEST_LINE } else { usize::MAX };
            let mut rest = line;
            loop {
                let (piece, later) = broken(rest, limit);
                let is_delimiter = |boundary: &String| {
                    let delimiter = piece.strip_prefix("--").is_some_and(|text| text.starts_with(boundary));
                    delimiter && self.is_foreign(&(at..at + 2 + boundary.len()))
                };
                if boundaries.iter().any(is_delimiter) {
                    guarded.push(' ');
                }
                guarded.push_str(piece);
                at += piece.len();
                rest = later;
                if rest.is_empty() {
                    break;
                }
                guarded.push('\n');
            }
            at = end;
        }
        guarded
    }
}

/// Splits a line after at most `limit` bytes: after a blank or an HTML entity, if the second half of the line has
/// one.
fn broken(line: &str, limit: usize) -> (&str, &str) {
    if line.trim_end_matches('\n').len() <= limit {
        return (line, "");
    }
    let limit = line.floor_char_boundary(limit);
    let (longest, _) = line.split_at(limit);
    let good = longest.rfind([' ', ';']).map_or(0, |at| at + 1);
    line.split_at(if good > limit / 2 { good } else { limit })
}

/// Escapes a text of a user for HTML, including attributes.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, c| {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
        escaped
    })
}

/// Whether the text after this one is HTML, according to its last `Content-Type` line.
fn html_after(text: &str, before: bool) -> bool {
    let mut lines = text.lines().rev().map(str::to_ascii_lowercase);
    let last = lines.find_map(|line| Some(line.strip_prefix("content-type:")?.contains("text/html")));
    last.unwrap_or(before)
}

/// Returns the MIME boundaries that a text declares.
fn boundaries(text: &str) -> Vec<String> {
    const WORD: &str = "boundary=";
    // Non-ASCII bytes keep their positions.
    let lower = text.to_ascii_lowercase();
    let declared = lower.match_indices(WORD).filter_map(|(at, _)| {
        let (_, value) = text.split_at(at + WORD.len());
        let boundary = match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => value.split([';', ' ', '\t', '\n']).next(),
        };
        boundary.filter(|boundary| !boundary.is_empty()).map(str::to_owned)
    });
    declared.collect()
}
