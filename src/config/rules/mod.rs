//! The rules of the file beside its schema: the bounds of single keys, which are declared with the keys, and rules that
//! involve several keys.

mod registries;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::bound::Bound;
use super::fault::Fault;
use super::types::Config;

/// A rule that a configuration must follow. Its keys are below the section that comes first.
enum Rule {
    /// The keys of a section are within their bounds.
    Bounds(&'static str, &'static [(&'static str, Bound)]),
    /// These keys must not be empty in this case. Each has a description of the expected value.
    Needed(&'static str, Case, &'static [(&'static str, &'static str)]),
    /// Two keys are either both empty or both set. The text describes valid values.
    Together(&'static str, &'static str, &'static str, &'static str),
    /// The first key must be empty if the second is. The text describes the expected value of the second.
    OnlyWith(&'static str, &'static str, &'static str, &'static str),
    /// Any other rule: the keys that it reads, the expected value, and a function that returns the problem or `None`.
    Other(&'static str, &'static [&'static str], &'static str, fn(&Config) -> Option<String>),
}

/// A case that makes other keys required.
enum Case {
    /// The section is enabled.
    Enabled,
    /// A key of the section has this value.
    Is(&'static str, &'static str),
}

/// A rule about certain keys, applied to a configuration.
pub(super) struct Applied {
    /// The keys that the rule reads. A fault is reported for the first of them that is in the file.
    pub keys: Vec<String>,
    /// A description of the expected value, to be read after "expected".
    pub expected: String,
    /// The problem; `None` if the configuration follows the rule.
    problem: Option<String>,
}

/// Applies all rules, in the order of the reference.
pub(super) fn applied(config: &Config) -> impl Iterator<Item = Applied> {
    // Plain data can always be converted to a JSON value.
    let values = serde_json::to_value(config).unwrap_or_default();
    table::RULES.iter().flat_map(move |rule| rule.apply(config, &values))
}

impl Rule {
    fn apply(&self, config: &Config, values: &Value) -> Vec<Applied> {
        let value = |key: &str| values.pointer(&format!("/{}", key.replace('.', "/")));
        let is_empty =
            |key: &str| value(key).is_some_and(|value| value == "" || value == &Value::Array(vec![]));
        let pair = |section: &str, key: &str, other: &str, expected: &str, problem: Option<String>| {
            let keys = [key, other].map(|key| format!("{section}.{key}")).to_vec();
            Applied { keys, expected: expected.to_owned(), problem }
        };
        match *self {
            Self::Bounds(section, bounds) => {
                let apply = |(field, bound): &(&str, Bound)| {
                    let key = format!("{section}.{}", camel_case(field));
                    let problem = value(&key).and_then(|value| bound.problem(value));
                    Applied { keys: vec![key], expected: bound.expected(), problem }
                };
                bounds.iter().map(apply).collect()
            }
            Self::Needed(section, ref case, needed) => {
                let (switch, wanted, words) = match *case {
                    Case::Enabled => ("enabled", true.into(), format!("{} is enabled", last(section))),
                    Case::Is(key, wanted) => (key, Value::from(wanted), format!("{key} is {wanted}")),
                };
                let is_case = value(&format!("{section}.{switch}")) == Some(&wanted);
                let apply = |&(key, expected): &(&str, &str)| {
                    let is_broken = is_case && is_empty(&format!("{section}.{key}"));
                    let problem = is_broken.then(|| format!("{words} and {} is empty", last(key)));
                    pair(section, key, switch, expected, problem)
                };
                needed.iter().map(apply).collect()
            }
            Self::Together(section, key, other, expected) => {
                let [one, two] = [key, other].map(|key| is_empty(&format!("{section}.{key}")));
                let problem = (one != two).then(|| format!("only one of {other} and {key} is set"));
                vec![pair(section, key, other, expected, problem)]
            }
            Self::OnlyWith(section, key, other, expected) => {
                let [one, two] = [key, other].map(|key| is_empty(&format!("{section}.{key}")));
                let problem = (!one && two).then(|| format!("{key} is set and {other} is empty"));
                vec![pair(section, key, other, expected, problem)]
            }
            Self::Other(section, keys, expected, problem) => {
                let below = |key: &&str| format!("{section}.{key}").trim_start_matches('.').to_owned();
                let keys = keys.iter().map(below).collect();
                vec![Applied { keys, expected: expected.to_owned(), problem: problem(config) }]
            }
        }
    }
}

/// The last part of a key.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// The name of a field in the file.
fn camel_case(field: &str) -> String {
    let mut is_start = false;
    let letter = |c: char| match (c, std::mem::replace(&mut is_start, c == '_')) {
        ('_', _) => None,
        (c, true) => Some(c.to_ascii_uppercase()),
        (c, false) => Some(c),
    };
    field.chars().filter_map(letter).collect()
}

/// Returns the faults of a configuration. Rules that read a key in `doubtful` are skipped: the key's value was already
/// rejected, and the configuration contains its default instead.
pub(super) fn broken(
    config: &Config,
    file: &str,
    lines: &BTreeMap<String, u64>,
    doubtful: &BTreeSet<String>,
) -> Vec<Fault> {
    let is_certain = |key: &str| !doubtful.iter().any(|other| overlap(key, other));
    let fault = |rule: Applied| {
        let problem = rule.problem.filter(|_| rule.keys.iter().all(|key| is_certain(key)))?;
        let given = rule.keys.iter().find(|key| lines.contains_key(*key)).or(rule.keys.first())?;
        let line = lines.get(given).copied();
        Some(Fault::new(file, line, given, problem, format!("expected {}", rule.expected)))
    };
    // Rejected entries are not in the list, so the positions of later entries would be wrong.
    let of_items = is_certain(registries::LIST).then(|| registries::faults(config, file, lines));
    applied(config).filter_map(fault).chain(of_items.into_iter().flatten()).collect()
}

/// Whether two keys are the same, or one contains the other.
fn overlap(key: &str, other: &str) -> bool {
    let above = |upper: &str, lower: &str| {
        lower.strip_prefix(upper).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    above(key, other) || above(other, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    #[test]
    fn keys_of_rules_exist() {
        let schema = schema();
        for key in applied(&Config::default()).flat_map(|rule| rule.keys) {
            let pointer = key.split('.').fold(String::new(), |pointer, part| pointer + "/properties/" + part);
            assert!(schema.pointer(&pointer).is_some(), "{key}");
        }
    }

    #[test]
    fn every_bound_that_a_key_declares_is_applied() {
        let folder =
            std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/config")).expect("the folder");
        let texts = folder.filter_map(|file| std::fs::read_to_string(file.expect("a file").path()).ok());
        let is_bound = |line: &str| line.trim_start().starts_with("pub ") && line.contains(" where ");
        let declared: usize = texts.map(|text| text.lines().filter(|line| is_bound(line)).count()).sum();
        let bounds =
            table::RULES.iter().map(|rule| if let Rule::Bounds(_, all) = rule { all.len() } else { 0 });
        assert_eq!((declared > 20, bounds.sum()), (true, declared));
    }

    #[test]
    fn keys_overlap_with_those_above_and_below() {
        assert!(overlap("a.b", "a.b"));
        assert!(overlap("a.b", "a"));
        assert!(overlap("a", "a.b"));
        assert!(overlap("a.b", "a.b[0].c"));
        assert!(!overlap("a.b", "a.bc"));
        assert!(!overlap("a.b", "a.c"));
    }
}
