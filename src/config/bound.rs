//! The bounds of single keys that the schema cannot express. Each is declared with its key.

use serde_json::Value;

use super::duration::ConfigDuration;

/// A bound of a key.
pub(super) enum Bound {
    /// The time has this lower bound, and this upper bound if there is one.
    Time(&'static str, Option<&'static str>),
    /// The time fulfils a condition. The texts describe a time that does not, and the expected times.
    TimeIf(fn(ConfigDuration) -> bool, &'static str, &'static str),
    /// The list has at least and at most this many entries. The text describes the expected number.
    Count(usize, usize, &'static str),
    /// Any other bound: a function that returns the problem with a value or `None`, and the expected value.
    Other(fn(&Value) -> Option<String>, &'static str),
}

/// The bound of a time that must not be zero.
pub(super) const POSITIVE: Bound =
    Bound::TimeIf(|time| !time.get().is_zero(), "is too short", "more than 0s");

/// A section of the file.
pub(super) trait Section {
    /// The bounds of its keys, each with the name of the field.
    const BOUNDS: &'static [(&'static str, Bound)];
}

impl Bound {
    /// Describes the expected value.
    pub fn expected(&self) -> String {
        match self {
            Self::Time(least, Some(most)) => format!("from {least} to {most}"),
            Self::Time(least, None) => format!("at least {least}"),
            Self::TimeIf(_, _, expected) | Self::Count(_, _, expected) | Self::Other(_, expected) => {
                (*expected).to_owned()
            }
        }
    }

    /// Returns the problem with a value; `None` if it is within the bound.
    pub fn problem(&self, value: &Value) -> Option<String> {
        let parsed = |text: &str| text.parse::<ConfigDuration>().ok();
        let time = value.as_str().and_then(parsed);
        let (is_met, words) = match self {
            Self::Time(least, Some(most)) => {
                ((parsed(least)..=parsed(most)).contains(&time), "is out of range")
            }
            Self::Time(least, None) => (time >= parsed(least), "is too short"),
            Self::TimeIf(is_met, words, _) => (is_met(time?), *words),
            Self::Count(least, most, _) => {
                let count = value.as_array()?.len();
                return (!(*least..=*most).contains(&count)).then(|| format!("it has {count} entries"));
            }
            Self::Other(problem, _) => return problem(value),
        };
        if is_met { None } else { Some(format!("{} {words}", time?)) }
    }
}
