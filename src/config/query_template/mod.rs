//! The data queries of Prometheus: an administrator writes a query for one Instance, and this module derives a query
//! for all Instances.
//!
//! `requests{namespace=%q, service=~"%s.*"}` becomes the query for the Service `x` of the namespace `n` when `"n"` and
//! `x` replace the verbs. One request per Instance would be too many for thousands of Instances. The matchers with
//! verbs are therefore opened: `requests{namespace!="",service=~"(?:…).*"}` returns the series of all Instances, and
//! the labels of each series identify its Instance. If a verb is the whole value of its label, the label's value is
//! used directly. Otherwise Prometheus extracts the value with a regular expression (`label_replace`).

use std::fmt::Write as _;

mod error;
mod expression;
mod pattern;
mod scan;
#[cfg(test)]
mod tests;

pub use error::TemplateError;
pub(super) use expression::check_expression;
use scan::{Matcher, Piece};

/// The characters that replace a verb: names of Kubernetes objects, IPv4 and IPv6 addresses.
const NAME: &str = "[a-z0-9.:-]+";
/// Two verbs of one label must be separated by one of these. None of them occurs in a name or an address, so the end of
/// the first value is unambiguous.
const SEPARATORS: &[char] = &['/', '_', '@', ',', ';', '='];

/// The subject of a data query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A Service: two verbs, for its namespace and its name.
    Service,
    /// A machine: one verb for its IP address, or two for the namespace and the name of the Instance.
    Address,
}

/// A parsed data query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryTemplate {
    /// The selector of the series of all Instances.
    pub selector: String,
    /// The labels that identify the Instance of a series.
    pub labels: Vec<String>,
    verbs: Vec<Verb>,
}

/// The location of a verb's value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Verb {
    /// The label of the series.
    label: String,
    /// The regular expression that extracts the value from the label's value; `None` if the label's value is used as a
    /// whole.
    pattern: Option<String>,
}

/// A value that must be extracted from a label with `label_replace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extraction<'a> {
    /// The label that contains the value.
    pub label: &'a str,
    /// The regular expression, with a group named [`Extraction::group`].
    pub pattern: &'a str,
    /// The name of the group, and of the label for the result.
    pub group: String,
}

/// The name of the group with the value of a verb. Verbs are numbered from 0.
fn group(verb: usize) -> String {
    format!("crownlabs_{verb}")
}

impl QueryTemplate {
    /// Parses a query.
    ///
    /// # Errors
    /// When the query is not a metric with label matchers, a regular expression is invalid, or the verbs do not match
    /// the subject. No query for all Instances can be derived then.
    pub fn parse(text: &str, subject: Subject) -> Result<Self, TemplateError> {
        let (metric, matchers) = scan::scan(text)?;
        let mut selector = format!("{metric}{{");
        let (mut labels, mut verbs) = (Vec::new(), Vec::new());
        for (index, matcher) in matchers.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let (operator, value) = if matcher.has_verb() {
                if labels.contains(&matcher.label) {
                    return Err(TemplateError::TwoMatchers(matcher.label.clone()));
                }
                labels.push(matcher.label.clone());
                opened(matcher, &mut verbs)?
            } else {
                pattern::check(matcher)?;
                (matcher.operator, matcher.text())
            };
            // Writing to a String cannot fail.
            let _ = write!(selector, "{separator}{}{operator}{}", matcher.label, quoted(&value));
        }
        selector.push('}');
        let is_right = match subject {
            Subject::Service => verbs.len() == 2,
            Subject::Address => matches!(verbs.len(), 1 | 2),
        };
        if is_right {
            Ok(Self { selector, labels, verbs })
        } else {
            Err(TemplateError::VerbCount(verbs.len()))
        }
    }

    /// The values that must be extracted from labels.
    pub fn extractions(&self) -> impl Iterator<Item = Extraction<'_>> {
        self.verbs.iter().enumerate().filter_map(|(verb, found)| {
            let pattern = found.pattern.as_deref()?;
            Some(Extraction { label: &found.label, pattern, group: group(verb) })
        })
    }

    /// The label with the value of each verb after the extractions, in the order of the verbs.
    pub fn value_labels(&self) -> Vec<String> {
        let label = |(verb, found): (usize, &Verb)| match found.pattern {
            Some(_) => group(verb),
            None => found.label.clone(),
        };
        self.verbs.iter().enumerate().map(label).collect()
    }
}

/// Returns the operator and the value with which a matcher with verbs selects all Instances, and appends its verbs to
/// `verbs`.
fn opened(matcher: &Matcher, verbs: &mut Vec<Verb>) -> Result<(&'static str, String), TemplateError> {
    let is_pattern = match matcher.operator {
        "=" => false,
        "=~" => true,
        _ => return Err(TemplateError::Operator(matcher.label.clone())),
    };
    if matcher.pieces == [Piece::Verb] {
        verbs.push(Verb { label: matcher.label.clone(), pattern: None });
        return Ok(("!=", String::new()));
    }
    check_pieces(matcher, is_pattern)?;
    let first = verbs.len();
    let count = matcher.pieces.iter().filter(|piece| **piece == Piece::Verb).count();
    let pattern = |extracted: Option<usize>| {
        let mut next = first;
        let mut pattern = String::new();
        for piece in &matcher.pieces {
            match piece {
                Piece::Text(text) if is_pattern => pattern.push_str(text),
                Piece::Text(text) => pattern.push_str(&escaped(text)),
                Piece::Verb => {
                    let name = (extracted == Some(next)).then(|| format!("P<{}>", group(next)));
                    let _ = write!(pattern, "(?{}{NAME})", name.as_deref().unwrap_or(":"));
                    next += 1;
                }
            }
        }
        pattern
    };
    let found = (first..first + count)
        .map(|verb| Verb { label: matcher.label.clone(), pattern: Some(pattern(Some(verb))) });
    verbs.extend(found);
    let pattern = pattern(None);
    pattern::check_text(&matcher.label, &pattern)?;
    Ok(("=~", pattern))
}

/// Rejects a matcher whose verbs cannot be extracted from the label's value.
fn check_pieces(matcher: &Matcher, is_pattern: bool) -> Result<(), TemplateError> {
    let mut between: Option<&str> = None;
    let mut is_in_class = false;
    for (index, piece) in matcher.pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                is_in_class = is_pattern && ends_in_class(text, is_in_class);
                between = between.map(|_| text.as_str());
            }
            Piece::Verb => {
                if between.is_some_and(|text| !text.contains(SEPARATORS)) {
                    return Err(TemplateError::Ambiguous(matcher.label.clone()));
                }
                between = Some("");
                let next = matcher.pieces.get(index + 1);
                let is_repeated =
                    matches!(next, Some(Piece::Text(text)) if text.starts_with(['*', '+', '?', '{']));
                if is_pattern && (is_in_class || is_repeated) {
                    return Err(TemplateError::Pattern(matcher.label.clone()));
                }
            }
        }
    }
    Ok(())
}

/// Whether a piece of a regular expression ends inside a class such as `[^/]`, or after a backslash, which would change
/// the meaning of the next character.
fn ends_in_class(text: &str, mut is_in_class: bool) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            _ => {}
        }
    }
    is_in_class
}

/// Returns a regular expression that matches only this text.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Formats a text as a string literal of `PromQL`, in double quotes.
pub fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}
