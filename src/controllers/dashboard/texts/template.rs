//! The forms of texts: with placeholders, with a number, one for each value of an enumeration.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A text with placeholders such as `{name}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Template(String);

impl Template {
    /// Returns the text with a value for each placeholder, which is given by its name.
    pub fn fill(&self, values: &[(&str, &str)]) -> String {
        let mut filled = String::with_capacity(self.0.len());
        let mut rest = self.0.as_str();
        while let Some((before, name, after)) = placeholder(rest) {
            let value = values.iter().find(|(known, _)| *known == name);
            debug_assert!(value.is_some(), "{:?} lacks a value for {name}", self.0);
            filled.push_str(before);
            filled.push_str(value.map_or(name, |(_, value)| value));
            rest = after;
        }
        filled + rest
    }
}

impl Template {
    /// Returns the texts before and after the only placeholder, whose value is an element.
    pub fn around(&self) -> (&str, &str) {
        placeholder(&self.0).map_or((&*self.0, ""), |(before, _, after)| (before, after))
    }
}

/// The text before the first placeholder, its name, and the text behind it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// The names of the placeholders of a text.
#[cfg(test)]
pub fn placeholders(text: &str) -> std::collections::BTreeSet<&str> {
    std::iter::successors(placeholder(text), |(_, _, after)| placeholder(after))
        .map(|(_, name, _)| name)
        .collect()
}

/// A text with the number `{count}`, in the singular and the plural.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plural {
    one: Template,
    other: Template,
}

impl Plural {
    /// Returns the text for a number as it is shown.
    pub fn of(&self, count: &str) -> String {
        let template = if count == "1" { &self.one } else { &self.other };
        template.fill(&[("count", count)])
    }
}

/// A key of a [`Table`].
pub trait Key: Copy + Debug + Ord + 'static {
    /// All values.
    const ALL: &'static [Self];
}

/// Declares an enumeration whose values are the keys of a [`Table`]: their names in the file are in snake case.
macro_rules! table_key {
    ($(#[$of_enum:meta])+ pub enum $name:ident { $($(#[$of_value:meta])+ $value:ident,)+ }) => {
        $(#[$of_enum])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$of_value])+ $value,)+
        }

        impl $crate::controllers::dashboard::texts::template::Key for $name {
            const ALL: &'static [Self] = &[$(Self::$value),+];
        }
    };
}
pub(crate) use table_key;

/// A text for each value of an enumeration.
#[derive(Debug, Clone)]
pub struct Table<K, T = String>(BTreeMap<K, T>);

impl<K: Key, T> Table<K, T> {
    /// Returns the text for a value.
    pub fn of(&self, key: K) -> &T {
        // The table has all of them, see `deserialize`.
        &self.0[&key]
    }
}

impl<'de, K: Key + Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for Table<K, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = BTreeMap::<K, T>::deserialize(deserializer)?;
        match K::ALL.iter().find(|key| !texts.contains_key(key)) {
            Some(missing) => Err(D::Error::custom(format!("a text for {missing:?} is missing"))),
            None => Ok(Self(texts)),
        }
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template(text.to_owned())
    }

    #[test]
    fn a_value_is_not_searched_for_placeholders() {
        let filled = template("{a} and {b}{").fill(&[("b", "{a}"), ("a", "{b}")]);
        assert_eq!(filled, "{b} and {a}{");
        assert_eq!(placeholders("{a} and {b}{c").into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn one_is_singular() {
        let plural = Plural { one: template("{count} day"), other: template("{count} days") };
        assert_eq!(["0", "1", "2.5"].map(|count| plural.of(count)), ["0 days", "1 day", "2.5 days"]);
    }
}
