//! The children of a shared volume: its `PersistentVolumeClaim`, and the Job that prepares it.

use std::sync::Arc;

use super::observe::Observed;
use super::reconcile::Settings;
use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::api::quantity::Quantity;
use crate::api::shared_volume::SharedVolumeKind;
use crate::config::SharedVolumeConfig;
use crate::controllers::shared::children::{Child, Parent};
use crate::controllers::shared::mirrors;
use crate::controllers::shared::nfs_volume::{self, ByVolume, claim_spec, job_name, shared_claim};
use crate::kinds::{Job, JobKind, NfsClaim, NfsClaimKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::component::Component;
use crate::runtime::selection::Selection;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;

/// The only component: all objects depend on the claim.
pub const VOLUME: Component = Component::Part("volume");

/// Declares the stores. Jobs of shared volumes have no label of this daemon.
pub fn declare(set: &mut StoreSet<'_>) -> (ChildStores, Arc<Store<NfsClaimKind>>) {
    let of_volumes = Selection::label(labels::VOLUME_TYPE, labels::VOLUME_TYPE_SHARED_VOLUME);
    let mut children = ChildStores::of_controller::<SharedVolumeKind>();
    let claims = children.add(set.store::<NfsClaimKind>(&of_volumes).index::<ByVolume>());
    children.add(set.store::<JobKind>(&Selection::ALL));
    (children, claims)
}

/// The possible names of the children of the volume `key`.
pub fn keys(key: &ObjectKey) -> Vec<ObjectKey> {
    let [job, former] = job_names(&key.name);
    [shared_claim(&key.name), job, former].map(|name| ObjectKey::new(key.namespace.clone(), name)).into()
}

/// The possible names of the Job of a shared volume: the name in this daemon, and the one in the Go operator, which
/// contains the dots of the volume's name.
pub fn job_names(volume: &str) -> [String; 2] {
    let claim = shared_claim(volume);
    [job_name(&CanonicalName::of(&claim)), format!("{claim}-provision")]
}

impl Observed {
    /// The object with the name of its claim, whatever its owner.
    pub fn claim(&self) -> Option<&NfsClaim> {
        self.children.get::<NfsClaimKind>(self.volume.namespace(), &shared_claim(self.volume.name()))
    }

    /// The name of its Job, and the object with that name, whatever its owner.
    pub fn job(&self) -> (String, Option<&Job>) {
        let [ours, former] = job_names(self.volume.name());
        let found = |name: &str| self.children.get::<JobKind>(self.volume.namespace(), name);
        match (found(&ours), found(&former)) {
            (None, Some(job)) if job.is_controlled_by(&self.volume) => (former, Some(job)),
            (job, _) => (ours, job),
        }
    }

    /// Its claim, if the shared volume is its controller.
    pub fn own_claim(&self) -> Option<&NfsClaim> {
        self.children.own(&self.volume, &shared_claim(self.volume.name()))
    }

    /// Its Job, if the shared volume is its controller.
    pub fn own_job(&self) -> Option<&Job> {
        self.children.own(&self.volume, &self.job().0)
    }
}

fn parent(observed: &Observed) -> Parent<'_> {
    Parent::new(&observed.volume, [].into()).seeing(&observed.children).with(&[
        (labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE),
        (labels::VOLUME_TYPE, labels::VOLUME_TYPE_SHARED_VOLUME),
    ])
}

/// The claim. `provisioned` is the value of its label. With mirrors, personal namespaces may mirror it.
pub fn claim<'a>(
    observed: &'a Observed,
    settings: &'a Settings,
    size: &'a Quantity,
    provisioned: Option<&str>,
) -> Child<'a> {
    let spec = || claim_spec(&settings.config.storage_class, size);
    let state = provisioned.map(|state| (labels::VOLUME_PROVISIONING, state));
    let parent = parent(observed).with(state.as_slice());
    let child = parent.child::<NfsClaimKind>(&shared_claim(observed.volume.name()), &VOLUME, 0, spec);
    let permitted =
        settings.has_mirrors().then(|| (mirrors::PERMITTED.to_owned(), Some(mirrors::personal_namespaces())));
    child.annotated(permitted)
}

/// The Job.
pub fn job<'a>(observed: &'a Observed, config: &'a SharedVolumeConfig) -> Child<'a> {
    let claim = shared_claim(observed.volume.name());
    nfs_volume::job(&parent(observed), &observed.job().0, &VOLUME, claim, &config.provisioning_image)
}
