//! The child of a snapshot: a Job. Its init container exports the disk, and its container builds the image and pushes
//! it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decide::Export;
use super::observe::Observed;
use crate::api::instance_snapshot::{InstanceSnapshot, InstanceSnapshotKind};
use crate::api::names::label_sized;
use crate::config::{Pusher, SnapshotConfig};
use crate::controllers::shared::children::{Child, Parent};
use crate::controllers::shared::storage_limit::limit_storage;
use crate::kinds::{Job, JobKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::component::Component;
use crate::runtime::selection::Selection;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;

/// The end of a failed container's log becomes its termination message.
const TERMINATION_MESSAGE: &str = "FallbackToLogsOnError";
/// The argument of Kaniko with the name of the image.
const DESTINATION: &str = "--destination=";
/// The uid of Buildah's user, which exists in its image.
const BUILDAH_USER: u32 = 1000;
/// The shell script for Buildah; the name of the image is `$1`.
const BUILDAH: &str = r#"buildah build --layers=false --tag "$1" /workspace
buildah push "$1""#;

/// Declares the stores. Jobs of snapshots have no label of this daemon.
pub fn declare(set: &mut StoreSet<'_>) -> (ChildStores, Arc<Store<JobKind>>) {
    let mut children = ChildStores::of_controller::<InstanceSnapshotKind>();
    let jobs = children.add(set.store(&Selection::ALL).requests("get"));
    (children, jobs)
}

/// The name of the Job of a snapshot: the name of the snapshot, shortened to the length of a label value, because it
/// becomes a label of the pods.
pub fn job_name(snapshot: &str) -> String {
    label_sized(snapshot, "")
}

/// The key of the Job of a snapshot.
pub fn job_key(snapshot: &InstanceSnapshot) -> ObjectKey {
    ObjectKey::new(snapshot.metadata.namespace.clone(), job_name(snapshot.name()))
}

impl Observed {
    /// The object with the name of its Job, whatever its owner.
    pub fn job(&self) -> Option<&Job> {
        self.children.get::<JobKind>(self.snapshot.namespace(), &job_name(self.snapshot.name()))
    }
}

/// The name of the image that a Job pushes, from the last argument of its container.
pub fn destination(job: &Job) -> String {
    let argument = job.spec.template.spec.containers.first().and_then(|container| container.args.last());
    argument.map_or("", |argument| argument.strip_prefix(DESTINATION).unwrap_or(argument)).to_owned()
}

/// The Job.
pub fn job<'a>(observed: &'a Observed, config: &'a SnapshotConfig, export: &'a Export) -> Child<'a> {
    let parent = Parent::new(&observed.snapshot, [].into()).seeing(&observed.children);
    let name = job_name(observed.snapshot.name());
    parent.child::<JobKind>(&name, &Component::Whole, 0, || body(config, export))
}

fn body(config: &SnapshotConfig, export: &Export) -> Value {
    let exporter = json!({"cpu": "1", "memory": "128Mi"});
    let mut body = json!({"spec": {
        "backoffLimit": 2,
        "template": {"spec": {
            "restartPolicy": "OnFailure",
            "initContainers": [{
                "name": "img-generator",
                "image": config.container_export_img,
                "volumeMounts": [
                    {"name": export.disk, "mountPath": "/data"},
                    {"name": "tmp-vol", "mountPath": "/img-tmp"},
                ],
                "resources": {"requests": exporter, "limits": {"cpu": "1", "memory": "256Mi"}},
                // The status of the pod then states why a container has failed.
                "terminationMessagePolicy": TERMINATION_MESSAGE,
            }],
            "containers": [pusher(config, &export.destination)],
            "volumes": [
                {"name": export.disk, "persistentVolumeClaim": {"claimName": export.disk}},
                {"name": "tmp-vol", "emptyDir": {}},
                {"name": "kaniko-secret", "secret": {
                    "secretName": config.vm_registry_secret,
                    "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
                }},
            ],
        }},
    }});
    if !config.ephemeral_storage.is_empty() {
        limit_storage(&mut body["spec"]["template"]["spec"], &config.ephemeral_storage);
    }
    body
}

/// The container that builds the image and pushes it.
fn pusher(config: &SnapshotConfig, destination: &str) -> Value {
    let mut container = json!({
        "name": "docker-pusher",
        "terminationMessagePolicy": TERMINATION_MESSAGE,
        "resources": {
            "requests": {"cpu": "1", "memory": config.pusher_memory_request},
            "limits": {"cpu": "1", "memory": config.pusher_memory_limit},
        },
    });
    let workspace = json!({"name": "tmp-vol", "mountPath": "/workspace"});
    let (image, further) = match config.pusher {
        Pusher::Kaniko => (
            &config.container_kaniko_img,
            json!({
                "args": ["--dockerfile=/workspace/Dockerfile", format!("{DESTINATION}{destination}")],
                "volumeMounts": [workspace, {"name": "kaniko-secret", "mountPath": "/kaniko/.docker/"}],
            }),
        ),
        Pusher::Buildah => (
            &config.container_buildah_img,
            json!({
                "command": ["/bin/sh", "-euc", BUILDAH],
                "args": ["docker-pusher", destination],
                "env": [
                    {"name": "BUILDAH_ISOLATION", "value": "chroot"},
                    {"name": "STORAGE_DRIVER", "value": "vfs"},
                    {"name": "REGISTRY_AUTH_FILE", "value": "/registry/config.json"},
                ],
                "securityContext": {"runAsUser": BUILDAH_USER, "runAsGroup": BUILDAH_USER},
                "volumeMounts": [workspace, {"name": "kaniko-secret", "mountPath": "/registry"}],
            }),
        ),
    };
    if let (Some(container), Value::Object(further)) = (container.as_object_mut(), further) {
        container.insert("image".to_owned(), image.as_str().into());
        container.extend(further);
    }
    container
}
