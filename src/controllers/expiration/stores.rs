//! The stores of the expiration loop, and which changes add which Instances to the queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::observe::Observed;
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::controllers::shared::references::{ByTemplate, ByTenant, is_exempt, template_key};
use crate::kinds::NamespaceKind;
use crate::runtime::ObjectKey;
use crate::runtime::store::{ByNamespace, Change, Store};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The stores.
pub struct Stores {
    selector: BTreeMap<String, String>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    tenants: Arc<Store<TenantKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
}

impl Stores {
    /// Declares the stores. Only Instances in namespaces with the labels of `selector` are looked at.
    pub fn declare(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>) -> Self {
        let all = Selection::All;
        let instances = set.store::<InstanceKind>(&all).written().listed(|_| true);
        // Only what its own end depends on: the status changes often, and by this loop's own writes.
        let instances = instances.on_foreign_change(|change, queue| {
            if let Some(instance) = change.object().filter(|_| change.old.is_none() || change.new.is_none()) {
                queue.add(ObjectKey::of(&**instance), crate::runtime::queue::Priority::Background);
            }
        });
        let instances = &instances.index::<ByTemplate>().index::<ByTenant>().index::<ByNamespace>().get();
        let ours = selector.clone();
        Self {
            selector: selector.clone(),
            templates: set
                .store(&all)
                .wakes_by::<ByTemplate, _, _>(instances, |change: &Change<TemplateKind>| {
                    let age = |template: &Option<Arc<crate::api::Template>>| {
                        template.as_ref().map(|template| template.spec.max_age().to_owned())
                    };
                    let template = change.object().filter(|_| age(&change.old) != age(&change.new));
                    template.map(|template| ObjectKey::of(&**template))
                })
                .get(),
            tenants: set
                .store(&all)
                .wakes_by::<ByTenant, _, _>(instances, |change: &Change<TenantKind>| {
                    let tenant = change.object().filter(|_| change.old.is_none());
                    tenant.map(|tenant| tenant.metadata.name.clone())
                })
                .get(),
            namespaces: set
                .store(&all)
                .wakes_by::<ByNamespace, _, _>(instances, move |change: &Change<NamespaceKind>| {
                    let side = |namespace: &Option<Arc<crate::kinds::Namespace>>| {
                        namespace.as_ref().map(|namespace| {
                            let is_exempt = is_exempt(namespace, labels::EXPIRATION_IGNORE);
                            (namespace.has_labels(&ours), is_exempt)
                        })
                    };
                    let namespace = change.object().filter(|_| side(&change.old) != side(&change.new));
                    namespace.map(|namespace| namespace.metadata.name.clone())
                })
                .get(),
            instances: Arc::clone(instances),
        }
    }

    /// What the stores have about an Instance; `None` if it does not exist or its namespace is not ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace)?;
        let reference = template_key(&instance);
        namespace.has_labels(&self.selector).then(|| Observed {
            template: self.templates.get(&reference.namespace, &reference.name),
            tenant: self.tenants.get("", &instance.spec.tenant_ref.name),
            is_exempt: is_exempt(&namespace, labels::EXPIRATION_IGNORE),
            instance,
        })
    }
}
