//! The rules of the file beside its schema: the bounds of single keys, which are declared with the keys, and rules that
//! involve several keys. Where such a rule is a combination of values, the schema has it, too.

mod combination;
mod registries;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::bound::Bound;
use super::fault::Fault;
use super::types::Config;

pub(super) use combination::{Combination, Test};
#[cfg(test)]
pub(super) use registries::{LIST, combinations as combinations_of_registries};

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
    /// These values exclude each other: the keys for the fault, combinations of which none may hold, the expected value,
    /// and the problem.
    Never(&'static str, &'static [&'static str], &'static [Pairs], &'static str, &'static str),
    /// Any other rule: the keys that it reads, the expected value, and a function that returns the problem or `None`.
    Other(&'static str, &'static [&'static str], &'static str, fn(&Config) -> Option<String>),
}

/// The keys of a combination with their tests. The first is the one to correct.
type Pairs = &'static [(&'static str, Test)];

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

/// The combinations of values that the rules exclude.
#[cfg(test)]
pub(super) fn combinations() -> Vec<Combination> {
    let conditions = table::RULES.iter().flat_map(Rule::conditions);
    conditions.flat_map(|condition| condition.combinations).collect()
}

/// The keys of the rules that check keys of a section: the first key of a rule is the one to correct.
#[cfg(test)]
pub fn compared_with(section: &str) -> BTreeSet<String> {
    let config = Config::default();
    let rules = applied(&config).map(|rule| rule.keys);
    rules.filter(|keys| keys.first().is_some_and(|key| overlap(section, key))).flatten().collect()
}

/// The bounds of single keys, each with its key.
#[cfg(test)]
pub(super) fn bounds() -> Vec<(String, &'static Bound)> {
    let mut found = Vec::new();
    for rule in table::RULES {
        if let Rule::Bounds(section, bounds) = rule {
            let with_key = |(field, bound): &'static (&'static str, Bound)| {
                (format!("{section}.{}", camel_case(field)), bound)
            };
            found.extend(bounds.iter().map(with_key));
        }
    }
    found
}

/// A rule that excludes combinations of values.
struct Condition {
    /// The keys for the fault.
    keys: Vec<String>,
    combinations: Vec<Combination>,
    expected: &'static str,
    problem: String,
}

impl Rule {
    fn apply(&self, config: &Config, values: &Value) -> Vec<Applied> {
        match *self {
            Self::Bounds(section, bounds) => {
                let apply = |(field, bound): &(&str, Bound)| {
                    let key = format!("{section}.{}", camel_case(field));
                    let value = values.pointer(&format!("/{}", key.replace('.', "/")));
                    let problem = value.and_then(|value| bound.problem(value));
                    Applied { keys: vec![key], expected: bound.expected(), problem }
                };
                bounds.iter().map(apply).collect()
            }
            Self::Other(section, keys, expected, problem) => {
                let keys = keys.iter().map(|key| below(section, key)).collect();
                vec![Applied { keys, expected: expected.to_owned(), problem: problem(config) }]
            }
            Self::Needed(..) | Self::Together(..) | Self::OnlyWith(..) | Self::Never(..) => {
                let apply = |condition: Condition| {
                    let is_broken = condition.combinations.iter().any(|one| one.holds(values));
                    let problem = is_broken.then_some(condition.problem);
                    Applied { keys: condition.keys, expected: condition.expected.to_owned(), problem }
                };
                self.conditions().into_iter().map(apply).collect()
            }
        }
    }

    /// The rule as excluded combinations; none for a rule of another type.
    fn conditions(&self) -> Vec<Condition> {
        match *self {
            Self::Needed(section, ref case, needed) => {
                let (switch, test, words) = match *case {
                    Case::Enabled => ("enabled", Test::True, format!("{} is enabled", last(section))),
                    Case::Is(key, wanted) => (key, Test::Is(wanted), format!("{key} is {wanted}")),
                };
                let condition = |&(key, expected): &(&'static str, &'static str)| Condition {
                    keys: vec![below(section, key), below(section, switch)],
                    combinations: vec![Combination::below(section, &[(key, Test::Empty), (switch, test)])],
                    expected,
                    problem: format!("{words} and {} is empty", last(key)),
                };
                needed.iter().map(condition).collect()
            }
            Self::Together(section, key, other, expected) => {
                let pairs =
                    |empty, set| Combination::below(section, &[(empty, Test::Empty), (set, Test::Set)]);
                vec![Condition {
                    keys: vec![below(section, key), below(section, other)],
                    combinations: vec![pairs(key, other), pairs(other, key)],
                    expected,
                    problem: format!("only one of {other} and {key} is set"),
                }]
            }
            Self::OnlyWith(section, key, other, expected) => vec![Condition {
                keys: vec![below(section, key), below(section, other)],
                combinations: vec![Combination::below(section, &[(other, Test::Empty), (key, Test::Set)])],
                expected,
                problem: format!("{key} is set and {other} is empty"),
            }],
            Self::Never(section, keys, combinations, expected, problem) => vec![Condition {
                keys: keys.iter().map(|key| below(section, key)).collect(),
                combinations: combinations.iter().map(|pairs| Combination::below(section, pairs)).collect(),
                expected,
                problem: problem.to_owned(),
            }],
            Self::Bounds(..) | Self::Other(..) => Vec::new(),
        }
    }
}

/// The path of a key of a section.
fn below(section: &str, key: &str) -> String {
    format!("{section}.{key}").trim_start_matches('.').to_owned()
}

/// The last part of a key.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// The name of a field, or the path of a key, in the file.
pub(super) fn camel_case(field: &str) -> String {
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
