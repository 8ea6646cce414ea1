//! The content of the file of public keys (`authorized_keys` of sshd(8)): a pure function of the Tenants. What was made of
//! a Tenant is kept, so that a change of one costs little however many there are.

use std::collections::BTreeMap;

use crate::api::public_key;
use crate::api::tenant::Tenant;
use crate::api::text::Text;

/// The file of public keys, by the names of the Tenants.
#[derive(Debug, Default)]
pub struct KeyFile {
    sections: BTreeMap<Text, Section>,
}

/// The part of the file that belongs to one Tenant.
#[derive(Debug, Default)]
struct Section {
    /// One line for each key: the options, if any, type, data, and the name of the Tenant. Each ends with a line break.
    lines: String,
    /// The number of keys in it.
    keys: usize,
    /// The number of keys that are left out because they cannot be used.
    skipped: usize,
}

impl KeyFile {
    /// Takes the keys of a Tenant in place of those that it had; none of one that is being deleted. Each key is written
    /// anew from what was read of it, so no text of a user becomes a part of the file. `options` stand before each key.
    pub fn set(&mut self, tenant: &Tenant, options: &str) {
        if tenant.is_terminating() || tenant.spec.public_keys.is_empty() {
            return self.remove(tenant.name());
        }
        let keys = &tenant.spec.public_keys;
        let used = public_key::within_limits(keys);
        let mut section = Section { skipped: keys.len() - used.len(), ..Section::default() };
        for key in used {
            match public_key::canonical(key) {
                Ok(key) => section.add(options, &key, tenant.name()),
                Err(_) => section.skipped += 1,
            }
        }
        section.lines.shrink_to_fit();
        self.sections.insert(tenant.metadata.name.clone(), section);
    }

    /// Leaves out a Tenant that is gone.
    pub fn remove(&mut self, name: &str) {
        self.sections.remove(name);
    }

    /// The content: the lines of the Tenants in the order of their names. No line break at the end.
    pub fn content(&self) -> String {
        let length = self.sections.values().map(|section| section.lines.len()).sum();
        let mut content = String::with_capacity(length);
        content.extend(self.sections.values().map(|section| section.lines.as_str()));
        content.pop();
        content
    }

    /// The number of keys in it.
    pub fn keys(&self) -> usize {
        self.sections.values().map(|section| section.keys).sum()
    }

    /// The number of keys that are left out because they cannot be used.
    pub fn skipped(&self) -> usize {
        self.sections.values().map(|section| section.skipped).sum()
    }
}

impl Section {
    fn add(&mut self, options: &str, key: &str, tenant: &str) {
        self.keys += 1;
        let separator = if options.is_empty() { "" } else { " " };
        self.lines.extend([options, separator, key, " ", tenant, "\n"]);
    }
}
