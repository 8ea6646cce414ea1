//! The rules for each entry of the list of registries.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::fault::Fault;
use crate::config::image_list::{RegistryConfig, RegistryType, images};
use crate::config::types::Config;

/// The key of the list.
pub const LIST: &str = "controllers.imageList.registries";

/// The faults of the entries of the list. If the file does not contain the key of a fault, the fault has the line of the
/// name, which every entry has.
pub fn faults(config: &Config, file: &str, lines: &BTreeMap<String, u64>) -> Vec<Fault> {
    let mut names = BTreeSet::new();
    let mut faults = Vec::new();
    for (index, registry) in config.controllers.image_list.registries.iter().enumerate() {
        let is_new = names.insert(registry.image_list_name.as_str());
        for (_, key, problem, expected) in rules(registry, is_new).into_iter().filter(|rule| rule.0) {
            let [key, name] = [key, "imageListName"].map(|key| format!("{LIST}[{index}].{key}"));
            let line = lines.get(&key).or_else(|| lines.get(&name)).copied();
            faults.push(Fault::new(file, line, &key, problem, format!("expected {expected}")));
        }
    }
    faults
}

/// Whether each rule is broken, with the key, the problem and the expected value.
fn rules(registry: &RegistryConfig, is_new: bool) -> [(bool, &str, &str, &str); 10] {
    let is_harbor = registry.type_ == RegistryType::Harbor;
    let [has_user, has_user_file] = [&registry.username, &registry.username_file].map(|key| !key.is_empty());
    let has_password = registry.has_credentials();
    let types = &registry.artifact_types;
    let of_types = "the API docker does not report the types of artifacts";
    let colon = "it contains a colon, which would end the user name";
    [
        (
            !is_new,
            "imageListName",
            "another registry has the same name",
            "a separate ImageList for each registry",
        ),
        (
            is_harbor && registry.project.is_empty(),
            "project",
            "the type is harbor and project is empty",
            "the project to list",
        ),
        (
            is_harbor && registry.project.contains('/'),
            "project",
            "it contains a slash",
            "one project of Harbor",
        ),
        (
            is_harbor && !registry.token_url.is_empty(),
            "tokenUrl",
            "the type is harbor, which takes the password itself",
            "\"\"",
        ),
        (is_harbor && types.is_empty(), "artifactTypes", "empty", "the types to list, such as [IMAGE]"),
        (!is_harbor && *types != images(), "artifactTypes", of_types, "no artifactTypes, or type: harbor"),
        (
            has_user && has_user_file,
            "usernameFile",
            "username and usernameFile are both given",
            "one of them",
        ),
        (
            !has_user && !has_user_file && has_password,
            "passwordFile",
            "no user name is given",
            "username or usernameFile as well",
        ),
        (
            has_user != has_user_file && !has_password,
            "passwordFile",
            "the user has no password",
            "the file with the password",
        ),
        (registry.username.contains(':'), "username", colon, "a name without colon"),
    ]
}
