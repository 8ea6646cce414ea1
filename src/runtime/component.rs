//! The part of an object that a planned object, a failed write or a problem belongs to.

/// The reconciled object, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Component {
    /// The object as a whole.
    #[default]
    Whole,
    /// A part that the loop defines.
    Part(&'static str),
    /// A part of such a part; the outer part comes first.
    Within(&'static str, &'static str),
    /// An environment, by its name.
    Environment(String),
}

impl Component {
    /// Returns the component of the environment with this name.
    pub fn environment(name: &str) -> Self {
        Self::Environment(name.to_owned())
    }

    /// Whether this is the component `other`, or a part of it.
    pub fn is_within(&self, other: &Self) -> bool {
        let is_part = matches!((self, other), (Self::Within(whole, _), Self::Part(part)) if whole == part);
        is_part || self == other
    }
}
