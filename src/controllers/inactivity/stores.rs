//! The stores of the inactivity loop, and which changes add which Instances to the queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::observe::{Observed, Seen};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::lifetime::Lifetime;
use crate::api::names::CanonicalName;
use crate::api::template::{Template, TemplateKind};
use crate::api::tenant::TenantKind;
use crate::clients::prometheus::{Activity, Target};
use crate::controllers::shared::references::{ByTemplate, ByTenant, is_exempt, template_key};
use crate::kinds::{Namespace, NamespaceKind};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
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

/// What a Template says that this loop depends on.
fn terms(template: Option<&Arc<Template>>) -> Option<(String, String, Option<String>)> {
    let template = template?;
    let number = template.annotation(labels::CUSTOM_NUMBER_ALERTS).map(str::to_owned);
    Some((template.spec.max_idle().to_owned(), template.spec.max_off().to_owned(), number))
}

/// What an Instance says that this loop depends on, besides its own status.
fn state(instance: Option<&Arc<Instance>>) -> Option<(Option<i64>, Option<String>)> {
    let instance = instance?;
    Some((instance.metadata.generation, instance.annotation(labels::LAST_POWERED_OFF).map(str::to_owned)))
}

impl Stores {
    /// Declares the stores. Only Instances in namespaces with the labels of `selector` are looked at.
    pub fn declare(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>) -> Self {
        let all = Selection::All;
        let instances = set.store::<InstanceKind>(&all).written().listed(|_| true);
        // The statuses of other loops, which change often, do not matter here.
        let instances = instances.on_foreign_change(|change, queue| {
            if let Some(instance) =
                change.object().filter(|_| state(change.old.as_ref()) != state(change.new.as_ref()))
            {
                queue.add(ObjectKey::of(&**instance), Priority::Background);
            }
        });
        let instances = &instances.index::<ByTemplate>().index::<ByTenant>().index::<ByNamespace>().get();
        let ours = selector.clone();
        let side = move |namespace: &Option<Arc<Namespace>>| {
            let namespace = namespace.as_ref()?;
            Some((namespace.has_labels(&ours), is_exempt(namespace, labels::INACTIVITY_IGNORE)))
        };
        Self {
            selector: selector.clone(),
            templates: set
                .store(&all)
                .wakes_by::<ByTemplate, _, _>(instances, |change: &Change<TemplateKind>| {
                    let template =
                        change.object().filter(|_| terms(change.old.as_ref()) != terms(change.new.as_ref()));
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
                    let namespace = change.object().filter(|_| side(&change.old) != side(&change.new));
                    namespace.map(|namespace| namespace.metadata.name.clone())
                })
                .get(),
            instances: Arc::clone(instances),
        }
    }

    /// What the stores have about an Instance, and the latest round of queries; `None` if it does not exist or its
    /// namespace is not ours.
    pub fn observe(&self, key: &ObjectKey, round: Option<&Activity>) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace)?;
        let reference = template_key(&instance);
        namespace.has_labels(&self.selector).then(|| Observed {
            template: self.templates.get(&reference.namespace, &reference.name),
            tenant: self.tenants.get("", &instance.spec.tenant_ref.name),
            is_exempt: is_exempt(&namespace, labels::INACTIVITY_IGNORE),
            seen: round.map(|round| seen(&instance, round)),
            instance,
        })
    }

    /// The longest time without use that any Template allows: so far a round looks back.
    pub fn longest_idle(&self) -> Duration {
        let templates = self.templates.keys().into_iter();
        let idle = templates.filter_map(|key| {
            let template = self.templates.get(&key.namespace, &key.name)?;
            match Lifetime::parse(template.spec.max_idle()) {
                Ok(Lifetime::After(idle)) => Some(idle),
                _ => None,
            }
        });
        idle.max().unwrap_or_default()
    }
}

/// What a round says about an Instance: the latest use of any of its environments.
fn seen(instance: &Instance, round: &Activity) -> Seen {
    let status = &instance.status;
    let names: Vec<String> = status.environments.iter().map(|environment| environment.name.clone()).collect();
    let addresses = status.environments.iter().map(|environment| environment.ip.as_str());
    let addresses = addresses.chain([status.ip.as_str()]);
    let canonical = CanonicalName::of(instance.name());
    let uses = addresses.filter_map(|address| {
        round.last_use(&Target {
            namespace: instance.namespace(),
            instance: &canonical,
            environments: &names,
            address,
        })
    });
    Seen {
        since: round.observed_since(),
        until: round.until,
        problems: round.problems(),
        last_use: uses.max_by_key(|(time, _)| *time),
    }
}
