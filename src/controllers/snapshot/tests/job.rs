use serde_json::{Value, json};

use super::*;
use crate::config::Pusher;
use crate::controllers::snapshot::children;

/// The Job of a snapshot with this configuration.
fn manifest(config: &SnapshotConfig) -> Value {
    children::job(&usual(), config, &export()).made().manifest.as_ref().expect("a Job").json().clone()
}

#[test]
fn the_job_has_the_fields_of_the_go_operators_job() {
    // The same fields as in the Go operator, and the location of the failure's reason.
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "snap.one",
            "namespace": "tenant-ada",
            "ownerReferences": [{
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "InstanceSnapshot", "name": "snap.one",
                "uid": "s1", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "backoffLimit": 2,
            "template": {"spec": {
                "restartPolicy": "OnFailure",
                "initContainers": [{
                    "name": "img-generator",
                    "image": concat!("crownlabs/img-exporter:", env!("CARGO_PKG_VERSION")),
                    "volumeMounts": [
                        {"name": "my-box", "mountPath": "/data"}, {"name": "tmp-vol", "mountPath": "/img-tmp"},
                    ],
                    "resources": {
                        "requests": {"cpu": "1", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"},
                    },
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }],
                "containers": [{
                    "name": "docker-pusher",
                    "image": "gcr.io/kaniko-project/executor",
                    "args": [
                        "--dockerfile=/workspace/Dockerfile",
                        "--destination=registry.example.org/adal/my-image:20260304t050607",
                    ],
                    "volumeMounts": [
                        {"name": "tmp-vol", "mountPath": "/workspace"},
                        {"name": "kaniko-secret", "mountPath": "/kaniko/.docker/"},
                    ],
                    "resources": {
                        "requests": {"cpu": "1", "memory": "8Gi"}, "limits": {"cpu": "1", "memory": "32Gi"},
                    },
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }],
                "volumes": [
                    {"name": "my-box", "persistentVolumeClaim": {"claimName": "my-box"}},
                    {"name": "tmp-vol", "emptyDir": {}},
                    {"name": "kaniko-secret", "secret": {
                        "secretName": "registry-credentials",
                        "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
                    }},
                ],
            }},
        },
    });
    let made = manifest(&config());
    assert_eq!(made, expected);
    assert_eq!(children::destination(&object(&made)), export().destination);
}

#[test]
fn the_disk_of_the_node_is_limited_if_configured() {
    let limited = manifest(&SnapshotConfig { ephemeral_storage: "200Gi".to_owned(), ..config() });
    let pod = &limited["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][1], json!({"name": "tmp-vol", "emptyDir": {"sizeLimit": "200Gi"}}));
    for container in [&pod["initContainers"][0], &pod["containers"][0]] {
        let resources = &container["resources"];
        assert_eq!(resources["limits"]["ephemeral-storage"], "200Gi", "{container}");
        assert_eq!(resources["requests"]["ephemeral-storage"], "0", "{container}");
        assert_eq!(resources["limits"]["cpu"], "1", "{container}");
    }
}

#[test]
fn buildah_runs_without_root() {
    let rootless = manifest(&SnapshotConfig { pusher: Pusher::Buildah, ..config() });
    let pusher = &rootless["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(pusher["image"], "quay.io/buildah/stable");
    assert_eq!(pusher["args"], json!(["docker-pusher", export().destination]));
    assert_eq!(pusher["securityContext"]["runAsUser"], 1000);
    assert_eq!(children::destination(&object(&rootless)), export().destination);
}

#[test]
fn names_of_jobs_fit_labels() {
    assert_eq!(children::job_name("snap.one"), "snap.one");
    assert_eq!(children::job_name(&"a".repeat(63)), "a".repeat(63));
    let (one, other) = (
        children::job_name(&format!("{}b", "a".repeat(80))),
        children::job_name(&format!("{}c", "a".repeat(80))),
    );
    assert_eq!((one.len(), other.len()), (63, 63));
    assert_ne!(one, other);
    assert!(!children::job_name(&format!("{}.{}", "a".repeat(53), "b".repeat(80))).contains(".-"));
}
