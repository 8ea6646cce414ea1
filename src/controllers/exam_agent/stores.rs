//! The stores that answer clients outside the allow-list. These clients are many and anonymous, so they must not cause
//! requests to the API server.

use std::sync::Arc;

use crate::api::instance::InstanceKind;
use crate::api::template::TemplateKind;
use crate::api::{Instance, Template};
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The Instances and Templates of one namespace, from their watches.
pub struct Stores {
    namespace: String,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
}

impl Stores {
    /// Declares the stores. A Role in the namespace grants enough rights for them.
    pub fn declare(set: &mut StoreSet<'_>, namespace: &str) -> Self {
        let all = Selection::ALL.within(namespace);
        let (instances, templates) = (set.store(&all).get(), set.store(&all).get());
        Self { namespace: namespace.to_owned(), instances, templates }
    }

    /// The Templates, sorted by name.
    pub fn templates(&self) -> Vec<Arc<Template>> {
        let mut keys = self.templates.keys();
        keys.sort();
        keys.iter().filter_map(|key| self.templates.get(&key.namespace, &key.name)).collect()
    }

    /// Returns an Instance, or `None` if it does not exist.
    pub fn instance(&self, name: &str) -> Option<Arc<Instance>> {
        self.instances.get(&self.namespace, name)
    }
}
