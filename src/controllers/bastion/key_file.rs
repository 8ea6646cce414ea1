//! The content of the file of public keys (`authorized_keys` of sshd(8)): a pure function of the Tenants. The part of
//! each Tenant is cached, so that a change of one Tenant is cheap, whatever the number of Tenants.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use crate::api::public_key;
use crate::api::tenant::Tenant;
use crate::api::text::Text;

/// The number of Tenants for each thread. Starting a thread takes as long as reading ten Tenants.
const SHARE: usize = 500;

/// The file of public keys, by the names of the Tenants.
#[derive(Debug, Default)]
pub struct KeyFile {
    sections: BTreeMap<Text, Section>,
}

/// The part of the file for one Tenant.
#[derive(Debug, Default)]
struct Section {
    /// One line for each key: the options, if any, the type, the data, and the name of the Tenant. Each line ends with
    /// a line break.
    lines: String,
    /// The number of keys in the section.
    keys: usize,
    /// The number of invalid keys, which are left out.
    skipped: usize,
}

impl KeyFile {
    /// Updates the sections of these Tenants from their current keys. `tenant` finds a Tenant; Tenants that it does not
    /// find, or that are being deleted, are left out. Each key is formatted again from its parsed form, so no text of a
    /// user becomes part of the file. `options` precede each key. Many Tenants are read on all processor cores, because
    /// no user can log in after a start before all Tenants are read.
    pub fn update(
        &mut self,
        names: impl IntoIterator<Item = Text>,
        options: &str,
        tenant: impl Fn(&str) -> Option<Arc<Tenant>> + Sync,
    ) {
        let names: Vec<Text> = names.into_iter().collect();
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let share = names.len().div_ceil(cores).max(SHARE);
        let read = |names: &[Text]| -> Vec<Option<Section>> {
            let sections =
                names.iter().map(|name| tenant(name).and_then(|tenant| Section::of(&tenant, options)));
            sections.collect()
        };
        let sections: Vec<Option<Section>> = if names.len() <= share {
            read(&names)
        } else {
            thread::scope(|scope| {
                let threads: Vec<_> = names.chunks(share).map(|part| scope.spawn(|| read(part))).collect();
                let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
                ended.flat_map(|sections| sections.unwrap_or_else(|panic| resume_unwind(panic))).collect()
            })
        };
        for (name, section) in names.into_iter().zip(sections) {
            match section {
                Some(section) => self.sections.insert(name, section),
                None => self.sections.remove(&name),
            };
        }
    }

    /// The content: the lines of the Tenants, sorted by name, without a line break at the end.
    pub fn content(&self) -> String {
        let length = self.sections.values().map(|section| section.lines.len()).sum();
        let mut content = String::with_capacity(length);
        content.extend(self.sections.values().map(|section| section.lines.as_str()));
        content.pop();
        content
    }

    /// The number of keys in the file.
    pub fn keys(&self) -> usize {
        self.sections.values().map(|section| section.keys).sum()
    }

    /// The number of invalid keys, which are left out.
    pub fn skipped(&self) -> usize {
        self.sections.values().map(|section| section.skipped).sum()
    }
}

impl Section {
    /// The section of a Tenant; `None` if the Tenant has no keys or is being deleted.
    fn of(tenant: &Tenant, options: &str) -> Option<Self> {
        let keys = &tenant.spec.public_keys;
        if tenant.is_terminating() || keys.is_empty() {
            return None;
        }
        let used = public_key::within_limits(keys);
        let mut section = Self { skipped: keys.len() - used.len(), ..Self::default() };
        for key in used {
            match public_key::canonical(key) {
                Ok(key) => section.add(options, &key, tenant.name()),
                Err(_) => section.skipped += 1,
            }
        }
        section.lines.shrink_to_fit();
        Some(section)
    }

    fn add(&mut self, options: &str, key: &str, tenant: &str) {
        self.keys += 1;
        let separator = if options.is_empty() { "" } else { " " };
        self.lines.extend([options, separator, key, " ", tenant, "\n"]);
    }
}
