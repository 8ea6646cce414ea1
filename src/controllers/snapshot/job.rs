//! The Job of a snapshot: the exporter, then what builds the image and pushes it (03 §2.5).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::decide::Export;
use super::observe::Observed;
use crate::config::{Pusher, SnapshotConfig};
use crate::controllers::shared::children::{ChildBuilder, Place, label_sized, owner};
use crate::kinds::{Job, JobKind};
use crate::runtime::plan::Desired;

/// The argument of Kaniko that names the image.
const DESTINATION: &str = "--destination=";
/// The user that Buildah runs as; its image has it.
const BUILDAH_USER: u32 = 1000;
/// What Buildah is told; the name of the image is `$1`.
const BUILDAH: &str = r#"buildah build --layers=false --tag "$1" /workspace
buildah push "$1""#;

/// The name of the Job of a snapshot: its own, as far as Kubernetes allows. The Job's name becomes a label
/// of its pods, so it is shorter than other names may be.
#[must_use]
pub fn name(snapshot: &str) -> String {
    label_sized(snapshot, "")
}

/// The image that a Job pushes.
#[must_use]
pub fn destination(job: &Job) -> String {
    let told = job.spec.template.spec.containers.first().and_then(|container| container.args.last());
    told.map_or("", |told| told.strip_prefix(DESTINATION).unwrap_or(told)).to_owned()
}

/// The Job.
#[must_use]
pub fn desired(observed: &Observed, config: &SnapshotConfig, export: &Export) -> Desired {
    let snapshot = &observed.snapshot;
    let exporter = json!({"cpu": "1", "memory": "128Mi"});
    let body = json!({"spec": {
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
    let builder = ChildBuilder { owner: owner(snapshot), labels: BTreeMap::new() };
    let name = name(snapshot.name());
    let place = Place { namespace: snapshot.namespace(), name: &name, component: "", wave: 0 };
    builder.created::<JobKind>(observed.job.as_deref(), place, &body)
}

/// What builds the image and pushes it.
fn pusher(config: &SnapshotConfig, destination: &str) -> Value {
    let mut container = json!({
        "name": "docker-pusher",
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
