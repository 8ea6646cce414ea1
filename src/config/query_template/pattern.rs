//! Regular expressions of label matchers. Prometheus uses RE2; this module checks the syntax of Rust's `regex`. The two
//! differ in one point: a literal brace needs a backslash in `regex`, and so does an opening bracket or a dash after
//! `\w` inside a class.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, Visitor};

use super::TemplateError;
use super::scan::Matcher;

/// Rejects a matcher without verbs whose regular expression is invalid.
pub(super) fn check(matcher: &Matcher) -> Result<(), TemplateError> {
    match matcher.operator {
        "=~" | "!~" => check_text(&matcher.label, &matcher.text()),
        _ => Ok(()),
    }
}

/// Rejects an invalid regular expression of a label.
pub(super) fn check_text(label: &str, pattern: &str) -> Result<(), TemplateError> {
    let parsed = Parser::new().parse(pattern).map_err(|error| error.kind().to_string());
    let checked = parsed.and_then(|ast| ast::visit(&ast, Repetitions));
    checked.map_err(|problem| TemplateError::Unreadable { label: label.to_owned(), problem })
}

/// Finds repetitions of repetitions, such as `a**`, which RE2 rejects.
struct Repetitions;

impl Visitor for Repetitions {
    type Output = ();
    type Err = String;

    fn finish(self) -> Result<(), String> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), String> {
        match ast {
            Ast::Repetition(outer) if matches!(*outer.ast, Ast::Repetition(_)) => {
                Err("a repetition is repeated".to_owned())
            }
            _ => Ok(()),
        }
    }
}
