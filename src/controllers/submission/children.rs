//! The children of an Instance whose content is uploaded: one Job for each environment. The uploader packs everything
//! below `SOURCE_PATH` into `<FILENAME>.zip` and posts it to `DESTINATION_URL`. It succeeds if the response has a
//! status from 200 to 299, and may leave a receipt as its termination message.

use std::sync::Arc;

use serde_json::{Value, json};

use super::observe::{Observed, Upload};
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::config::SubmissionConfig;
use crate::controllers::shared::children::{Child, Parent};
use crate::controllers::shared::pod_security;
use crate::kinds::{Job, JobKind, UPLOAD_DESTINATION};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::component::Component;
use crate::runtime::selection::Selection;
use crate::runtime::store::{ByController, Store};
use crate::runtime::store_set::StoreSet;

/// The name of the container of a Job.
pub const CONTAINER: &str = "content-uploader";
/// The path of the content in the uploader.
const SOURCE_PATH: &str = "/media/data";

/// Declares the stores: those of all children, and the one of Jobs. The Jobs of other loops have no distinguishing
/// label.
pub fn declare(set: &mut StoreSet<'_>) -> (ChildStores, Arc<Store<JobKind>>) {
    let mut children = ChildStores::of_controller::<InstanceKind>();
    let jobs = children.add(set.store::<JobKind>(&Selection::ALL).index::<ByController>());
    (children, jobs)
}

impl Observed {
    /// The keys of all possible Jobs.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let instance = &self.instance;
        let key = |upload: Upload| {
            ObjectKey::new(instance.metadata.namespace.clone(), upload.job_name(instance.name()))
        };
        self.uploads().into_iter().map(key).collect()
    }

    /// The Job of an upload, if the Instance controls it.
    pub fn job(&self, upload: &Upload) -> Option<&Job> {
        self.children.own(&self.instance, &upload.job_name(self.instance.name()))
    }

    /// The Jobs that the Instance controls.
    pub fn own_jobs(&self) -> impl Iterator<Item = &Job> {
        self.children.of::<JobKind>().filter(|job| job.is_controlled_by(&self.instance))
    }
}

/// The number of a Job's attempt. A Job of the Go operator has no number and counts as the first.
pub fn attempt(job: &Job) -> i32 {
    job.annotation(labels::SUBMISSION_ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Whether a Job uploads to a different URL than the current one.
pub fn has_other_destination(job: &Job, upload: &Upload) -> bool {
    let mut variables = job.spec.template.spec.containers.iter().flat_map(|container| container.env.iter());
    variables.any(|variable| variable.name == UPLOAD_DESTINATION && *variable.value != *upload.destination)
}

/// The Job of an upload. Only the labels and the owner of an existing Job are restored.
pub fn job<'a>(
    observed: &'a Observed,
    config: &'a SubmissionConfig,
    upload: &'a Upload,
    attempt: i32,
) -> Child<'a> {
    let instance = &observed.instance;
    let (name, component) = (upload.job_name(instance.name()), upload.component());
    let parent = Parent::new(instance, labels::of_instance(instance))
        .seeing(&observed.children)
        .with(&[(labels::COMPONENT, component.as_str()), (labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE)]);
    let environment = Component::environment(&upload.environment);
    let job = parent.child::<JobKind>(&name, &environment, 0, || body(config, upload, instance.name()));
    let is_new = job.existing.is_none();
    job.annotated(is_new.then(|| (labels::SUBMISSION_ATTEMPT.to_owned(), Some(attempt.to_string()))))
}

/// The spec of the Job. It has no `ttlSecondsAfterFinished`: this loop deletes a finished Job after its result is in
/// the status of the Instance.
fn body(config: &SubmissionConfig, upload: &Upload, instance: &str) -> Value {
    let mut container = json!({
        "name": CONTAINER,
        "image": config.uploader_image,
        "securityContext": pod_security::container(),
        "resources": {
            "requests": {"cpu": "500m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
        "volumeMounts": [{"name": "persistent", "mountPath": SOURCE_PATH}],
        "env": [
            {"name": "SOURCE_PATH", "value": SOURCE_PATH},
            {"name": UPLOAD_DESTINATION, "value": upload.destination},
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
            "securityContext": pod_security::pod(pod_security::USER),
            "containers": [container],
            "volumes": [{
                "name": "persistent", "persistentVolumeClaim": {"claimName": upload.claim(instance)},
            }],
        }},
    }})
}
