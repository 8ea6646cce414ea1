use serde_json::{Value, json};

use super::*;
use crate::controllers::submission::children;

fn manifest(observed: &Observed, config: &SubmissionConfig, upload: &Upload) -> Value {
    children::job(observed, config, upload, 2).made().manifest.as_ref().expect("a Job").json().clone()
}

/// The same fields as the Go operator writes, in the same order, with the annotation and without
/// `ttlSecondsAfterFinished`.
#[test]
fn the_job_has_the_fields_of_the_go_operators_job() {
    let expected = r#"{
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "annotations": {"crownlabs.polito.it/submission-attempt": "2"},
            "labels": {
                "crownlabs.polito.it/component": "submitter",
                "crownlabs.polito.it/instance": "exam.1",
                "crownlabs.polito.it/managed-by": "instance",
                "crownlabs.polito.it/template": "exam",
                "crownlabs.polito.it/tenant": "service-tenant"
            },
            "name": "exam-1-submitter",
            "namespace": "exams",
            "ownerReferences": [{
                "apiVersion": "crownlabs.polito.it/v1alpha2", "blockOwnerDeletion": true, "controller": true,
                "kind": "Instance", "name": "exam.1", "uid": "i1"
            }]
        },
        "spec": {
            "backoffLimit": 10,
            "template": {"spec": {
                "restartPolicy": "OnFailure",
                "automountServiceAccountToken": false,
                "securityContext": {
                    "runAsUser": 1010, "runAsGroup": 1010, "fsGroup": 1010, "runAsNonRoot": true,
                    "seccompProfile": {"type": "RuntimeDefault"}
                },
                "containers": [{
                    "name": "content-uploader",
                    "image": "crownlabs/content-uploader:latest",
                    "securityContext": {
                        "capabilities": {"drop": ["ALL"]}, "privileged": false, "allowPrivilegeEscalation": false
                    },
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}
                    },
                    "volumeMounts": [{"name": "persistent", "mountPath": "/media/data"}],
                    "env": [
                        {"name": "SOURCE_PATH", "value": "/media/data"},
                        {"name": "DESTINATION_URL", "value": "https://exams.example.org/upload?key=secret"},
                        {"name": "FILENAME", "value": "exam.1"}
                    ]
                }],
                "volumes": [{"name": "persistent", "persistentVolumeClaim": {"claimName": "exam-1"}}]
            }}
        }
    }"#;
    let expected: Value = serde_json::from_str(expected).expect("JSON");
    let its_image =
        SubmissionConfig { uploader_image: "crownlabs/content-uploader:latest".to_owned(), ..config() };
    let made = manifest(&observed(&json!({})), &its_image, &upload());
    assert_eq!(made, expected, "{made:#}");
    assert_eq!(children::attempt(&object::<crate::kinds::JobKind>(&made)), 2);
}

#[test]
fn each_of_several_environments_has_its_own_job() {
    let upload = Upload { environment: "db".to_owned(), destination: "https://x".to_owned() };
    let made = manifest(&observed(&json!({})), &config(), &upload);
    assert_eq!(made["metadata"]["name"], "exam-1-db-submitter");
    assert_eq!(made["metadata"]["labels"]["crownlabs.polito.it/component"], "db-submitter");
    let pod = &made["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "exam-1-db");
    assert_eq!(pod["containers"][0]["env"][2], json!({"name": "FILENAME", "value": "exam.1-db"}));
}

#[test]
fn the_newer_image_needs_an_argument() {
    let newer = SubmissionConfig {
        uploader_image: "crownlabs/content-tools:latest".to_owned(),
        uploader_args: vec!["upload".to_owned()],
        ..config()
    };
    let made = manifest(&observed(&json!({})), &newer, &upload());
    let container = &made["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["args"]),
        (&json!("crownlabs/content-tools:latest"), &json!(["upload"]))
    );
}

#[test]
fn names_fit_labels() {
    let name = upload().job_name(&"a".repeat(80));
    assert_eq!(name.len(), 63);
    assert!(name.ends_with("-submitter"), "{name}");
    assert_ne!(name, upload().job_name(&"a".repeat(81)));
}
