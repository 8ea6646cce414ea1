//! Combinations of values that exclude each other.

use serde_json::Value;

use super::below;

/// A test of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// The value is `true`.
    True,
    /// The value is this word.
    Is(&'static str),
    /// The value is an empty text, an empty list or 0.
    Empty,
    /// The value is not empty.
    Set,
}

impl Test {
    /// Whether a value passes the test.
    pub fn passes(self, value: &Value) -> bool {
        let is_empty = match value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Null | Value::Bool(_) | Value::Object(_) => false,
        };
        match self {
            Self::True => value.as_bool() == Some(true),
            Self::Is(word) => value == word,
            Self::Empty => is_empty,
            Self::Set => !is_empty,
        }
    }
}

/// A combination of values that is not allowed: the keys, each with a test. The first is the one to correct.
pub struct Combination(pub Vec<(String, Test)>);

impl Combination {
    /// A combination of keys of a section; the section is empty for keys with their whole paths.
    pub fn below(section: &str, pairs: &[(&str, Test)]) -> Self {
        Self(pairs.iter().map(|(key, test)| (below(section, key), *test)).collect())
    }

    /// Whether the values of a mapping have this combination.
    pub fn holds(&self, values: &Value) -> bool {
        let passes = |(key, test): &(String, Test)| {
            let value = values.pointer(&format!("/{}", key.replace('.', "/")));
            value.is_some_and(|value| test.passes(value))
        };
        self.0.iter().all(passes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_combination_holds_if_every_value_passes_its_test() {
        let one = Combination::below("a", &[("b", Test::Empty), ("c.d", Test::True), ("e", Test::Is("x"))]);
        for empty in [json!(""), json!([]), json!(0)] {
            assert!(one.holds(&json!({"a": {"b": empty, "c": {"d": true}, "e": "x"}})));
        }
        for (b, d, e) in [("y", true, "x"), ("", false, "x"), ("", true, "y")] {
            assert!(!one.holds(&json!({"a": {"b": b, "c": {"d": d}, "e": e}})), "{b} {d} {e}");
        }
        let set = Combination::below("", &[("a.b", Test::Set)]);
        assert!(set.holds(&json!({"a": {"b": [1]}})) && set.holds(&json!({"a": {"b": 25}})));
        assert!(!set.holds(&json!({"a": {"b": ""}})) && !set.holds(&json!({"a": {}})));
    }
}
