//! The stores of the template loop, and which of their changes add which Templates to the queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::observe::Observed;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenancy::is_tenant_namespace;
use crate::api::text::Text;
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, Object};
use crate::controllers::shared::references::{BySharedVolume, OfWorkspace, shared_volumes};
use crate::kinds::{NamespaceKind, Node, NodeKind, StorageClassKind};
use crate::runtime::ObjectKey;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::selection::Selection;
use crate::runtime::store::{Change, Store, StoreState};
use crate::runtime::store_set::StoreSet;

/// The stores of the template loop.
pub struct Stores {
    selector: BTreeMap<String, String>,
    templates: Arc<Store<TemplateKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    workspaces: Arc<Store<WorkspaceKind>>,
    shared_volumes: Arc<Store<SharedVolumeKind>>,
    nodes: Arc<Store<NodeKind>>,
    storage_classes: Arc<Store<StorageClassKind>>,
}

impl Stores {
    /// Declares the stores. Only Templates in namespaces with the labels of `selector` are reconciled.
    pub fn declare(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>) -> Self {
        let all = Selection::ALL;
        let templates = set.store::<TemplateKind>(&all).objects(|_| true);
        let templates = templates.index::<OfWorkspace>().index::<BySharedVolume>().get();
        let wakes_all = |templates: &Arc<Store<TemplateKind>>| {
            let templates = Arc::clone(templates);
            move |queue: &Queue| {
                for key in templates.keys() {
                    queue.add(key, Priority::Background);
                }
            }
        };
        let (by_nodes, by_classes) = (wakes_all(&templates), wakes_all(&templates));
        Self {
            selector: selector.clone(),
            namespaces: set.store(&all).wakes_objects_within(&templates, selector).get(),
            workspaces: set
                .store::<WorkspaceKind>(&all)
                .wakes_by::<OfWorkspace, _, _>(&templates, |change| {
                    let quota = |workspace: &Option<Arc<Object<WorkspaceKind>>>| {
                        workspace.as_ref().map(|workspace| workspace.spec.quota.clone())
                    };
                    let is_other = quota(&change.old) != quota(&change.new);
                    change.object().filter(|_| is_other).map(|workspace| Text::interned(workspace.name()))
                })
                .get(),
            shared_volumes: set
                .store::<SharedVolumeKind>(&all)
                .wakes_by::<BySharedVolume, _, _>(&templates, |change| {
                    change.object().filter(|_| appears_or_goes(change)).map(|volume| ObjectKey::of(&**volume))
                })
                .get(),
            nodes: set
                .store::<NodeKind>(&all)
                .optional()
                .on_change(move |change, queue| {
                    let room = |node: &Option<Arc<Node>>| {
                        node.as_ref().map(|node| (node.spec.clone(), node.status.allocatable.clone()))
                    };
                    if room(&change.old) != room(&change.new) {
                        by_nodes(queue);
                    }
                })
                .get(),
            storage_classes: set
                .store::<StorageClassKind>(&all)
                .optional()
                .on_change(move |change, queue| {
                    if appears_or_goes(change) {
                        by_classes(queue);
                    }
                })
                .get(),
            templates,
        }
    }

    /// What the stores have about a Template; `None` when it does not exist, or is in a namespace that is not ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let template = self.templates.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace)?;
        if !namespace.has_labels(&self.selector) {
            return None;
        }
        // What users write in their own namespaces counts against their personal workspaces.
        let workspace =
            Some(&template.spec.workspace_ref.name).filter(|_| !is_tenant_namespace(&key.namespace));
        let environments = &template.spec.environment_list;
        let mounted = environments.iter().flat_map(shared_volumes);
        let classes = environments.iter().filter(|environment| environment.persistent);
        let classes = classes.map(|environment| environment.storage_class_name.clone());
        let has_classes = self.storage_classes.state() == StoreState::Synced;
        let has_class = |name: &String| name.is_empty() || self.storage_classes.get("", name).is_some();
        Some(Observed {
            workspace: workspace.and_then(|name| self.workspaces.get("", name)),
            missing_volumes: mounted
                .filter(|key| self.shared_volumes.get(&key.namespace, &key.name).is_none())
                .collect(),
            missing_classes: classes.filter(|name| has_classes && !has_class(name)).collect(),
            nodes: self.nodes.keys().iter().filter_map(|key| self.nodes.get("", &key.name)).collect(),
            template,
        })
    }
}

/// Whether an object is made or deleted, and not only changed.
fn appears_or_goes<T: Kind>(change: &Change<T>) -> bool {
    change.old.is_none() || change.new.is_none()
}
