//! What an object of a plan, a failed write or a problem concerns.

/// The object that is reconciled, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Component {
    /// The object as a whole.
    #[default]
    Whole,
    /// A part that the loop names.
    Part(&'static str),
    /// A part of such a part, which comes first.
    Within(&'static str, &'static str),
    /// An environment, by its name.
    Environment(String),
}

impl Component {
    /// The environment of this name.
    pub fn environment(name: &str) -> Self {
        Self::Environment(name.to_owned())
    }

    /// Whether this is that component, or a part of it.
    pub fn is_within(&self, other: &Self) -> bool {
        let is_part = matches!((self, other), (Self::Within(whole, _), Self::Part(part)) if whole == part);
        is_part || self == other
    }
}
