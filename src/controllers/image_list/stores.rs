//! The store of the image list loop, and the lists that its changes add to the queue.

use std::sync::Arc;

use super::registries::key;
use crate::api::image_list::{ImageList, ImageListKind, ImageListSpec};
use crate::config::RegistryConfig;
use crate::runtime::ObjectKey;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The store of the image list loop.
pub struct Stores {
    lists: Arc<Store<ImageListKind>>,
}

impl Stores {
    /// Declares the store. The lists of the registries are reconciled, whether they exist or not.
    pub fn declare(set: &mut StoreSet<'_>, registries: &[RegistryConfig]) -> Self {
        let keys = registries.iter().map(key).collect();
        Self { lists: set.store(&Selection::ALL).requests("create patch").named(keys).get() }
    }

    /// Returns a list; without a uid if it does not exist.
    pub fn show(&self, key: &ObjectKey) -> Arc<ImageList> {
        let absent = || Arc::new(ImageList::new(None, &key.name, ImageListSpec::default()));
        self.lists.get(&key.namespace, &key.name).unwrap_or_else(absent)
    }
}
