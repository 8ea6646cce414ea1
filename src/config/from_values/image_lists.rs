//! Image lists: the oldest chart has one registry, later ones a list of them.

use serde_json::{Map, Value, json};

use super::form::plain;
use super::{Conversion, Made};

/// The folder in which the chart of the daemon mounts the Secrets of registries.
const SECRETS: &str = "/etc/crownlabs-files/registries";
/// Where charts have a list of registries.
const LISTS: [&str; 2] = ["operator.configurations.imageList.registries", "image-list.registries"];
/// Where charts have the interval, in seconds.
const INTERVALS: [&str; 2] =
    ["operator.configurations.imageList.updateInterval", "image-list.configurations.updateInterval"];
/// The members of an entry, each with its key here. Two names are those of older and newer charts.
const MEMBERS: [(&str, &str); 6] = [
    ("imageListName", "imageListName"),
    ("type", "type"),
    ("url", "url"),
    ("registryName", "registryName"),
    ("advertised", "registryName"),
    ("project", "project"),
];

/// Other members of an entry: a name for people, and the login, which is carried over with a file.
const KNOWN: [&str; 3] = ["name", "username", "password"];

impl Conversion<'_> {
    /// Carries the registries over, and whether they are read.
    pub(super) fn image_lists(&mut self) {
        let mut registries = Vec::new();
        let mut secrets = Vec::new();
        for path in LISTS {
            for (index, entry) in self.value(path).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                registries.push(self.registry(&format!("{path}[{index}]"), entry, &mut secrets));
            }
        }
        let configurations = "image-list.configurations";
        let mut single = Map::new();
        for (value, key) in
            [("imageListName", "imageListName"), ("registryUrl", "url"), ("advRegistryName", "registryName")]
        {
            if let Some(text) = self.text(&format!("{configurations}.{value}")) {
                single.insert(key.to_owned(), text.into());
            }
        }
        if !single.is_empty() {
            registries.push(single.into());
        }
        for path in INTERVALS {
            let Some(value) = self.value(path) else { continue };
            match value.as_u64() {
                Some(seconds) => {
                    self.set(path, "controllers.imageList.updateInterval", format!("{seconds}s").into());
                }
                None => {
                    self.messages.push(format!("{path}: {value} is left out: expected a number of seconds"));
                }
            }
        }
        let switch = self.flag("operator.configurations.features.imageList");
        if !secrets.is_empty() {
            self.set_in_chart("secrets.registries", secrets.into());
        }
        if !registries.is_empty() {
            self.set(LISTS[0], "controllers.imageList.registries", registries.into());
            self.set(LISTS[0], "controllers.imageList.enabled", switch.unwrap_or(true).into());
        }
    }

    /// An entry of the list. Notes the Secret with its password.
    fn registry(&mut self, path: &str, entry: &Value, secrets: &mut Vec<String>) -> Value {
        let text =
            |member: &str| entry.get(member).map(plain).filter(|text| !text.is_empty() && text != "null");
        let mut registry = Map::new();
        for (member, key) in MEMBERS {
            if let Some(text) = text(member) {
                registry.insert(key.to_owned(), text.into());
            }
        }
        if let Some(username) = text("username") {
            let name = text("imageListName").unwrap_or_default();
            registry.insert("username".to_owned(), username.into());
            registry.insert("passwordFile".to_owned(), json!(format!("{SECRETS}/{name}/password")));
            self.messages.push(match self.made {
                Made::Chart => format!(
                    "{path}.password: put it into a Secret {name} under the key `password`, which `secrets.registries` of the \
                     chart names"
                ),
                Made::Configuration => {
                    format!("{path}.password: put it into the file {SECRETS}/{name}/password of the daemon")
                }
            });
            secrets.push(name);
        }
        for member in entry.as_object().into_iter().flat_map(Map::keys) {
            if !MEMBERS.iter().any(|(known, _)| known == member) && !KNOWN.contains(&member.as_str()) {
                self.messages.push(format!("{path}.{member}: left out: there is no such key here"));
            }
        }
        registry.into()
    }
}
