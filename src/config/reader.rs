//! Reads single keys of a configuration, and records them.

use std::collections::BTreeSet;

use super::rules::camel_case;
use super::switches::SwitchedOff;
use super::types::Config;

/// Reads the keys of a configuration with [`read`], and records them. Loops and webhooks have no other access to the
/// configuration, so the recorded keys are all keys that they read. `manifests/chart/files/keys.yaml` is generated from
/// them.
pub struct Reader<'a> {
    config: &'a Config,
    keys: BTreeSet<String>,
}

/// Returns a reference to a key or section, such as `read!(setup.config, controllers.tenant.my_drive.size)`. Call it
/// unconditionally: the list of keys must not depend on the configuration.
macro_rules! read {
    ($reader:expr, $($field:ident).+) => {
        $reader.value(&[$(stringify!($field)),+], |config| &config.$($field).+)
    };
}
pub(crate) use read;

impl<'a> Reader<'a> {
    /// Creates a reader that has read nothing.
    pub fn new(config: &'a Config) -> Self {
        Self { config, keys: BTreeSet::new() }
    }

    /// Returns the value of a key, whose path has these fields. [`read`] passes both.
    pub fn value<T: ?Sized>(&mut self, fields: &[&str], value: fn(&'a Config) -> &'a T) -> &'a T {
        self.keys.insert(camel_case(&fields.join(".")));
        value(self.config)
    }

    /// Returns the features that are off.
    pub fn switched_off(&mut self) -> SwitchedOff {
        self.keys.extend(SwitchedOff::keys().map(|key| format!("controllers.{key}")));
        SwitchedOff::of(&self.config.controllers)
    }

    /// Returns the keys that were read, as they appear in the file.
    #[cfg(test)]
    pub fn keys(&self) -> &BTreeSet<String> {
        &self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Reader, SwitchedOff};

    #[test]
    fn a_key_that_is_read_is_recorded_with_its_name_in_the_file() {
        let mut config = Config::default();
        config.controllers.tenant.my_drive.namespace = "drives".to_owned();
        let mut reader = Reader::new(&config);
        assert!(reader.keys().is_empty());
        assert_eq!(read!(reader, controllers.tenant.my_drive.namespace), "drives");
        assert!(read!(reader, selector).contains_key("crownlabs.polito.it/operator-selector"));
        let found: Vec<&str> = reader.keys().iter().map(String::as_str).collect();
        assert_eq!(found, ["controllers.tenant.myDrive.namespace", "selector"]);
    }

    #[test]
    fn features_that_are_off_are_read_from_the_keys_that_are_recorded() {
        let mut config = Config::default();
        config.controllers.snapshot.enabled = false;
        let mut reader = Reader::new(&config);
        assert_eq!(reader.switched_off(), SwitchedOff::of(&config.controllers));
        assert!(reader.keys().contains("controllers.snapshot.enabled"), "{:?}", reader.keys());
        assert!(reader.keys().iter().all(|key| key.starts_with("controllers.")), "{:?}", reader.keys());
    }
}
