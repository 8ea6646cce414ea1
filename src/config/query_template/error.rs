//! What is wrong with a query.

/// Why a query is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It is something other than a metric with label matchers.
    #[error("it is not the name of a metric with label matchers in braces ({0})")]
    NotASelector(&'static str),
    /// A verb stands outside of a matcher's value.
    #[error("%{0} is not the value of a label")]
    Place(char),
    /// A verb of Go that we do not know.
    #[error("%{0} is none of %s, %q, %v and %%")]
    UnknownVerb(char),
    /// `%q` in quotes.
    #[error("%q stands in quotes; write %q without them, or \"%s\"")]
    QuotedVerb,
    /// `%s` without quotes.
    #[error("%{0} stands without quotes; write \"%{0}\" or %q")]
    BareVerb(char),
    /// A backslash and what is not known after it.
    #[error("the escape \\{0} is not supported; put the value in backquotes")]
    Escape(char),
    /// A label has two matchers with verbs.
    #[error("the label {0} has two matchers with verbs")]
    TwoMatchers(String),
    /// A negative matcher has a verb.
    #[error("the matcher of {0} has a verb and is neither = nor =~")]
    Operator(String),
    /// Two verbs of one label have nothing between them that is in no name.
    #[error("the verbs of {0} need a character such as / between them that is in no name")]
    Ambiguous(String),
    /// A verb is in a place of a regular expression where a name cannot be recognised.
    #[error("in the regular expression of {0}, a verb is in brackets, after a backslash or repeated")]
    Pattern(String),
    /// A regular expression cannot be read.
    #[error("the regular expression of {label} cannot be read: {problem}")]
    Unreadable {
        /// The label.
        label: String,
        /// What is wrong.
        problem: String,
    },
    /// A bracket that is not closed.
    #[error("{0} is not closed")]
    Unclosed(char),
    /// A closing bracket where none is open.
    #[error("{0} closes nothing")]
    Unopened(char),
    /// Quotes or label matchers that are wrong, in an expression that need not be a metric with label matchers.
    #[error("{0}")]
    Syntax(&'static str),
    /// Too few or too many verbs.
    #[error("it has {0} verbs (%s or %q)")]
    VerbCount(usize),
}
