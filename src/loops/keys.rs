//! The keys of the configuration that each loop and the webhooks read. The chart selects the configuration of each
//! Deployment and `DaemonSet` from them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::LOOPS;
use super::tests::everything;
use crate::config::{Config, Reader, compared_with, schema};
use crate::controllers::setup::Setup;
use crate::reference::check_file;
use crate::runtime::gate::Gate;
use crate::runtime::store::StoreFactory;
use crate::webhook::setup as webhook;

const HEAD: &str = "\
# Generated from the code by `make generate`; do not edit.
#
# The keys of the configuration that each loop and the webhooks read. A section stands for all of its keys. The chart
# selects the configuration of each Deployment and DaemonSet from them: templates/_config.tpl. Every process reads the
# keys of `common`, with the same values, and the keys of `process`, with its own values.
";
/// The keys that every process reads, with the same values in all processes of an installation.
const COMMON: [&str; 4] = ["apiVersion", "kind", "log", "selector"];
/// The keys that every process reads, with its own values.
const PROCESS: [&str; 4] = ["leaderElection", "resync", "server.health", "server.metrics"];

/// Whether a key is in a section, or is the section itself.
fn is_in(key: &str, section: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the keys without the members of sections that are among the keys.
fn widest(keys: &BTreeSet<String>) -> Vec<String> {
    let is_inner = |key: &&String| keys.iter().any(|other| other != *key && is_in(key, other));
    keys.iter().filter(|key| !is_inner(key)).cloned().collect()
}

/// The keys that are read: each loop has its section, the keys that it reads, and the keys that are compared with those of
/// its section when the configuration is checked.
fn listed(config: &Config) -> Vec<(&'static str, Vec<String>)> {
    let owned = |keys: [&str; 4]| keys.map(str::to_owned).to_vec();
    let mut found = vec![("common", owned(COMMON)), ("process", owned(PROCESS))];
    for entry in LOOPS {
        let mut setup = Setup::new(config, Gate::closed());
        (entry.build)(&mut setup, &mut StoreFactory::default()).expect("built");
        let section = format!("controllers.{}", entry.name);
        let mut keys = compared_with(&section);
        keys.extend(setup.config.keys().iter().cloned());
        keys.insert(section);
        found.push((entry.name, widest(&keys)));
    }
    let mut reader = Reader::new(config);
    webhook::Settings::read(&mut reader);
    found.push((webhook::NAME, widest(reader.keys())));
    found
}

#[test]
fn the_keys_of_the_chart_are_up_to_date() {
    let listed = listed(&everything());
    let mut page = HEAD.to_owned();
    for (name, keys) in &listed {
        write!(page, "\n{name}:\n").expect("a line");
        for key in keys {
            writeln!(page, "- {key}").expect("a line");
        }
    }
    check_file(Path::new("manifests/chart/files/keys.yaml"), &page);
}

#[test]
fn the_keys_that_are_read_do_not_depend_on_the_configuration() {
    assert_eq!(listed(&everything()), listed(&Config::default()));
}

/// Adds the keys of a schema that are not sections.
fn add_keys(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(properties) = schema["properties"].as_object() else {
        found.insert(path.trim_start_matches('.').to_owned());
        return;
    };
    for (name, inner) in properties {
        add_keys(inner, &format!("{path}.{name}"), found);
    }
}

#[test]
fn every_key_of_the_schema_is_read_and_no_other() {
    let mut keys = BTreeSet::new();
    add_keys(&schema(), "", &mut keys);
    assert!(keys.contains("controllers.tenant.myDrive.size"), "{keys:?}");
    let listed: Vec<String> = listed(&Config::default()).into_iter().flat_map(|(_, keys)| keys).collect();
    for key in &keys {
        assert!(listed.iter().any(|section| is_in(key, section)), "nothing reads {key}");
    }
    for section in &listed {
        assert!(keys.iter().any(|key| is_in(key, section)), "{section} does not exist");
    }
}

#[test]
fn a_key_whose_section_is_read_is_left_out() {
    let keys = ["a", "a.b", "ab.c", "ab.cd"].map(str::to_owned);
    assert_eq!(widest(&keys.into()), ["a", "ab.c", "ab.cd"]);
}
