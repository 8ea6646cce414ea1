//! The rules for each entry of the list of registries.

use std::collections::{BTreeMap, BTreeSet};

use super::Pairs;
use super::combination::{Combination, Test};
use crate::config::fault::Fault;
use crate::config::image_list::{RegistryConfig, RegistryType, images};
use crate::config::types::Config;

use Test::{Empty, Is, Set};

/// The key of the list.
pub const LIST: &str = "controllers.imageList.registries";

/// A rule that excludes combinations of values of an entry: the key for the fault, the combinations, the problem, and the
/// expected value.
type Exclusion = (&'static str, &'static [Pairs], &'static str, &'static str);

static EXCLUSIONS: [Exclusion; 6] = [
    (
        "project",
        &[&[("project", Empty), ("type", Is("harbor"))]],
        "the type is harbor and project is empty",
        "the project to list",
    ),
    (
        "tokenUrl",
        &[&[("tokenUrl", Set), ("type", Is("harbor"))]],
        "the type is harbor, which takes the password itself",
        "\"\"",
    ),
    (
        "artifactTypes",
        &[&[("artifactTypes", Empty), ("type", Is("harbor"))]],
        "empty",
        "the types to list, such as [IMAGE]",
    ),
    (
        "usernameFile",
        &[&[("usernameFile", Set), ("username", Set)]],
        "username and usernameFile are both given",
        "one of them",
    ),
    (
        "passwordFile",
        &[&[("username", Empty), ("usernameFile", Empty), ("passwordFile", Set)]],
        "no user name is given",
        "username or usernameFile as well",
    ),
    (
        "passwordFile",
        &[
            &[("passwordFile", Empty), ("username", Set), ("usernameFile", Empty)],
            &[("passwordFile", Empty), ("username", Empty), ("usernameFile", Set)],
        ],
        "the user has no password",
        "the file with the password",
    ),
];

/// The excluded combinations of values of an entry.
#[cfg(test)]
pub fn combinations() -> Vec<Combination> {
    let excluded = EXCLUSIONS.iter().flat_map(|(_, excluded, ..)| excluded.iter());
    excluded.map(|pairs| Combination::below("", pairs)).collect()
}

/// The faults of the entries of the list. If the file does not contain the key of a fault, the fault has the line of the
/// name, which every entry has.
pub fn faults(config: &Config, file: &str, lines: &BTreeMap<String, u64>) -> Vec<Fault> {
    let mut names = BTreeSet::new();
    let mut faults = Vec::new();
    for (index, registry) in config.controllers.image_list.registries.iter().enumerate() {
        let is_new = names.insert(registry.image_list_name.as_str());
        // Plain data can always be converted to a JSON value.
        let values = serde_json::to_value(registry).unwrap_or_default();
        let excluded = EXCLUSIONS.iter().map(|(key, excluded, problem, expected)| {
            let holds = |pairs: &Pairs| Combination::below("", pairs).holds(&values);
            (excluded.iter().any(holds), *key, *problem, *expected)
        });
        let broken = rules(registry, is_new).into_iter().chain(excluded).filter(|rule| rule.0);
        for (_, key, problem, expected) in broken {
            let [key, name] = [key, "imageListName"].map(|key| format!("{LIST}[{index}].{key}"));
            let line = lines.get(&key).or_else(|| lines.get(&name)).copied();
            faults.push(Fault::new(file, line, &key, problem, format!("expected {expected}")));
        }
    }
    faults
}

/// Whether each of the other rules is broken, with the key, the problem and the expected value.
fn rules(registry: &RegistryConfig, is_new: bool) -> [(bool, &'static str, &'static str, &'static str); 4] {
    let is_harbor = registry.type_ == RegistryType::Harbor;
    let of_types = "the API docker does not report the types of artifacts";
    let is_other = !is_harbor && registry.artifact_types != images();
    let colon = "it contains a colon, which would end the user name";
    [
        (
            !is_new,
            "imageListName",
            "another registry has the same name",
            "a separate ImageList for each registry",
        ),
        (
            is_harbor && registry.project.contains('/'),
            "project",
            "it contains a slash",
            "one project of Harbor",
        ),
        (is_other, "artifactTypes", of_types, "no artifactTypes, or type: harbor"),
        (registry.username.contains(':'), "username", colon, "a name without colon"),
    ]
}
