//! The decision about a mirror: whether it gets a volume, and why not.

use std::sync::Arc;

use super::observe::Observed;
use super::permitted::permits;
use super::reconcile::Settings;
use crate::api::text::Text;
use crate::controllers::shared::mirrors::{CLAIM, PERMITTED, origin_of};
use crate::kinds::{MirrorClaim, MirrorVolume};
use crate::runtime::ObjectKey;

/// The annotations of a claim that name the provisioner of its class. The controller manager writes them.
const PROVISIONER: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];
/// The annotation of a volume that names its provisioner.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The access mode of volumes that several machines mount.
const SHARED: &str = "ReadWriteMany";
/// The volume mode of an object that names none.
const FILESYSTEM: &str = "Filesystem";

/// The decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<'o> {
    /// Nothing is to be done: the claim does not exist, has a volume, or is not of this daemon.
    None,
    /// It gets the volume of this origin.
    Mirror(&'o MirrorClaim, &'o MirrorVolume),
    /// It gets no volume, for this reason.
    Refuse(Refusal),
}

/// The reason why a claim gets no volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A sentence for its events.
    pub message: String,
    /// Whether it is expected to end without a change by a user.
    pub is_waiting: bool,
}

/// Whether a claim waits for a volume of this provisioner, or has got it.
pub fn is_of(claim: &MirrorClaim, provisioner: &str) -> bool {
    PROVISIONER.iter().any(|key| claim.annotation(key) == Some(provisioner))
}

/// The name of the volume of a claim.
pub fn volume_name(claim: &MirrorClaim) -> String {
    format!("pvc-{}", claim.uid())
}

/// The claim that a claim mirrors, if it names one in a namespace.
pub fn origin(claim: &MirrorClaim) -> Option<ObjectKey> {
    claim.spec.data_source_ref.as_ref().and_then(origin_of)
}

/// The decision about a claim.
pub fn decide<'o>(observed: &'o Observed, settings: &Settings) -> Decision<'o> {
    let claim = &observed.claim;
    let name = volume_name(claim);
    let is_served =
        claim.spec.volume_name.is_some() || observed.volumes.iter().any(|volume| volume.name() == name);
    if claim.uid().is_empty() || is_served || !observed.is_selected || !is_of(claim, &settings.provisioner) {
        return Decision::None;
    }
    granted(observed).map_or_else(Decision::Refuse, |(origin, source)| Decision::Mirror(origin, source))
}

/// The origin of a claim and its volume, if the claim may have it and can be provisioned now.
fn granted(observed: &Observed) -> Result<(&MirrorClaim, &MirrorVolume), Refusal> {
    let refused = |message: String| Refusal { message, is_waiting: false };
    let waits = |message: String| Refusal { message, is_waiting: true };
    let claim = &observed.claim;
    let Some(reference) = &claim.spec.data_source_ref else {
        return Err(refused(
            "it has no dataSourceRef, which names the claim to mirror: an API server without the feature gate \
             CrossNamespaceVolumeDataSource drops it; enable the gate, and create the claim again"
                .to_owned(),
        ));
    };
    let Some(key) = origin(claim) else {
        let (kind, name) = (&reference.kind, &reference.name);
        return Err(refused(format!(
            "its dataSourceRef {kind} {name} is not a {CLAIM} with a namespace, so it cannot be mirrored"
        )));
    };
    let Some(origin) = observed.origin.as_deref() else {
        return Err(refused(format!("Origin PVC does not exist: {CLAIM} {key}")));
    };
    let namespace = claim.namespace();
    let selector = origin.annotation(PERMITTED).unwrap_or_default();
    let label = |key: &str| observed.namespace.as_ref().and_then(|namespace| namespace.label(key));
    match permits(selector, label) {
        Ok(true) => {}
        Ok(false) => {
            return Err(refused(format!(
                "Unauthorized: the annotation {PERMITTED} of {CLAIM} {key} does not permit namespace {namespace}"
            )));
        }
        Err(part) => {
            return Err(refused(format!(
                "the annotation {PERMITTED} of {CLAIM} {key} is not a label selector: {part:?} cannot be read"
            )));
        }
    }
    let source = match (origin.status.phase.as_deref(), &origin.spec.volume_name, observed.source.as_deref())
    {
        (Some("Lost"), ..) => return Err(refused(format!("{CLAIM} {key} has lost its volume"))),
        (Some("Bound"), Some(_), Some(source)) => source,
        _ => return Err(waits(format!("{CLAIM} {key} is not bound yet"))),
    };
    if !origin.status.access_modes.iter().any(|mode| *mode == SHARED) {
        return Err(refused(format!("the volume of {CLAIM} {key} does not have the access mode {SHARED}")));
    }
    if source.spec.csi.is_none() {
        let volume = source.name();
        return Err(refused(format!(
            "PersistentVolume {volume} is not of a CSI driver, so it cannot be mirrored"
        )));
    }
    let mode = |mode: &Option<Text>| mode.as_deref().unwrap_or(FILESYSTEM).to_owned();
    let (wanted, found) = (mode(&claim.spec.volume_mode), mode(&source.spec.volume_mode));
    if wanted != found {
        return Err(refused(format!("its volumeMode is {wanted}, but that of {CLAIM} {key} is {found}")));
    }
    Ok((origin, source))
}

/// The volumes of mirrors that are gone: the controller manager has released them. A volume is removed only if the class
/// says so, which is the default.
pub fn released(observed: &Observed) -> impl Iterator<Item = &Arc<MirrorVolume>> {
    let claim = observed.claim.uid();
    observed.volumes.iter().filter(move |volume| {
        let spec = &volume.spec;
        let is_current = spec.claim_ref.as_ref().is_some_and(|current| current.uid == claim);
        let is_released = volume.status.phase.as_deref() == Some("Released");
        is_released && !is_current && spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete")
    })
}
