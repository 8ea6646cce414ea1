//! Rules that the schema cannot express: between several keys, or about the value of one.

mod dashboard;
mod registries;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::duration::ConfigDuration;
use super::fault::Fault;
use super::types::Config;

/// A rule that a configuration must follow. A fault is reported for the first of its keys that is in the file.
pub(super) enum Rule {
    /// The time at a key has a lower bound.
    AtLeast(&'static str, ConfigDuration),
    /// The time at a key has two bounds; this is said of a time beyond them.
    Between(&'static str, ConfigDuration, ConfigDuration, &'static str),
    /// A key is not empty in this case; then, what its value is.
    Needed(&'static str, Case, &'static str),
    /// Two keys are both empty, or both are not; then, what would be valid.
    Together(&'static str, &'static str, &'static str),
    /// The first key is empty if the second is; then, what is expected of the second.
    OnlyWith(&'static str, &'static str, &'static str),
    /// Any other rule: the keys that it reads, what is wrong or `None` if it is followed, and what would be valid.
    Other(&'static [&'static str], fn(&Config) -> Option<String>, &'static str),
}

/// The rules, in the order of the reference.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    table::RULES.iter().chain(dashboard::RULES)
}

/// A case in which other keys are needed.
pub(super) struct Case {
    /// The key by which it is the case.
    key: &'static str,
    /// Its value then; a switch is on.
    value: &'static str,
    /// This case in words.
    words: &'static str,
}

impl Rule {
    /// The keys that the rule reads.
    pub fn keys(&self) -> Vec<&'static str> {
        match self {
            Self::AtLeast(key, ..) | Self::Between(key, ..) => vec![key],
            Self::Needed(key, case, _) => vec![key, case.key],
            Self::Together(key, other, _) | Self::OnlyWith(key, other, _) => vec![key, other],
            Self::Other(keys, ..) => keys.to_vec(),
        }
    }

    /// What would be valid.
    pub fn expected(&self) -> String {
        match self {
            Self::AtLeast(_, least) if *least == ConfigDuration::SHORTEST => {
                "expected more than 0s".to_owned()
            }
            Self::AtLeast(_, least) => format!("expected at least {least}"),
            Self::Between(_, least, most, _) => format!("expected from {least} to {most}"),
            Self::Needed(_, _, expected)
            | Self::Together(_, _, expected)
            | Self::OnlyWith(_, _, expected)
            | Self::Other(_, _, expected) => (*expected).to_owned(),
        }
    }

    /// What is wrong with a configuration, whose values by their keys are those; `None` if the rule is followed.
    fn broken(&self, config: &Config, values: &Value) -> Option<String> {
        let value = |key: &str| values.pointer(&format!("/{}", key.replace('.', "/")));
        let time = |key: &str| value(key)?.as_str()?.parse::<ConfigDuration>().ok();
        let is_empty = |key: &str| Some(matches!(value(key)?.to_string().as_str(), "\"\"" | "[]"));
        let name = |key: &'static str| key.rsplit('.').next().unwrap_or(key);
        match self {
            Self::AtLeast(key, least) => {
                let time = time(key)?;
                (time < *least).then(|| format!("{time} is too short"))
            }
            Self::Between(key, least, most, words) => {
                let time = time(key)?;
                (!(*least..=*most).contains(&time)).then(|| format!("{time} {words}"))
            }
            Self::Needed(key, case, _) => {
                let is_case = match value(case.key)? {
                    Value::Bool(is_on) => *is_on,
                    other => other == case.value,
                };
                (is_case && is_empty(key)?).then(|| format!("{} and {} is empty", case.words, name(key)))
            }
            Self::Together(key, other, _) => (is_empty(key)? != is_empty(other)?)
                .then(|| format!("only one of {} and {} is set", name(other), name(key))),
            Self::OnlyWith(key, other, _) => (!is_empty(key)? && is_empty(other)?)
                .then(|| format!("{} is set and {} is empty", name(key), name(other))),
            Self::Other(_, broken, _) => broken(config),
        }
    }
}

/// What is wrong with an entry of a list.
struct ItemFault {
    /// The key, for example `controllers.imageList.registries[1].url`.
    key: String,
    /// The key whose line is named if this one is not in the file: one that each entry has.
    instead: String,
    /// What is wrong.
    problem: String,
    /// What would be valid.
    expected: &'static str,
}

/// The faults of a configuration. Rules that read a key in `doubtful` are skipped: the value of that key was
/// refused before, and the configuration has its default instead.
pub(super) fn broken(
    config: &Config,
    file: &str,
    lines: &BTreeMap<String, u64>,
    doubtful: &BTreeSet<String>,
) -> Vec<Fault> {
    // Plain data can always be converted to a JSON value.
    let values = serde_json::to_value(config).unwrap_or_default();
    let is_certain = |key: &str| !doubtful.iter().any(|other| overlap(key, other));
    let fault = |rule: &Rule| {
        let keys = rule.keys();
        let problem = rule.broken(config, &values).filter(|_| keys.iter().all(|key| is_certain(key)))?;
        let given = keys.iter().find(|key| lines.contains_key(**key)).or(keys.first())?;
        Some(Fault::new(file, lines.get(*given).copied(), given, problem, rule.expected()))
    };
    let of_item = |item: ItemFault| {
        let line = lines.get(&item.key).or_else(|| lines.get(&item.instead)).copied();
        Fault::new(file, line, &item.key, item.problem, item.expected)
    };
    // Entries that were refused before are not in the list, so those after them have other places.
    let of_items = is_certain(registries::LIST).then(|| registries::faults(config)).into_iter().flatten();
    rules().filter_map(fault).chain(of_items.map(of_item)).collect()
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
        for key in rules().flat_map(Rule::keys) {
            let pointer = key.split('.').fold(String::new(), |pointer, part| pointer + "/properties/" + part);
            assert!(schema.pointer(&pointer).is_some(), "{key}");
        }
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
