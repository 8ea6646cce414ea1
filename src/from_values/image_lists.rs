//! Image lists: the oldest chart has one registry, later ones a list of them.

use serde_json::{Map, Value};

use super::Conversion;
use super::form::plain;

/// The folder where the daemon's chart mounts the Secrets of registries.
const SECRETS: &str = "/etc/crownlabs-files/registries";
/// Where charts have a list of registries.
const LISTS: [&str; 2] = ["operator.configurations.imageList.registries", "image-list.registries"];
/// Where charts have the interval, in seconds.
const INTERVALS: [&str; 2] =
    ["operator.configurations.imageList.updateInterval", "image-list.configurations.updateInterval"];
/// The members of an entry, each with its key in the configuration. Two of them are alternative names from older and
/// newer charts.
const MEMBERS: [(&str, &str); 6] = [
    ("imageListName", "imageListName"),
    ("type", "type"),
    ("url", "url"),
    ("registryName", "registryName"),
    ("advertised", "registryName"),
    ("project", "project"),
];

/// The values of the single registry, each with its key in the configuration.
const SINGLE: [(&str, &str); 3] =
    [("imageListName", "imageListName"), ("registryUrl", "url"), ("advRegistryName", "registryName")];

/// Other members of an entry: a display name, and the login, which is carried over together with a file.
const KNOWN: [&str; 3] = ["name", "username", "password"];

impl Conversion<'_> {
    /// Carries over the registries, and whether they are read.
    pub(super) fn image_lists(&mut self) {
        let mut registries = Vec::new();
        let mut secrets = Vec::new();
        for path in LISTS {
            let entries = self.value(path).and_then(Value::as_array);
            for (index, entry) in entries.into_iter().flatten().enumerate() {
                registries.push(self.registry(&format!("{path}[{index}]"), entry, &mut secrets));
            }
        }
        let single = SINGLE.iter().filter_map(|(value, key)| {
            let text = self.text(&format!("image-list.configurations.{value}"))?;
            Some(((*key).to_owned(), text.into()))
        });
        let single: Map<String, Value> = single.collect();
        registries.extend((!single.is_empty()).then(|| single.into()));
        for path in INTERVALS {
            let Some(value) = self.value(path) else { continue };
            if let Some(seconds) = value.as_u64() {
                self.set(path, "controllers.imageList.updateInterval", format!("{seconds}s"));
            } else {
                self.remarks.steps.push(format!(
                    "{path}: {value} is left out: expected a number of seconds: set \
                     controllers.imageList.updateInterval"
                ));
            }
        }
        if !secrets.is_empty() {
            self.set_in_chart("secrets.registries", secrets);
        }
        if !registries.is_empty() {
            let switch = self.flag("operator.configurations.features.imageList");
            self.set(LISTS[0], "controllers.imageList.registries", registries);
            self.set(LISTS[0], "controllers.imageList.enabled", switch.unwrap_or(true));
        }
    }

    /// Converts an entry of the list and records the Secret with its password.
    fn registry(&mut self, path: &str, entry: &Value, secrets: &mut Vec<String>) -> Value {
        let text =
            |member: &str| entry.get(member).map(plain).filter(|text| !text.is_empty() && text != "null");
        let of_member = |(member, key): &(&str, &str)| Some(((*key).to_owned(), text(member)?.into()));
        let mut registry: Map<String, Value> = MEMBERS.iter().filter_map(of_member).collect();
        if let Some(username) = text("username") {
            let name = text("imageListName").unwrap_or_default();
            registry.insert("username".to_owned(), username.into());
            registry.insert("passwordFile".to_owned(), format!("{SECRETS}/{name}/password").into());
            self.require(
                format!("{path}.password: put it into the file {SECRETS}/{name}/password of the daemon"),
                format!(
                    "{path}.password: put it into a Secret {name} under the key `password`, which `secrets.registries` of the \
                     chart names"
                ),
            );
            secrets.push(name);
        }
        for member in entry.as_object().into_iter().flat_map(Map::keys) {
            if !MEMBERS.iter().any(|(known, _)| known == member) && !KNOWN.contains(&member.as_str()) {
                let ignored = format!("{path}.{member}: the configuration has no such key");
                self.remarks.ignored.push(ignored);
            }
        }
        registry.into()
    }
}
