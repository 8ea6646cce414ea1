//! The stores of the workspace loop, and the Workspaces that their changes add to the queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::children;
use super::managers::PersonalBindings;
use super::observe::Observed;
use crate::api::labels;
use crate::api::tenant::{Role, TenantKind};
use crate::api::workspace::{Workspace, WorkspaceKind};
use crate::config::Managers;
use crate::controllers::shared::former::Census;
use crate::controllers::shared::references::ByWorkspace;
use crate::controllers::shared::responsibility::Responsibility;
use crate::controllers::shared::rivals::follow;
use crate::runtime::ObjectKey;
use crate::runtime::children::{ChildStores, Children};
use crate::runtime::queue::Priority;
use crate::runtime::store::{Change, Store};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The stores of the workspace loop.
pub struct Stores {
    responsibility: Responsibility,
    workspaces: Arc<Store<WorkspaceKind>>,
    tenants: Arc<Store<TenantKind>>,
    children: ChildStores,
    /// The bindings in personal namespaces; `None` if managers have their rights in the whole cluster.
    personal: Option<PersonalBindings>,
}

impl Stores {
    /// Declares the stores. Only the Workspaces of this daemon are reconciled.
    pub fn declare(set: &mut StoreSet<'_>, responsibility: &Responsibility, managers: Managers) -> Self {
        let all = Selection::ALL;
        let workspaces = set.store(&all).requests("patch").objects(|_| true).get();
        follow(set, &workspaces, responsibility);
        let candidates = Arc::clone(&workspaces);
        let (children, namespaces, cluster) = children::declare(set);
        let by_course = managers == Managers::Course;
        Self {
            responsibility: responsibility.clone(),
            tenants: set
                .store(&all)
                // Enrolment changes Tenants.
                .requests("patch")
                .index::<ByWorkspace>()
                .on_foreign_change(move |change, queue| {
                    for name in concerned(change, &candidates) {
                        queue.add(ObjectKey::new("", name), Priority::Change);
                    }
                })
                .get(),
            personal: by_course.then(|| PersonalBindings::declare(set, namespaces, cluster)),
            children,
            workspaces,
        }
    }

    /// Counts the Workspaces that were taken under another selector.
    pub fn census(&self) -> Census {
        let selector = self.responsibility.selector.clone();
        let is_selected = move |workspace: &Workspace| workspace.has_labels(&selector);
        let finalizer = labels::TENANT_FINALIZER;
        Census::new("Workspaces", &self.workspaces, finalizer, &self.responsibility, is_selected)
    }

    /// A message about Workspaces whose managers still have their rights in the whole cluster, although these should end at
    /// their courses.
    pub fn not_by_course(&self) -> Option<String> {
        let selector = &self.responsibility.selector;
        let workspaces = self.workspaces.objects().filter(|workspace| workspace.has_labels(selector));
        let names = workspaces.map(|workspace| workspace.name().to_owned());
        self.personal.as_ref()?.waiting(names, |name| self.tenants.by::<ByWorkspace>(name))
    }

    /// The observation of a Workspace; `None` if it does not exist or this daemon is not responsible for it. A
    /// Workspace with the finalizer is included, whatever its labels are.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let workspace = self.workspaces.get("", &key.name)?;
        let responsibility = &self.responsibility;
        let is_selected = workspace.has_labels(&responsibility.selector);
        let standing = responsibility.standing(&workspace, labels::TENANT_FINALIZER, is_selected)?;
        let mut observed = Observed {
            standing,
            children: Children::default(),
            tenants: self.tenants.by::<ByWorkspace>(&key.name),
            unbound: Vec::new(),
            selector: responsibility.selector.clone(),
            workspace,
        };
        observed.children = self.children.children("", &children::keys(&observed));
        let personal = self.personal.as_ref();
        observed.unbound =
            personal.map(|personal| personal.missing(&key.name, &observed.tenants)).unwrap_or_default();
        Some(observed)
    }
}

/// The Workspaces that a change of a Tenant affects: Workspaces with a new or former candidate, and Workspaces that are
/// being deleted.
fn concerned(change: &Change<TenantKind>, workspaces: &Store<WorkspaceKind>) -> BTreeSet<String> {
    let [old, new] = [&change.old, &change.new]
        .map(|tenant| tenant.as_deref().map(|tenant| tenant.spec.workspaces.as_slice()).unwrap_or_default());
    let changed = new.iter().filter(|entry| !old.contains(entry));
    let left = old.iter().filter(|entry| !new.contains(entry));
    let is_going = |name: &str| workspaces.get("", name).is_some_and(|workspace| workspace.is_terminating());
    let concerned =
        changed.chain(left).filter(|entry| entry.role == Role::Candidate || is_going(&entry.name));
    concerned.map(|entry| entry.name.clone()).collect()
}
