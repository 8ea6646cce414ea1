//! The errors of a query.

/// The reason why a query is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The query is not a metric with label matchers.
    #[error("it is not a metric name with label matchers in braces ({0})")]
    NotASelector(&'static str),
    /// A verb is outside of a matcher's value.
    #[error("%{0} is not a label value")]
    Place(char),
    /// An unsupported verb of Go.
    #[error("%{0} is not supported; use %s, %q, %v or %%")]
    UnknownVerb(char),
    /// `%q` inside quotes.
    #[error("%q is in quotes; write %q without quotes, or \"%s\"")]
    QuotedVerb,
    /// `%s` without quotes.
    #[error("%{0} is not in quotes; write \"%{0}\" or %q")]
    BareVerb(char),
    /// A backslash followed by an unsupported character.
    #[error("the escape \\{0} is not supported; put the value in backquotes")]
    Escape(char),
    /// A label has two matchers with verbs.
    #[error("the label {0} has two matchers with verbs")]
    TwoMatchers(String),
    /// A negative matcher has a verb.
    #[error("the matcher of {0} has a verb, but its operator is neither = nor =~")]
    Operator(String),
    /// Two verbs of one label are not separated by a character that cannot occur in a name.
    #[error("the verbs of {0} must be separated by a character that no name contains, such as /")]
    Ambiguous(String),
    /// A verb is at a position in a regular expression where a name cannot be recognised.
    #[error("in the regular expression of {0}, a verb is in brackets, after a backslash or repeated")]
    Pattern(String),
    /// A regular expression is invalid.
    #[error("the regular expression of {label} is invalid: {problem}")]
    Unreadable {
        /// The label.
        label: String,
        /// The problem.
        problem: String,
    },
    /// A bracket that is not closed.
    #[error("{0} is not closed")]
    Unclosed(char),
    /// A closing bracket without an opening one.
    #[error("{0} closes nothing")]
    Unopened(char),
    /// Invalid quotes or label matchers in an expression that need not be a metric with label matchers.
    #[error("{0}")]
    Syntax(&'static str),
    /// Too few or too many verbs.
    #[error("it has {0} verbs (%s or %q)")]
    VerbCount(usize),
}
