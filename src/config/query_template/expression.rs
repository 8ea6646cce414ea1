//! `PromQL` expressions of any form: the checks that are possible without Prometheus.

use super::scan::Scanner;
use super::{TemplateError, pattern};

/// Rejects an expression with unclosed quotes or brackets, or with invalid label matchers or regular expressions.
/// Functions, operators and the type of the result are left to Prometheus.
pub fn check_expression(text: &str) -> Result<(), TemplateError> {
    check(&mut Scanner::without_verbs(text)).map_err(|error| match error {
        TemplateError::NotASelector(problem) => TemplateError::Syntax(problem),
        other => other,
    })
}

fn check(scanner: &mut Scanner) -> Result<(), TemplateError> {
    let mut open = Vec::new();
    skip(scanner);
    while let Some(next) = scanner.next_char() {
        if matches!(next, '"' | '\'' | '`') {
            scanner.value()?;
        } else {
            scanner.take(next);
            match next {
                '{' => matchers(scanner)?,
                '(' | '[' => open.push(next),
                ')' | ']' => {
                    let last = open.pop().ok_or(TemplateError::Unopened(next))?;
                    if (last == '(') != (next == ')') {
                        return Err(TemplateError::Unclosed(last));
                    }
                }
                '}' => return Err(TemplateError::Unopened(next)),
                _ => {}
            }
        }
        skip(scanner);
    }
    open.pop().map_or(Ok(()), |last| Err(TemplateError::Unclosed(last)))
}

/// Checks the label matchers after an opening brace. A quoted text without an operator after it is the name of a
/// metric.
fn matchers(scanner: &mut Scanner) -> Result<(), TemplateError> {
    loop {
        skip(scanner);
        if scanner.take('}') {
            return Ok(());
        }
        let is_quoted = matches!(scanner.next_char(), Some('"' | '\'' | '`'));
        let label = if is_quoted {
            scanner.value()?;
            "a label in quotes".to_owned()
        } else {
            scanner.word('_')
        };
        skip(scanner);
        match scanner.next_char() {
            None => return Err(TemplateError::Unclosed('{')),
            Some(',' | '}') if is_quoted => {}
            _ if label.is_empty() => {
                return Err(scanner.unexpected("a matcher does not begin with a label name"));
            }
            _ => pattern::check(&scanner.constraint(label)?)?,
        }
        skip(scanner);
        match scanner.next_char() {
            None => return Err(TemplateError::Unclosed('{')),
            Some('}') => {}
            _ if scanner.take(',') => {}
            _ => return Err(scanner.unexpected("a matcher is not followed by , or }")),
        }
    }
}

/// Skips white space and comments.
fn skip(scanner: &mut Scanner) {
    scanner.skip_space();
    while scanner.take('#') {
        while let Some(next) = scanner.next_char().filter(|next| *next != '\n') {
            scanner.take(next);
        }
        scanner.skip_space();
    }
}
