//! Parses JSON of untrusted size: the number of values in the resulting tree is limited.
//!
//! A short text such as `[0,0,…]` takes fifty times its length as a tree. Typical objects have a few hundred values;
//! the largest, Tenants in very many Workspaces, have a few thousand.

use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::api::wire::first;

/// The maximum number of values of an object: each text, number, list and map counts as one.
pub const MOST_VALUES: usize = 20_000;

/// An object as JSON, without `status` and `metadata.managedFields`, because no rule reads them.
#[derive(Debug, Clone, PartialEq, Default, derive_more::Deref)]
pub struct BoundedObject {
    #[deref]
    value: Value,
    /// Whether it has more than [`MOST_VALUES`] values. It is then read as null.
    pub is_too_large: bool,
}

#[cfg(test)]
impl std::ops::DerefMut for BoundedObject {
    fn deref_mut(&mut self) -> &mut Value {
        &mut self.value
    }
}

impl From<Value> for BoundedObject {
    fn from(value: Value) -> Self {
        Self { value, is_too_large: false }
    }
}

impl<'de> Deserialize<'de> for BoundedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let left = Cell::new(MOST_VALUES + 1);
        let value = Tree { left: &left, place: Position::Object }.deserialize(deserializer)?;
        Ok(if left.get() == 0 { Self { value: Value::Null, is_too_large: true } } else { value.into() })
    }
}

/// The maximum number of texts that are read from a list; further texts are skipped.
const MOST_TEXTS: usize = 5_000;

/// Reads a list of texts, or null.
pub fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    first(deserializer, MOST_TEXTS, |_| false)
}

/// The position of a map, which determines the members that are skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Object,
    Metadata,
    Elsewhere,
}

impl Position {
    /// Returns the position of a member; `None` if it is skipped.
    fn of_member(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Object, "status") | (Self::Metadata, "managedFields") => None,
            (Self::Object, "metadata") => Some(Self::Metadata),
            _ => Some(Self::Elsewhere),
        }
    }
}

/// Reads a value until `left` values have been read. The rest is skipped, and the result is incomplete.
#[derive(Clone, Copy)]
struct Tree<'b> {
    left: &'b Cell<usize>,
    place: Position,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0 {
            return IgnoredAny::deserialize(deserializer).map(|_| Value::Null);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self { place: Position::Elsewhere, ..self })? {
            if self.left.get() > 0 {
                list.push(item);
            }
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match self.place.of_member(&name) {
                None => drop(members.next_value::<IgnoredAny>()?),
                Some(place) => {
                    let value = members.next_value_seed(Self { place, ..self })?;
                    if self.left.get() > 0 {
                        map.insert(name, value);
                    }
                }
            }
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> BoundedObject {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn an_object_is_read_unchanged_but_for_the_members_that_no_rule_reads() {
        let text = r#"{"kind": "Tenant", "metadata": {"name": "ada", "managedFields": [{}], "labels": {"status": "x"}},
            "spec": {"a": [1, -1, 0.5, true, null, "text"], "status": {}, "metadata": {"managedFields": 1}},
            "status": {"phase": "Ready"}}"#;
        let mut expected: Value = serde_json::from_str(text).expect("JSON");
        expected["metadata"].as_object_mut().expect("a map").remove("managedFields");
        expected.as_object_mut().expect("a map").remove("status");
        assert_eq!(*read(text), expected);
        assert!(!read(text).is_too_large);
        assert_eq!(read("null"), BoundedObject::default());
    }

    #[test]
    fn an_object_above_the_maximum_number_of_values_is_too_large() {
        let list = |items: usize| format!("[{}]", vec!["0"; items].join(","));
        let map = |members: usize| {
            let members: Vec<String> = (0..members).map(|n| format!("\"{n}\":[]")).collect();
            format!("{{{}}}", members.join(","))
        };
        for of_length in [&list as &dyn Fn(usize) -> String, &map] {
            // The list itself counts as a value.
            let most = read(&of_length(MOST_VALUES - 1));
            assert!(!most.is_too_large && !most.is_null());
            let more = read(&of_length(MOST_VALUES));
            assert!(more.is_too_large && more.is_null());
        }
        let elsewhere =
            format!(r#"{{"status": {}, "metadata": {{"managedFields": {}}}}}"#, list(30_000), list(30_000));
        assert!(!read(&elsewhere).is_too_large);
    }
}
