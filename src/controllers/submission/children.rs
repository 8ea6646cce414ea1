//! The children of an Instance whose content is uploaded: for each environment a Job. The uploader packs everything below
//! `SOURCE_PATH` into `<FILENAME>.zip`, posts it to `DESTINATION_URL`, and succeeds if the answer has a status from 200 to
//! 299.

use serde_json::{Value, json};

use super::observe::{Observed, Upload};
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::config::SubmissionConfig;
use crate::controllers::shared::children::{Child, Parent};
use crate::kinds::{Job, JobKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::component::Component;
use crate::runtime::selection::Selection;
use crate::runtime::store::ByController;
use crate::runtime::store_set::StoreSet;

/// The path at which the uploader finds the content.
const SOURCE_PATH: &str = "/media/data";
/// The user and group that the uploader runs as: those of the environments, who own the files.
const USER: u32 = 1010;

/// Declares the stores. The Jobs of other loops have no label by which they could be told apart.
pub fn declare(set: &mut StoreSet<'_>) -> ChildStores {
    let mut children = ChildStores::of_controller::<InstanceKind>();
    children.add(set.store::<JobKind>(&Selection::ALL).index::<ByController>());
    children
}

impl Observed {
    /// The keys that the Jobs may have.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let instance = &self.instance;
        let key = |upload: Upload| {
            ObjectKey::new(instance.metadata.namespace.clone(), upload.job_name(instance.name()))
        };
        self.uploads().into_iter().map(key).collect()
    }

    /// The Job of an upload, whoever owns it.
    pub fn job(&self, upload: &Upload) -> Option<&Job> {
        self.children.get::<JobKind>(self.instance.namespace(), &upload.job_name(self.instance.name()))
    }

    /// The Jobs that the Instance controls.
    pub fn own_jobs(&self) -> impl Iterator<Item = &Job> {
        self.children.of::<JobKind>().filter(|job| job.is_controlled_by(&self.instance))
    }
}

/// The number of the attempt that a Job is. A Job of the Go operator has no number and is the first.
pub fn attempt(job: &Job) -> i32 {
    job.annotation(labels::SUBMISSION_ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The Job of an upload. Of an existing one, only labels and owner are restored.
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
