//! The environments by the label of their host, and the users that may enter them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::api::instance::{Instance, InstanceKind};
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::controllers::shared::machine_host::HostKey;
use crate::controllers::shared::machine_login::Pass;
use crate::controllers::shared::references::template_of;
use crate::controllers::shared::{ended_session, entrance};
use crate::runtime::ObjectKey;
use crate::runtime::store::{Change, Store};

/// The maximum number of environments of an Instance that have a host. Users can write the status of their Instances.
const MOST_ENVIRONMENTS: usize = 64;

/// The relation of a login to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The user may enter the machine.
    Allowed,
    /// The user has logged out at the dashboard.
    Ended,
    /// The user is neither the Tenant of the machine nor a manager of its course, or has no Tenant, or the machine does
    /// not exist.
    Denied,
}

/// The Instances of the hosts.
#[derive(Default)]
struct Hosts {
    /// The key of the labels; `None` until its file exists.
    key: Option<HostKey>,
    instances: HashMap<String, ObjectKey>,
}

impl Hosts {
    /// Returns the labels of the environments of an Instance. Users can write the status, but only labels of the same
    /// Instance follow from it.
    fn labels(&self, instance: &Instance) -> Vec<String> {
        let Some(key) = &self.key else { return Vec::new() };
        let environments = instance.status.environments.iter().take(MOST_ENVIRONMENTS);
        environments.map(|environment| key.label(instance.uid(), &environment.name)).collect()
    }

    fn add(&mut self, instance: &Instance) {
        for label in self.labels(instance) {
            self.instances.insert(label, ObjectKey::of(instance));
        }
    }

    fn remove(&mut self, instance: &Instance) {
        for label in self.labels(instance) {
            self.instances.remove(&label);
        }
    }
}

/// The machines and the users that may enter them.
pub struct Machines {
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    /// All Tenants, by [`entrance::ByManagedWorkspace`] and [`entrance::ByPersonalNamespace`].
    tenants: Arc<Store<TenantKind>>,
    hosts: Arc<RwLock<Hosts>>,
}

impl Machines {
    /// Creates them from these stores, whose changes they follow. There are no hosts before the first
    /// [`Machines::set_key`].
    pub fn new(
        instances: Arc<Store<InstanceKind>>,
        templates: Arc<Store<TemplateKind>>,
        tenants: Arc<Store<TenantKind>>,
    ) -> Self {
        let hosts = Arc::<RwLock<Hosts>>::default();
        let changed = Arc::clone(&hosts);
        instances.subscribe(move |change: &Change<InstanceKind>| {
            let names = |instance: &Instance| {
                let names = instance.status.environments.iter().map(|environment| environment.name.clone());
                (instance.uid().to_owned(), names.collect::<Vec<_>>())
            };
            if change.object_if(names).is_none() {
                return;
            }
            let mut hosts = changed.write();
            change.old.iter().for_each(|instance| hosts.remove(instance));
            change.new.iter().for_each(|instance| hosts.add(instance));
        });
        Self { instances, templates, tenants, hosts }
    }

    /// Sets the key of the labels, and computes the labels of all machines.
    pub fn set_key(&self, key: HostKey) {
        let mut hosts = self.hosts.write();
        *hosts = Hosts { key: Some(key), instances: HashMap::new() };
        self.instances.objects().for_each(|instance| hosts.add(&instance));
    }

    /// Whether a machine has the host with this label.
    pub fn is_known(&self, label: &str) -> bool {
        self.hosts.read().instances.contains_key(label)
    }

    /// Returns whether a login may enter the machine at the host with this label. A user whose name Kubernetes reserves,
    /// such as `system:admin`, has no Tenant.
    pub fn entry(&self, pass: &Pass, label: &str) -> Entry {
        let tenant = self.tenants.get("", &pass.user).filter(|tenant| !tenant.is_terminating());
        let Some(tenant) = tenant else { return Entry::Denied };
        if tenant.annotation(&ended_session::annotation(&pass.session)).is_some() {
            return Entry::Ended;
        }
        let key = self.hosts.read().instances.get(label).cloned();
        let Some(instance) = key.and_then(|key| self.instances.get(&key.namespace, &key.name)) else {
            return Entry::Denied;
        };
        let owners = entrance::owners(&self.tenants, &instance);
        let template = template_of(&instance, &self.templates);
        let managers = template.map(|template| entrance::managers(&self.tenants, &template));
        let managers = managers.unwrap_or_default();
        let users = entrance::users(owners.iter().map(String::as_str), &managers);
        if users.contains(pass.user.as_str()) { Entry::Allowed } else { Entry::Denied }
    }
}
