//! The changes of a Template, and the machines that they do not affect.

use serde_json::Value;

use super::fields::{ENVIRONMENT, ENVIRONMENTS, Field, Reach, SPEC};
use super::value::{at, shown};

/// A changed field: the key of its texts, and the name of its environment.
pub type Changed = (&'static str, Option<String>);

/// The differences between two specs of a Template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The fields that also affect machines that exist.
    pub of_all: Vec<Changed>,
    /// The fields that affect only new machines.
    pub of_new: Vec<Changed>,
    /// The names of new environments, which start in machines that exist, too.
    pub added: Vec<String>,
    /// The names of removed environments, which stay in machines that exist.
    pub removed: Vec<String>,
}

impl Changes {
    /// Compares two specs. Environments are matched by name.
    pub fn between(old: &Value, new: &Value) -> Self {
        let mut changes = Self::default();
        changes.compare(SPEC, old, new, None);
        let (before, after) = (environments(old), environments(new));
        for environment in after {
            let name = name_of(environment);
            match before.iter().find(|known| name_of(known) == name) {
                Some(known) => changes.compare(ENVIRONMENT, known, environment, Some(name)),
                None => changes.added.push(name.to_owned()),
            }
        }
        let is_gone = |known: &&Value| after.iter().all(|environment| name_of(environment) != name_of(known));
        changes.removed.extend(before.iter().filter(is_gone).map(|known| name_of(known).to_owned()));
        changes
    }

    fn compare(&mut self, table: &[Field], old: &Value, new: &Value, environment: Option<&str>) {
        let is_changed =
            |field: &&Field| shown(field, at(old, field.path)) != shown(field, at(new, field.path));
        for field in table.iter().filter(is_changed) {
            let list = if field.reach == Reach::All { &mut self.of_all } else { &mut self.of_new };
            list.push((field.name, environment.map(str::to_owned)));
        }
    }

    /// Whether the specs are equal.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn environments(spec: &Value) -> &[Value] {
    spec[ENVIRONMENTS].as_array().map_or(&[][..], Vec::as_slice)
}

fn name_of(environment: &Value) -> &str {
    environment["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod unit_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_listed_by_the_machines_that_they_affect() {
        let old = json!({
            "prettyName": "Lab", "allowPublicExposure": false, "environmentList": [
                {"name": "a", "image": "x", "resources": {"memory": "1Gi"}}, {"name": "b"},
            ],
        });
        assert!(Changes::between(&old, &old).is_empty());
        let new = json!({
            "prettyName": "Laboratory", "environmentList": [
                {"name": "c"}, {"name": "a", "image": "y", "rewriteURL": true, "resources": {"memory": "2Gi"}},
            ],
        });
        let of = |field, environment: Option<&str>| (field, environment.map(str::to_owned));
        let expected = Changes {
            of_all: vec![of("prettyName", None), of("rewriteURL", Some("a"))],
            of_new: vec![of("image", Some("a")), of("memory", Some("a"))],
            added: vec!["c".to_owned()],
            removed: vec!["b".to_owned()],
        };
        assert_eq!(Changes::between(&old, &new), expected);
    }
}
