//! What the rules see of the cluster: the shared stores, and what these do not have yet.
//!
//! The watch may be a moment behind: a Template that was made with the request before this one is
//! not in the store. So a refusal that rests on something that is missing is not final: what was
//! missing is asked of the API server, and the rule again. An ordinary request asks nothing.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kube::{Api, Client};
use tracing::warn;

use super::decision::Decision;
use super::view::View;
use crate::api::instance::InstanceKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;
use crate::api::{Instance, Kind, Object, Template, Tenant, Workspace};
use crate::runtime::ObjectKey;
use crate::runtime::error::with_sources;
use crate::runtime::store::{ByNamespace, Store};
use crate::runtime::watch::Watched;

/// The stores that the rules look into.
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
}

/// An object that was not in its store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    Tenant(String),
    Workspace(String),
    Template(ObjectKey),
}

/// What was asked of the API server.
#[derive(Default)]
struct Fetched {
    tenants: HashMap<String, Arc<Tenant>>,
    workspaces: HashMap<String, Arc<Workspace>>,
    templates: HashMap<ObjectKey, Arc<Template>>,
}

/// Looks things up for the rules.
pub struct Lookup {
    stores: Stores,
    client: Client,
}

impl Lookup {
    /// Looks into `stores`, and asks what is not there by `client`.
    pub fn new(stores: Stores, client: Client) -> Self {
        Self { stores, client }
    }

    /// The decision of a rule, which is asked again if it refused for want of something that is
    /// there after all.
    pub async fn decide(&self, rule: impl Fn(&dyn View) -> Decision) -> Decision {
        let (decision, missing) = self.look(&Fetched::default(), &rule);
        if decision.is_allowed() || missing.is_empty() {
            return decision;
        }
        let fetched = self.fetch(missing).await;
        if fetched.is_empty() { decision } else { self.look(&fetched, &rule).0 }
    }

    fn look(&self, fetched: &Fetched, rule: impl Fn(&dyn View) -> Decision) -> (Decision, BTreeSet<Missing>) {
        let view = Seen { stores: &self.stores, fetched, missing: RefCell::default() };
        let decision = rule(&view);
        (decision, view.missing.into_inner())
    }

    async fn fetch(&self, missing: BTreeSet<Missing>) -> Fetched {
        let mut fetched = Fetched::default();
        for each in missing {
            match each {
                Missing::Tenant(name) => {
                    let found = self.get(&ObjectKey::new("", &name)).await;
                    fetched.tenants.extend(found.map(|found| (name, found)));
                }
                Missing::Workspace(name) => {
                    let found = self.get(&ObjectKey::new("", &name)).await;
                    fetched.workspaces.extend(found.map(|found| (name, found)));
                }
                Missing::Template(key) => {
                    let found = self.get(&key).await;
                    fetched.templates.extend(found.map(|found| (key, found)));
                }
            }
        }
        fetched
    }

    async fn get<T: Kind>(&self, key: &ObjectKey) -> Option<Arc<Object<T>>> {
        // Names that users write may be none at all.
        if key.name.is_empty() || (T::NAMESPACED && key.namespace.is_empty()) {
            return None;
        }
        let api: Api<Watched<T>> = if T::NAMESPACED {
            Api::namespaced_with(self.client.clone(), &key.namespace, &())
        } else {
            Api::all(self.client.clone())
        };
        match api.get_opt(&key.name).await {
            Ok(found) => found.map(|found| Arc::new(found.object)),
            Err(error) => {
                let error = with_sources(&error);
                warn!(kind = T::KIND, object = %key, error, "an object cannot be looked up");
                None
            }
        }
    }
}

impl Fetched {
    fn is_empty(&self) -> bool {
        self.tenants.is_empty() && self.workspaces.is_empty() && self.templates.is_empty()
    }
}

/// The stores with what was fetched, for one run of a rule.
struct Seen<'a> {
    stores: &'a Stores,
    fetched: &'a Fetched,
    missing: RefCell<BTreeSet<Missing>>,
}

impl Seen<'_> {
    fn note<T>(&self, found: Option<T>, missing: impl FnOnce() -> Missing) -> Option<T> {
        if found.is_none() {
            self.missing.borrow_mut().insert(missing());
        }
        found
    }
}

impl View for Seen<'_> {
    fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        let found = self.stores.tenants.get("", name).or_else(|| self.fetched.tenants.get(name).cloned());
        self.note(found, || Missing::Tenant(name.to_owned()))
    }

    fn workspace(&self, name: &str) -> Option<Arc<Workspace>> {
        let found =
            self.stores.workspaces.get("", name).or_else(|| self.fetched.workspaces.get(name).cloned());
        self.note(found, || Missing::Workspace(name.to_owned()))
    }

    fn template(&self, namespace: &str, name: &str) -> Option<Arc<Template>> {
        let key = ObjectKey::new(namespace, name);
        let found = self.stores.templates.get(namespace, name);
        let found = found.or_else(|| self.fetched.templates.get(&key).cloned());
        self.note(found, || Missing::Template(key))
    }

    fn instances(&self, namespace: &str) -> Vec<Arc<Instance>> {
        self.stores.instances.by::<ByNamespace>(namespace)
    }
}
