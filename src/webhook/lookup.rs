//! The view of the rules: the shared stores, and objects that are not in the stores yet.
//!
//! Watches may be a moment late: a Template that the user created just before an Instance may not be in
//! the store. So if a rule refuses a request and did not find an object, the object is read from the API
//! server, and the rule is evaluated again. An ordinary review needs no request to the API server.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::decision::Decision;
use super::view::View;
use crate::api::instance::InstanceKind;
use crate::api::names::{check_dns_label, check_object_name};
use crate::api::quota::Objects;
use crate::api::template::TemplateKind;
use crate::api::tenancy::tenant_of;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;
use crate::api::{Instance, Kind, Object, Template, Tenant, Workspace};
use crate::kinds::NamespaceKind;
use crate::runtime::ObjectKey;
use crate::runtime::error::with_sources;
use crate::runtime::store::{ByNamespace, Store};
use crate::runtime::watch;

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
}

/// An object that was not in its store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    Tenant(String),
    Workspace(String),
    Template(ObjectKey),
}

/// The missing objects that the API server has.
#[derive(Default)]
struct Fetched {
    tenants: HashMap<String, Arc<Tenant>>,
    workspaces: HashMap<String, Arc<Workspace>>,
    templates: HashMap<ObjectKey, Arc<Template>>,
}

/// How long the look-ups for one decision may take together: the API server waits for it.
const DEADLINE: Duration = Duration::from_secs(2);

/// Evaluates rules over the stores, and reads from the API server what is missing there.
pub struct Lookup {
    stores: Stores,
    client: Client,
}

impl Lookup {
    /// Finds objects in `stores`, and by `client` if they are not there.
    pub fn new(stores: Stores, client: Client) -> Self {
        Self { stores, client }
    }

    /// The decision of a rule. The rule is evaluated a second time if it refuses the request while an object
    /// is missing in the stores that the API server has.
    pub async fn decide(&self, rule: impl Fn(&dyn View) -> Decision) -> Decision {
        let (decision, missing) = self.evaluate(&Fetched::default(), &rule);
        if decision.is_allowed() || missing.is_empty() {
            return decision;
        }
        let fetched = self.fetch(missing).await;
        if fetched.is_empty() { decision } else { self.evaluate(&fetched, &rule).0 }
    }

    fn evaluate(
        &self,
        fetched: &Fetched,
        rule: impl Fn(&dyn View) -> Decision,
    ) -> (Decision, BTreeSet<Missing>) {
        let view = StoreView { stores: &self.stores, fetched, missing: RefCell::default() };
        let decision = rule(&view);
        (decision, view.missing.into_inner())
    }

    async fn fetch(&self, missing: BTreeSet<Missing>) -> Fetched {
        let mut fetched = Fetched::default();
        let end = Instant::now() + DEADLINE;
        for each in missing {
            match each {
                Missing::Tenant(name) => {
                    let found = self.get(&ObjectKey::new("", &name), end).await;
                    fetched.tenants.extend(found.map(|found| (name, found)));
                }
                Missing::Workspace(name) => {
                    let found = self.get(&ObjectKey::new("", &name), end).await;
                    fetched.workspaces.extend(found.map(|found| (name, found)));
                }
                Missing::Template(key) => {
                    let found = self.get(&key, end).await;
                    fetched.templates.extend(found.map(|found| (key, found)));
                }
            }
        }
        fetched
    }

    async fn get<T: Kind>(&self, key: &ObjectKey, end: Instant) -> Option<Arc<Object<T>>> {
        // A user has written the reference: nothing can have a name that is not valid.
        let is_valid = check_object_name(&key.name).is_ok()
            && (!T::NAMESPACED || check_dns_label(&key.namespace).is_ok());
        if !is_valid {
            return None;
        }
        let looked_up = watch::get(self.client.clone(), &key.namespace, &key.name);
        let failed = match timeout_at(end, looked_up).await {
            Ok(Ok(found)) => return found.map(Arc::new),
            Ok(Err(error)) => with_sources(&error),
            Err(_) => "the API server did not answer in time".to_owned(),
        };
        warn!(kind = T::KIND, object = %key, error = failed, "an object cannot be looked up");
        None
    }
}

impl Fetched {
    fn is_empty(&self) -> bool {
        self.tenants.is_empty() && self.workspaces.is_empty() && self.templates.is_empty()
    }
}

/// The stores and the fetched objects, for one evaluation of a rule. Records which objects are missing.
struct StoreView<'a> {
    stores: &'a Stores,
    fetched: &'a Fetched,
    missing: RefCell<BTreeSet<Missing>>,
}

impl StoreView<'_> {
    fn recorded<T>(&self, found: Option<T>, missing: impl FnOnce() -> Missing) -> Option<T> {
        if found.is_none() {
            self.missing.borrow_mut().insert(missing());
        }
        found
    }
}

impl Objects for StoreView<'_> {
    fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        let found = self.stores.tenants.get("", name).or_else(|| self.fetched.tenants.get(name).cloned());
        self.recorded(found, || Missing::Tenant(name.to_owned()))
    }

    fn workspace(&self, name: &str) -> Option<Arc<Workspace>> {
        let found =
            self.stores.workspaces.get("", name).or_else(|| self.fetched.workspaces.get(name).cloned());
        self.recorded(found, || Missing::Workspace(name.to_owned()))
    }

    fn template(&self, namespace: &str, name: &str) -> Option<Arc<Template>> {
        let key = ObjectKey::new(namespace, name);
        let found = self.stores.templates.get(namespace, name);
        let found = found.or_else(|| self.fetched.templates.get(&key).cloned());
        self.recorded(found, || Missing::Template(key))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::silent::SilentServer;
    use crate::webhook::decision::Denial;

    /// Look-ups at a server, with stores that are empty.
    fn lookup(server: &SilentServer) -> Lookup {
        let stores = Stores {
            tenants: Arc::new(Store::new(true)),
            workspaces: Arc::new(Store::new(true)),
            templates: Arc::new(Store::new(true)),
            instances: Arc::new(Store::new(true)),
            namespaces: Arc::new(Store::new(true)),
        };
        Lookup::new(stores, Client::try_from(server.config()).expect("a client"))
    }

    /// A rule that needs a Tenant, a Workspace and a Template of these names.
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
    async fn what_can_be_no_name_is_not_looked_up() {
        let server = SilentServer::start();
        let lookup = lookup(&server);
        let begin = Instant::now();
        for name in ["", "my vm", "..", "../x", "a/b", "x?y", "x#y", "x%2Fy", "UPPER"] {
            assert!(!lookup.decide(needs("workspace-tea", name)).await.is_allowed(), "{name}");
        }
        // Only a Template is in a namespace.
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
