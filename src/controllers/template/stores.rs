//! The stores of the template loop, and the Templates that their changes add to the queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::observe::Observed;
use crate::api::requirements::Settings;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenancy::is_tenant_namespace;
use crate::api::workspace::WorkspaceKind;
use crate::config::StorageMode;
use crate::controllers::shared::references::{BySharedVolume, OfWorkspace, volume_state};
use crate::kinds::NamespaceKind;
use crate::runtime::ObjectKey;
use crate::runtime::cluster::{ClusterStores, MachineStores};
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::selection::Selection;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;

/// The stores of the template loop.
pub struct Stores {
    selector: BTreeMap<String, String>,
    templates: Arc<Store<TemplateKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    workspaces: Arc<Store<WorkspaceKind>>,
    shared_volumes: Arc<Store<SharedVolumeKind>>,
    cluster: ClusterStores,
    /// How environments mount shared volumes.
    storage: StorageMode,
}

impl Stores {
    /// Declares the stores. Only Templates in namespaces with the labels of `selector` are reconciled.
    pub fn declare(
        set: &mut StoreSet<'_>,
        selector: &BTreeMap<String, String>,
        settings: Settings,
        storage: StorageMode,
    ) -> Self {
        let all = Selection::ALL;
        let templates = set.store::<TemplateKind>(&all).objects(|_| true);
        let templates = templates.index::<OfWorkspace>().index::<BySharedVolume>().get();
        let of_machines = MachineStores::declare(set);
        let all_templates = Arc::clone(&templates);
        let wake_all = move |queue: &Queue| {
            for key in all_templates.keys() {
                queue.add(key, Priority::Background);
            }
        };
        Self {
            selector: selector.clone(),
            namespaces: set.store(&all).wakes_objects_within(&templates, selector).get(),
            workspaces: set
                .store::<WorkspaceKind>(&all)
                .wakes_by::<OfWorkspace, _, _>(&templates, |change| {
                    let changed = change.object_if(|workspace| &workspace.spec.quota);
                    changed.map(|workspace| workspace.metadata.name.clone())
                })
                .get(),
            shared_volumes: set
                .store::<SharedVolumeKind>(&all)
                .wakes_by::<BySharedVolume, _, _>(&templates, move |change| {
                    let changed = change.object_if(|volume| volume_state(Some(volume), storage));
                    changed.map(|volume| ObjectKey::of(&**volume))
                })
                .get(),
            cluster: ClusterStores::declare(set, settings, of_machines, wake_all),
            storage,
            templates,
        }
    }

    /// The observation of a Template; `None` if it does not exist, or its namespace is not selected.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let template = self.templates.get(&key.namespace, &key.name)?;
        self.namespaces.get("", &key.namespace).filter(|namespace| namespace.has_labels(&self.selector))?;
        // Templates in the namespaces of users count against their personal workspaces.
        let workspace =
            Some(&template.spec.workspace_ref.name).filter(|_| !is_tenant_namespace(&key.namespace));
        let environments = &template.spec.environment_list;
        let mounted = environments.iter().flat_map(|environment| &environment.shared_volume_mounts);
        let volumes = mounted.map(|mount| {
            let volume = &mount.shared_volume;
            let found = self.shared_volumes.get(&volume.namespace, &volume.name);
            (volume.clone(), volume_state(found.as_deref(), self.storage))
        });
        Some(Observed {
            workspace: workspace.and_then(|name| self.workspaces.get("", name)),
            volumes: volumes.collect(),
            cluster: self.cluster.get(),
            has_import_secret: self.cluster.has_import_secret(None),
            template,
        })
    }
}
