//! The content of the file of public keys (`authorized_keys` of sshd(8)): a pure function of the Tenants.

use std::sync::Arc;

use crate::api::public_key;
use crate::api::tenant::Tenant;

/// How many keys of one Tenant are used. The server reads all lines at each login, and everybody may edit the keys of
/// his own Tenant.
const MOST: usize = 100;

/// The file of public keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KeyFile {
    /// One line for each key: the options, if any, type, data, and the name of the Tenant. No line break at the end.
    pub content: String,
    /// The number of keys in it.
    pub keys: usize,
    /// The number of keys that are left out because they cannot be used.
    pub skipped: usize,
}

/// The file with the keys of all these Tenants but those that are being deleted, in the order of their names. Each key
/// is written anew from what was read of it, so no text of a user becomes a part of the file. `options` stand before
/// each key.
pub fn key_file(mut tenants: Vec<Arc<Tenant>>, options: &str) -> KeyFile {
    tenants.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    let mut file = KeyFile::default();
    for tenant in tenants.iter().filter(|tenant| !tenant.is_terminating()) {
        let keys = &tenant.spec.public_keys;
        file.skipped += keys.len().saturating_sub(MOST);
        for key in keys.iter().take(MOST) {
            match public_key::canonical(key) {
                Ok(key) => file.add(options, &key, tenant.name()),
                Err(_) => file.skipped += 1,
            }
        }
    }
    file
}

impl KeyFile {
    fn add(&mut self, options: &str, key: &str, tenant: &str) {
        if self.keys > 0 {
            self.content.push('\n');
        }
        self.keys += 1;
        let separator = if options.is_empty() { "" } else { " " };
        self.content.extend([options, separator, key, " ", tenant]);
    }
}
