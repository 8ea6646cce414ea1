//! The Job that uploads the content of an environment. The uploader packs everything below `SOURCE_PATH` into
//! `<FILENAME>.zip`, posts it to `DESTINATION_URL`, and succeeds if the answer has a status from 200 to 299.

use serde_json::{Value, json};

use super::observe::{Observed, Upload};
use crate::api::labels;
use crate::config::SubmissionConfig;
use crate::controllers::shared::children::Parent;
use crate::kinds::{Job, JobKind};
use crate::runtime::component::Component;
use crate::runtime::plan::Desired;

/// The path at which the uploader finds the content.
const SOURCE_PATH: &str = "/media/data";
/// The user and group that the uploader runs as: those of the environments, who own the files.
const USER: u32 = 1010;

/// The number of the attempt that a Job is. A Job of the Go operator has no number and is the first.
pub fn attempt(job: &Job) -> i32 {
    job.annotation(labels::SUBMISSION_ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The Job of an upload. Of an existing one, only labels and owner are restored.
pub fn desired(observed: &Observed, config: &SubmissionConfig, upload: &Upload, attempt: i32) -> Desired {
    let instance = &observed.instance;
    let (name, component) = (upload.job_name(instance.name()), upload.component());
    let parent = Parent::new(instance, [].into()).with(&[
        (labels::COMPONENT, component.as_str()),
        (labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE),
        (labels::INSTANCE, instance.name()),
        (labels::TEMPLATE, &instance.spec.template_ref.name),
        (labels::TENANT, &instance.spec.tenant_ref.name),
    ]);
    let environment = Component::environment(&upload.environment);
    let job = parent.child::<JobKind>(&name, &environment, 0, || body(config, upload, instance.name()));
    let existing = observed.job(upload).map(AsRef::as_ref);
    let attempt =
        existing.is_none().then(|| (labels::SUBMISSION_ATTEMPT.to_owned(), Some(attempt.to_string())));
    job.existing(existing).annotated(attempt).made()
}

/// The spec of the Job. It has no `ttlSecondsAfterFinished`: a Job that has finished is kept until its result is in the
/// status of the Instance, and deleted by this loop.
fn body(config: &SubmissionConfig, upload: &Upload, instance: &str) -> Value {
    let mut container = json!({
        "name": "content-uploader",
        "image": config.uploader_image,
        "securityContext": {
            "capabilities": {"drop": ["ALL"]}, "privileged": false, "allowPrivilegeEscalation": false,
        },
        "resources": {
            "requests": {"cpu": "500m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
        "volumeMounts": [{"name": "persistent", "mountPath": SOURCE_PATH}],
        "env": [
            {"name": "SOURCE_PATH", "value": SOURCE_PATH},
            {"name": "DESTINATION_URL", "value": upload.destination},
            {"name": "FILENAME", "value": upload.file_name(instance)},
        ],
    });
    if let Some(container) = container.as_object_mut().filter(|_| !config.uploader_args.is_empty()) {
        container.insert("args".to_owned(), json!(config.uploader_args));
    }
    json!({"spec": {
        "backoffLimit": 10,
        "template": {"spec": {
            "restartPolicy": "OnFailure",
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER, "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{
                "name": "persistent", "persistentVolumeClaim": {"claimName": upload.claim(instance)},
            }],
        }},
    }})
}
