//! The environments by the label of their host, and the users that may enter them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;

use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels::SHARED_WITH;
use crate::api::names::CanonicalName;
use crate::api::sharing::{Access, peers};
use crate::api::template::{Template, TemplateKind};
use crate::api::tenant::{Tenant, TenantKind};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::controllers::shared::machine_host::{HostKey, peer_label};
use crate::controllers::shared::machine_login::Pass;
use crate::controllers::shared::machine_path::{GUI_PORT, base_path, target_at_own_host};
use crate::controllers::shared::peers::peer;
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
    /// The hosts of peers, which need no key.
    peers: HashMap<String, PeerHost>,
}

/// The host of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerHost {
    /// The Instance.
    pub instance: ObjectKey,
    /// The name of the environment.
    pub environment: String,
    /// The only user who may enter.
    pub user: String,
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
        self.peers.extend(peer_hosts(instance));
    }

    fn remove(&mut self, instance: &Instance) {
        for label in self.labels(instance) {
            self.instances.remove(&label);
        }
        for (label, _) in peer_hosts(instance) {
            self.peers.remove(&label);
        }
    }
}

/// The hosts of the peers of an Instance, by their labels. The annotation of the owner decides at each request whether they
/// may enter.
fn peer_hosts(instance: &Instance) -> Vec<(String, PeerHost)> {
    let environments = instance.status.environments.iter().take(MOST_ENVIRONMENTS);
    let of_environment = |(peer, environment): (String, &str)| {
        let label = peer_label(instance.uid(), environment, &peer);
        let environment = environment.to_owned();
        (label, PeerHost { instance: ObjectKey::of(instance), environment, user: peer })
    };
    let users: Vec<String> = peers(instance).into_iter().map(|peer| peer.user).collect();
    let pairs = environments
        .flat_map(|environment| users.iter().map(move |user| (user.clone(), environment.name.as_str())));
    pairs.map(of_environment).collect()
}

/// The web interface of an environment.
pub struct Gui {
    /// Its host.
    pub host: PeerHost,
    /// The address of its Service.
    pub address: SocketAddr,
    instance: Arc<Instance>,
    template: Arc<Template>,
    classic: bool,
}

impl Gui {
    /// Returns the path of its page.
    pub fn page(&self) -> Option<String> {
        let environment = self.template.spec.environment(&self.host.environment)?;
        Some(base_path(self.instance.uid(), environment, self.classic) + "/")
    }

    /// Returns the path and query that it gets for those that a browser requests; `None` outside of its path.
    pub fn target(&self, requested: &str) -> Option<String> {
        let environment = self.template.spec.environment(&self.host.environment)?;
        target_at_own_host(self.instance.uid(), environment, self.classic, requested)
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
                let shared = instance.annotation(SHARED_WITH).map(str::to_owned);
                (instance.uid().to_owned(), names.collect::<Vec<_>>(), shared)
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
        *hosts = Hosts { key: Some(key), ..Hosts::default() };
        self.instances.objects().for_each(|instance| hosts.add(&instance));
    }

    /// Whether a machine has the host with this label.
    pub fn is_known(&self, label: &str) -> bool {
        self.hosts.read().instances.contains_key(label)
    }

    /// Returns whether a login may enter the machine at the host with this label.
    pub fn entry(&self, pass: &Pass, label: &str) -> Entry {
        if let Err(refused) = self.tenant(pass) {
            return refused;
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

    /// Whether a peer has the host with this label.
    pub fn is_of_peer(&self, label: &str) -> bool {
        self.hosts.read().peers.contains_key(label)
    }

    /// Returns whether a login may enter the machine at the host of a peer: only that peer, while the owner lets them control
    /// the machine. A web interface cannot be limited to looking on.
    pub fn entry_of_peer(&self, pass: &Pass, label: &str, now: Timestamp) -> Entry {
        let tenant = match self.tenant(pass) {
            Ok(tenant) => tenant,
            Err(refused) => return refused,
        };
        let host = self.host_of_peer(label).filter(|host| host.user == pass.user);
        let found = host.and_then(|host| self.found(&host));
        let access = found.and_then(|(instance, template)| peer(&instance, &template, &tenant, now));
        if access.is_some_and(|peer| peer.access == Access::Control) { Entry::Allowed } else { Entry::Denied }
    }

    /// Returns the web interface at the host of a peer; `None` if it has no address.
    pub fn gui(&self, label: &str, addresses: &InstanceAddresses) -> Option<Gui> {
        let host = self.host_of_peer(label)?;
        let (instance, template) = self.found(&host)?;
        let services = addresses.addresses_of(instance.namespace(), instance.uid());
        let (address, classic) = address(&instance, &host.environment, &services)?;
        Some(Gui { host, address: SocketAddr::new(address, GUI_PORT), instance, template, classic })
    }

    fn host_of_peer(&self, label: &str) -> Option<PeerHost> {
        self.hosts.read().peers.get(label).cloned()
    }

    /// The Instance of a host and its Template.
    fn found(&self, host: &PeerHost) -> Option<(Arc<Instance>, Arc<Template>)> {
        let instance = self.instances.get(&host.instance.namespace, &host.instance.name)?;
        let template = template_of(&instance, &self.templates)?;
        Some((instance, template))
    }

    /// The Tenant of a login, or why the login is refused. A user whose name Kubernetes reserves, such as `system:admin`, has
    /// no Tenant.
    fn tenant(&self, pass: &Pass) -> Result<Arc<Tenant>, Entry> {
        let tenant = self.tenants.get("", &pass.user).filter(|tenant| !tenant.is_terminating());
        let tenant = tenant.ok_or(Entry::Denied)?;
        let is_ended = tenant.annotation(&ended_session::annotation(&pass.session)).is_some();
        if is_ended { Err(Entry::Ended) } else { Ok(tenant) }
    }
}

/// The address of an environment, and whether its Service is named after the Instance alone. `services` has the Services of
/// the Instance by name.
fn address(instance: &Instance, environment: &str, services: &[(String, IpAddr)]) -> Option<(IpAddr, bool)> {
    let canonical = CanonicalName::of(instance.name());
    let find = |name: &str| services.iter().find(|(service, _)| service == name).map(|(_, address)| *address);
    let own = find(&canonical.environment(environment)).map(|address| (address, false));
    own.or_else(|| find(&canonical).map(|address| (address, true)))
}
