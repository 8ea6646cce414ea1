//! What must hold in each entry of the list of registries.

use std::collections::BTreeSet;

use super::ItemFault;
use crate::config::image_list::{RegistryConfig, RegistryType, images};
use crate::config::types::Config;

/// The list, in the paths of keys.
pub const LIST: &str = "controllers.imageList.registries";

/// The faults of the entries of the list.
pub fn faults(config: &Config) -> Vec<ItemFault> {
    let mut names = BTreeSet::new();
    let mut faults = Vec::new();
    for (index, registry) in config.controllers.image_list.registries.iter().enumerate() {
        let mut add = |key: &str, problem: &str, expected: &'static str| {
            faults.push(ItemFault {
                key: format!("{LIST}[{index}].{key}"),
                instead: format!("{LIST}[{index}].imageListName"),
                problem: problem.to_owned(),
                expected,
            });
        };
        if !names.insert(registry.image_list_name.as_str()) {
            add("imageListName", "another registry has it, too", "expected an ImageList for each registry");
        }
        check_type(registry, &mut add);
        check_login(registry, &mut add);
    }
    faults
}

/// What the type of the registry asks for.
fn check_type(registry: &RegistryConfig, add: &mut impl FnMut(&str, &str, &'static str)) {
    match registry.type_ {
        RegistryType::Harbor => {
            if registry.project.is_empty() {
                add("project", "the type is harbor and project is empty", "expected the project to list");
            } else if registry.project.contains('/') {
                add("project", "it has a slash", "expected one project of Harbor");
            }
            if !registry.token_url.is_empty() {
                add("tokenUrl", "the type is harbor, which takes the password itself", "expected \"\"");
            }
            if registry.artifact_types.is_empty() {
                add("artifactTypes", "empty", "expected the types to list, such as [IMAGE]");
            }
        }
        RegistryType::Docker => {
            if registry.artifact_types != images() {
                let problem = "the API of type docker does not tell the types of artifacts";
                add("artifactTypes", problem, "expected it left out, or type: harbor");
            }
        }
    }
}

/// Who logs in: one user, with a password.
fn check_login(registry: &RegistryConfig, add: &mut impl FnMut(&str, &str, &'static str)) {
    let users = [&registry.username, &registry.username_file].map(|key| !key.is_empty());
    match (users, registry.has_credentials()) {
        ([true, true], _) => {
            add("usernameFile", "username and usernameFile are both given", "expected one of them");
        }
        ([false, false], true) => {
            add("passwordFile", "it is the password of nobody", "expected username or usernameFile, too");
        }
        ([true, _] | [_, true], false) => {
            add("passwordFile", "there is a user without password", "expected the file with the password");
        }
        _ => {}
    }
    if registry.username.contains(':') {
        add("username", "it has a colon, which ends it in a login", "expected a name without colon");
    }
}
