//! Regular expressions of label matchers. Prometheus reads them as RE2. What is checked here is the syntax of Rust's
//! `regex`, which is the same but for this: a brace that stands for itself needs a backslash, and so does, in a class,
//! an opening bracket or a dash after `\w`.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, Visitor};

use super::TemplateError;
use super::scan::Matcher;

/// Refuses a matcher without verbs whose regular expression cannot be read.
pub(super) fn check(matcher: &Matcher) -> Result<(), TemplateError> {
    match matcher.operator {
        "=~" | "!~" => check_text(&matcher.label, &matcher.text()),
        _ => Ok(()),
    }
}

/// Refuses a regular expression of a label that cannot be read.
pub(super) fn check_text(label: &str, pattern: &str) -> Result<(), TemplateError> {
    let parsed = Parser::new().parse(pattern).map_err(|error| error.kind().to_string());
    let checked = parsed.and_then(|ast| ast::visit(&ast, Repetitions));
    checked.map_err(|problem| TemplateError::Unreadable { label: label.to_owned(), problem })
}

/// Finds repetitions of repetitions, such as `a**`, which RE2 refuses.
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
