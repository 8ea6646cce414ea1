//! Which endpoints of a provider fail.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::error::{Error, Result};

/// A part of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The description that the provider publishes.
    Description,
    /// The keys that it signs tokens with.
    Keys,
    /// The endpoints that receive the credentials of the client.
    Tokens,
}

/// The last errors of the parts that fail. A part that works does not end the outage of another one.
#[derive(Debug, Default)]
pub struct Health(Mutex<BTreeMap<Part, Error>>);

impl Health {
    /// Records the result of a request to a part. Returns the first error of the provider; `Ok` if no part
    /// fails.
    pub fn record<T>(&self, part: Part, result: &Result<T>) -> Result<()> {
        let mut errors = self.0.lock();
        match result {
            Ok(_) => drop(errors.remove(&part)),
            Err(error) => drop(errors.insert(part, error.clone())),
        }
        errors.values().next().cloned().map_or(Ok(()), Err)
    }
}
