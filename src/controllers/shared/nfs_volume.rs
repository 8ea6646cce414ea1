//! NFS volumes: their `PersistentVolumeClaim`, their location, and the Job that prepares them. The personal volumes of
//! Tenants and the shared volumes of Workspaces share this code.

use serde_json::{Value, json};

use super::children::{Child, Parent};
use super::pod_security;
use crate::api::names::label_sized;
use crate::api::quantity::Quantity;
use crate::api::text::Text;
use crate::api::{labels, reason};
use crate::kinds::{Job, JobEnd, JobKind, NfsClaim, NfsClaimKind, PersistentVolume};
use crate::runtime::component::Component;
use crate::runtime::plan::ObjectPatch;
use crate::runtime::problem::Problem;
use crate::runtime::store::index;

/// The name of the resource that a claim requests.
const STORAGE: &str = "storage";

/// The spec of a new claim that several machines may mount at once.
pub fn claim_spec(storage_class: &str, size: &Quantity) -> Value {
    json!({"spec": {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": storage_class,
        "resources": {"requests": {STORAGE: size}},
    }})
}

/// Whether a claim is bound to a volume.
pub fn is_bound(claim: &NfsClaim) -> bool {
    claim.status.phase.as_deref() == Some("Bound")
}

index! {
    /// Claims by the name of the `PersistentVolume` that they are bound to.
    pub struct ByVolume of NfsClaimKind by Text;
    |claim| claim.spec.volume_name.iter().map(Text::from).collect()
}

/// The storage that a claim requests.
pub fn requested(claim: &NfsClaim) -> Option<Quantity> {
    claim.spec.resources.requests.get(STORAGE).and_then(|text| text.parse().ok())
}

/// The patch that enlarges a claim that requests less than `size`. A claim never shrinks. Some storage classes cannot
/// enlarge volumes, so this is a separate patch: if it is rejected, other repairs still apply.
pub fn growth(claim: &NfsClaim, size: &Quantity, component: Component) -> Option<ObjectPatch> {
    if requested(claim).is_some_and(|asked| asked >= *size) {
        return None;
    }
    let patch = json!({"spec": {"resources": {"requests": {STORAGE: size}}}});
    Some(ObjectPatch { component, resource_version: None, ..ObjectPatch::exactly(claim, patch) })
}

/// The location of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The host name of the server.
    pub server: String,
    /// The path that it exports.
    pub share: String,
}

/// The location of a volume from the attributes of its CSI driver: `server` (with `.<clusterID>` appended, if it is
/// set) and `share`. `None` for a volume that is not on NFS.
pub fn location(volume: &PersistentVolume) -> Option<Location> {
    let attributes = &volume.spec.csi.as_ref()?.volume_attributes;
    let attribute = |name: &str| attributes.get(name).map_or("", String::as_str);
    let (server, cluster, share) = (attribute("server"), attribute("clusterID"), attribute("share"));
    if server.is_empty() || share.is_empty() {
        return None;
    }
    let server = if cluster.is_empty() { server.to_owned() } else { format!("{server}.{cluster}") };
    Some(Location { server, share: share.to_owned() })
}

/// The value of the label that reports whether a volume is prepared; `None` before the claim is bound. `job` is its
/// owner's Job.
pub fn provisioning(claim: Option<&NfsClaim>, job: Option<&Job>) -> Option<&'static str> {
    let claim = claim.filter(|claim| is_bound(claim))?;
    let succeeded = job.is_some_and(|job| job.status.succeeded.is_some_and(|pods| pods > 0));
    let completed = claim.label(labels::VOLUME_PROVISIONING) == Some(labels::PROVISIONING_COMPLETED);
    Some(if succeeded || completed { labels::PROVISIONING_COMPLETED } else { labels::PROVISIONING_PENDING })
}

/// The problem that a Job could not prepare `volume`, for example `the volume`, if the Job has failed.
pub fn failure(job: &Job, volume: &str, component: Component) -> Option<Problem> {
    let JobEnd::Failed(condition) = job.end()? else { return None };
    let (namespace, name, cause) = (job.namespace(), job.name(), &condition.message);
    let message = format!(
        "{volume} could not be prepared: Job {namespace}/{name} has failed: {cause}; delete the Job to have it tried \
         again"
    );
    Some(Problem::elsewhere(component, reason::PROVISIONING_FAILED, message))
}

/// The name of the claim of a shared volume. It contains the name of the volume unchanged, with its dots.
pub fn shared_claim(volume: &str) -> String {
    format!("shvol-{volume}")
}

/// The name of the Job that prepares a claim.
pub fn job_name(claim: &str) -> String {
    label_sized(claim, "-provision")
}

/// The Job that gives the files of a volume to the user of the containers. It runs once.
pub fn job<'a>(
    parent: &Parent<'a>,
    name: &str,
    component: &Component,
    claim: String,
    image: &'a str,
) -> Child<'a> {
    let unlabelled = Parent { labels: [].into(), ..parent.clone() };
    unlabelled.child::<JobKind>(name, component, 1, move || provision(&claim, image))
}

/// The spec of the Job that prepares a claim.
fn provision(claim: &str, image: &str) -> Value {
    let resources = json!({"cpu": "100m", "memory": "128Mi"});
    json!({"spec": {
        "backoffLimit": 3,
        "ttlSecondsAfterFinished": 604_800,
        "template": {"spec": {
            "restartPolicy": "OnFailure",
            "containers": [{
                "name": "chown-container",
                "image": image,
                "command": ["chown", "-R", "1010:1010", "/media/mydrive"],
                "volumeMounts": [{"name": "drive", "mountPath": "/media/mydrive"}],
                "resources": {"requests": resources, "limits": resources},
                // It runs as root, which may change the owner of files.
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "seccompProfile": pod_security::seccomp_profile(),
                },
            }],
            "volumes": [{"name": "drive", "persistentVolumeClaim": {"claimName": claim}}],
        }},
    }})
}
