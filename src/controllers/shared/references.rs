//! References between objects: keys from references, and indexes that several loops use.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::condition::RECONCILED;
use crate::api::environment::Environment;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::CanonicalName;
use crate::api::requirements::VolumeState;
use crate::api::shared_volume::{SharedVolume, SharedVolumeKind};
use crate::api::template::{Template, TemplateKind};
use crate::api::tenant::TenantKind;
use crate::api::text::Text;
use crate::api::{Kind, Object, labels};
use crate::config::StorageMode;
use crate::kinds::{Deployment, Namespace};
use crate::runtime::ObjectKey;
use crate::runtime::store::{Index, Store, index};

/// The name of the Secret with the location of a user's `MyDrive`. The tenant loop writes it, the instance
/// loop reads it.
pub const MY_DRIVE_SECRET: &str = "mydrive-info";

/// The key of the Template of an Instance.
pub fn template_key(instance: &Instance) -> ObjectKey {
    let reference = &instance.spec.template_ref;
    ObjectKey::new(Text::interned(&reference.namespace), Text::interned(&reference.name))
}

/// The Template of an Instance, if it exists.
pub fn template_of(instance: &Instance, templates: &Store<TemplateKind>) -> Option<Arc<Template>> {
    let reference = &instance.spec.template_ref;
    templates.get(&reference.namespace, &reference.name)
}

/// The shared volumes that an environment mounts.
pub fn shared_volumes(environment: &Environment) -> BTreeSet<ObjectKey> {
    let mounts = environment.shared_volume_mounts.iter().map(|mount| &mount.shared_volume);
    mounts.map(|volume| ObjectKey::new(&*volume.namespace, &*volume.name)).collect()
}

/// The state of a shared volume for the objects that mount it in this way. `None` is a volume that does not exist.
pub fn volume_state(volume: Option<&SharedVolume>, storage: StorageMode) -> VolumeState {
    let is_usable = |volume: &SharedVolume| match storage {
        StorageMode::Nfs => export(volume).is_some(),
        // Its claim is bound, so mirrors of the claim can be, too.
        StorageMode::Mirror => !volume.status.pv_name.is_empty(),
    };
    match volume {
        None => VolumeState::Missing,
        Some(volume) if !is_usable(volume) => {
            let mut conditions = volume.status.conditions.iter();
            let cause = conditions.find(|each| each.type_ == RECONCILED && each.status == "False");
            VolumeState::Waiting(cause.map(|cause| cause.message.to_string()).unwrap_or_default())
        }
        Some(_) => VolumeState::Exported,
    }
}

/// The shared volumes that an object of an Instance mounts, from its annotation `crownlabs.polito.it/shared-volumes`.
/// These volumes are not deleted while the object exists.
pub fn mounted_volumes<T: Kind>(object: &Object<T>) -> BTreeSet<ObjectKey> {
    let note = object.annotation(labels::SHARED_VOLUMES).unwrap_or_default();
    let parts = note.split(',').filter_map(|part| part.split_once('/'));
    parts.map(|(namespace, name)| ObjectKey::new(namespace, name)).collect()
}

/// The export of a shared volume as a key: server and path. `None` before it is exported.
fn export(volume: &SharedVolume) -> Option<(Text, Text)> {
    let status = &volume.status;
    let is_exported = !status.server_address.is_empty() && !status.export_path.is_empty();
    is_exported.then(|| (status.server_address.as_str().into(), status.export_path.as_str().into()))
}

index! {
    /// Shared volumes by the server and path of their export.
    pub struct ByExport of SharedVolumeKind by (Text, Text);
    |volume| export(volume).into_iter().collect()
}

/// The exports that the pods of a Deployment mount, as keys of [`ByExport`].
pub fn mounted_exports(deployment: &Deployment) -> Vec<(Text, Text)> {
    let volumes = deployment.spec.template.spec.volumes.iter();
    let exports = volumes.filter_map(|volume| volume.nfs.as_ref());
    exports.map(|nfs| (nfs.server.as_str().into(), nfs.path.as_str().into())).collect()
}

/// The shared volumes that the pods of a Deployment mount, selected from `volumes`.
pub fn volumes_in_pods(deployment: &Deployment, volumes: &[Arc<SharedVolume>]) -> BTreeSet<ObjectKey> {
    let exports = mounted_exports(deployment);
    let is_mounted = |volume: &&Arc<SharedVolume>| export(volume).is_some_and(|key| exports.contains(&key));
    volumes.iter().filter(is_mounted).map(|volume| ObjectKey::of(&**volume)).collect()
}

/// The annotation that [`mounted_volumes`] reads, `namespace/name,…`; `None` if no volumes are mounted.
pub fn mounted_volumes_annotation(volumes: &BTreeSet<ObjectKey>) -> Option<String> {
    let names: Vec<String> = volumes.iter().map(ToString::to_string).collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// The key of the Instance that an object belongs to according to its label.
pub fn instance_of<T: Kind>(object: &Object<T>) -> Option<ObjectKey> {
    let name = object.label(labels::INSTANCE)?;
    Some(ObjectKey::new(&object.metadata.namespace, Text::interned(name)))
}

index! {
    /// Instances by their namespace and canonical name, which is the prefix of the names of their objects.
    pub struct ByCanonicalName of InstanceKind by ObjectKey;
    |instance| vec![canonical_key(instance)]
}

/// The key of an Instance in [`ByCanonicalName`].
pub fn canonical_key(instance: &Instance) -> ObjectKey {
    ObjectKey::new(&instance.metadata.namespace, CanonicalName::of(instance.name()).to_string())
}

/// Objects by the Instance that their label names.
pub struct ByInstance;

impl<T: Kind> Index<T> for ByInstance {
    type Key = ObjectKey;

    fn keys(object: &Object<T>) -> Vec<ObjectKey> {
        instance_of(object).into_iter().collect()
    }
}

index! {
    /// Instances by their Template.
    pub struct ByTemplate of InstanceKind by ObjectKey;
    |instance| vec![template_key(instance)]
}

index! {
    /// Instances by their Tenant.
    pub struct ByTenant of InstanceKind by Text;
    |instance| vec![Text::interned(&instance.spec.tenant_ref.name)]
}

/// Whether an administrator has exempted the Instances of a namespace by a label or an annotation with the value
/// `true`. The case of the value does not matter, because exempting too many Instances is safer than too few.
pub fn is_exempt(namespace: &Namespace, key: &str) -> bool {
    let values = [namespace.label(key), namespace.annotation(key)];
    values.into_iter().flatten().any(|value| value.eq_ignore_ascii_case("true"))
}

index! {
    /// Templates by the shared volumes that they mount.
    pub struct BySharedVolume of TemplateKind by ObjectKey;
    |template| template.spec.environment_list.iter().flat_map(shared_volumes).collect()
}

index! {
    /// Templates by their Workspace.
    pub struct OfWorkspace of TemplateKind by Text;
    |template| vec![Text::interned(&template.spec.workspace_ref.name)]
}

index! {
    /// Tenants by the Workspaces that their spec names.
    pub struct ByWorkspace of TenantKind by Text;
    |tenant| tenant.spec.workspaces.iter().map(|entry| Text::interned(&entry.name)).collect()
}
