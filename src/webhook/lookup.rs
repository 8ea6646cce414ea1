//! The view of the rules: the shared stores, and objects that are not in the stores yet.
//!
//! Watches may lag behind: a Template that the user created just before an Instance may not be in the store. If a rule
//! refuses a request and an object was missing, the object is read from the API server and the rule is evaluated again.
//! An ordinary review needs no request to the API server.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::decision::Decision;
use super::view::View;
use crate::api::exposed_ports::{PublicPort, public_ports};
use crate::api::instance::InstanceKind;
use crate::api::names::{check_dns_label, check_object_name};
use crate::api::quota::Objects;
use crate::api::requirements::{Surroundings, VolumeState, obstacles};
use crate::api::template::TemplateKind;
use crate::api::tenancy::tenant_of;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;
use crate::api::{GenericRef, Instance, Kind, Object, Template, Tenant, Workspace};
use crate::config::pool::{self, Pool};
use crate::kinds::NamespaceKind;
use crate::runtime::cluster::ClusterStores;
use crate::runtime::error::with_sources;
use crate::runtime::store::{ByNamespace, Store};
use crate::runtime::{ObjectKey, watch};

/// The stores that the rules read.
#[derive(Clone)]
pub struct Stores {
    /// All Tenants.
    pub tenants: Arc<Store<TenantKind>>,
    /// All Workspaces.
    pub workspaces: Arc<Store<WorkspaceKind>>,
    /// All Templates.
    pub templates: Arc<Store<TemplateKind>>,
    /// All Instances.
    pub instances: Arc<Store<InstanceKind>>,
    /// All namespaces.
    pub namespaces: Arc<Store<NamespaceKind>>,
    /// The parts of the cluster that environments need.
    pub cluster: Arc<ClusterStores>,
}

/// The time limit for all look-ups of one decision, because the API server waits for the decision.
const DEADLINE: Duration = Duration::from_secs(2);

/// Evaluates rules with the stores, and reads missing objects from the API server.
pub struct Lookup {
    /// The stores.
    pub stores: Stores,
    /// Reads the objects that are missing in the stores.
    pub client: Client,
    /// The addresses that public ports can have; empty if none is configured.
    pub pool: Pool,
}

impl Lookup {
    /// Returns the decision of a rule. If the rule refuses the request while an object is missing in the stores, and
    /// the API server returns the object, the rule is evaluated a second time.
    pub async fn decide(&self, rule: impl Fn(&dyn View) -> Decision) -> Decision {
        let Stores { tenants, workspaces, templates, .. } = &self.stores;
        let (tenants, workspaces, templates) = (Seen::of(tenants), Seen::of(workspaces), Seen::of(templates));
        let mut view = StoreView { stores: &self.stores, pool: &self.pool, tenants, workspaces, templates };
        let decision = rule(&view);
        if decision.is_allowed() {
            return decision;
        }
        let (client, end) = (&self.client, Instant::now() + DEADLINE);
        let tenants = view.tenants.fetch(client, end).await;
        let workspaces = view.workspaces.fetch(client, end).await;
        let templates = view.templates.fetch(client, end).await;
        if tenants || workspaces || templates { rule(&view) } else { decision }
    }
}

/// The objects of one kind that a rule sees: those of the store, and those that the API server has returned.
struct Seen<'a, T: Kind> {
    store: &'a Store<T>,
    fetched: HashMap<ObjectKey, Arc<Object<T>>>,
    /// The objects that a rule has not found.
    missing: RefCell<BTreeSet<ObjectKey>>,
}

impl<'a, T: Kind> Seen<'a, T> {
    fn of(store: &'a Store<T>) -> Self {
        Self { store, fetched: HashMap::new(), missing: RefCell::default() }
    }

    fn get(&self, namespace: &str, name: &str) -> Option<Arc<Object<T>>> {
        self.store.get(namespace, name).or_else(|| {
            let key = ObjectKey::new(namespace, name);
            let fetched = self.fetched.get(&key).cloned();
            if fetched.is_none() {
                self.missing.borrow_mut().insert(key);
            }
            fetched
        })
    }

    /// Reads the missing objects from the API server. Returns whether it has returned one.
    async fn fetch(&mut self, client: &Client, end: Instant) -> bool {
        for key in self.missing.take() {
            let found = look_up(client, &key, end).await;
            self.fetched.extend(found.map(|found| (key, found)));
        }
        !self.fetched.is_empty()
    }
}

/// Reads an object from the API server; `None` if it does not exist, or the API server does not return it in time.
async fn look_up<T: Kind>(client: &Client, key: &ObjectKey, end: Instant) -> Option<Arc<Object<T>>> {
    // A user has written the reference: an object with an invalid name cannot exist.
    let is_valid =
        check_object_name(&key.name).is_ok() && (!T::NAMESPACED || check_dns_label(&key.namespace).is_ok());
    if !is_valid {
        return None;
    }
    let looked_up = watch::get(client.clone(), &key.namespace, &key.name);
    let failed = match timeout_at(end, looked_up).await {
        Ok(Ok(found)) => return found.map(Arc::new),
        Ok(Err(error)) => with_sources(&error),
        Err(_) => "the API server did not answer in time".to_owned(),
    };
    warn!(kind = T::KIND, object = %key, error = failed, "an object cannot be looked up");
    None
}

/// The view of one decision.
struct StoreView<'a> {
    stores: &'a Stores,
    pool: &'a Pool,
    tenants: Seen<'a, TenantKind>,
    workspaces: Seen<'a, WorkspaceKind>,
    templates: Seen<'a, TemplateKind>,
}

impl Objects for StoreView<'_> {
    fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        self.tenants.get("", name)
    }

    fn workspace(&self, name: &str) -> Option<Arc<Workspace>> {
        self.workspaces.get("", name)
    }

    fn template(&self, namespace: &str, name: &str) -> Option<Arc<Template>> {
        self.templates.get(namespace, name)
    }
}

impl View for StoreView<'_> {
    fn tenant_of_namespace(&self, namespace: &str) -> Option<String> {
        let namespace = self.stores.namespaces.get("", namespace)?;
        tenant_of(&namespace).map(str::to_owned)
    }

    fn instances(&self, namespace: &str) -> Vec<Arc<Instance>> {
        self.stores.instances.by::<ByNamespace>(namespace)
    }

    fn taken_public_ports(&self, instance: &ObjectKey) -> BTreeSet<PublicPort> {
        let mut held: BTreeMap<PublicPort, BTreeSet<IpAddr>> = BTreeMap::new();
        for other in self.stores.instances.objects().filter(|other| ObjectKey::of(&**other) != *instance) {
            let Some((address, ports)) = public_ports(&other) else { continue };
            if let Some(address) = pool::parse(address).filter(|address| self.pool.contains(*address)) {
                for port in ports {
                    held.entry(port).or_default().insert(address);
                }
            }
        }
        let is_everywhere = |addresses: &BTreeSet<IpAddr>| addresses.len() as u128 == self.pool.len();
        held.into_iter().filter(|(_, addresses)| is_everywhere(addresses)).map(|(port, _)| port).collect()
    }

    fn obstacles(&self, template: &Template) -> Vec<String> {
        let cluster = &self.stores.cluster;
        let (has, is_there) = (cluster.get(), |_: &GenericRef| VolumeState::Exported);
        let around = Surroundings::of_template(&has, &is_there, cluster.has_import_secret(None));
        let environments = template.spec.environment_list.iter();
        let found = environments.flat_map(|environment| obstacles(&template.spec, environment, &around));
        found.map(|obstacle| obstacle.message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::requirements::Settings as Requirements;
    use crate::runtime::silent::SilentServer;
    use crate::runtime::store::StoreFactory;
    use crate::webhook::decision::Denial;

    /// A look-up with a server and empty stores.
    fn lookup(server: &SilentServer) -> Lookup {
        let stores = Stores {
            tenants: Arc::new(Store::new(true)),
            workspaces: Arc::new(Store::new(true)),
            templates: Arc::new(Store::new(true)),
            instances: Arc::new(Store::new(true)),
            namespaces: Arc::new(Store::new(true)),
            cluster: Arc::new(
                super::super::setup::cluster(&mut StoreFactory::default(), Requirements::default()).0,
            ),
        };
        let client = Client::try_from(server.config()).expect("a client");
        Lookup { stores, client, pool: Pool::default() }
    }

    /// A rule that requires a Tenant, a Workspace and a Template of these names.
    fn needs<'a>(namespace: &'a str, name: &'a str) -> impl Fn(&dyn View) -> Decision + 'a {
        move |view| {
            let found = (view.tenant(name), view.workspace(name), view.template(namespace, name));
            match found {
                (Some(_), Some(_), Some(_)) => Decision::allowed(),
                _ => Decision::denied(Denial::forbidden("something is missing")),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn look_ups_that_are_never_answered_end_within_two_seconds() {
        let server = SilentServer::start();
        let lookup = lookup(&server);
        let begin = Instant::now();
        let decision = lookup.decide(needs("workspace-tea", "ada")).await;
        assert!(!decision.is_allowed());
        assert_eq!(begin.elapsed().as_secs(), 2, "all three together");
        assert!(server.was_asked());
    }

    #[tokio::test(start_paused = true)]
    async fn invalid_names_are_not_looked_up() {
        let server = SilentServer::start();
        let lookup = lookup(&server);
        let begin = Instant::now();
        for name in ["", "my vm", "..", "../x", "a/b", "x?y", "x#y", "x%2Fy", "UPPER"] {
            assert!(!lookup.decide(needs("workspace-tea", name)).await.is_allowed(), "{name}");
        }
        // Only the Template is namespaced.
        for namespace in ["", "my vm", "..", "../x", "a/b", "x?y", "x#y", "x%2Fy", "a.b", "UPPER"] {
            let rule = |view: &dyn View| match view.template(namespace, "small") {
                Some(_) => Decision::allowed(),
                None => Decision::denied(Denial::forbidden("it is missing")),
            };
            assert!(!lookup.decide(rule).await.is_allowed(), "{namespace}");
        }
        assert_eq!(begin.elapsed(), Duration::ZERO, "nothing is waited for");
        assert!(!server.was_asked());
    }
}
