//! Jobs: the arguments and the destination of their containers, their result, and their pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;
use serde::Deserializer;

use super::{ContainerStatus, ForeignCondition, Unread, foreign_part, kept, kind};
use crate::api::wire::Optional;

/// The fields of a container that we read.
#[apply(foreign_part)]
pub struct JobContainer {
    /// The arguments of its entry point.
    pub args: Optional<Vec<String>>,
    /// The environment variable [`UPLOAD_DESTINATION`]. All others are dropped during decoding.
    #[serde(deserialize_with = "destination")]
    pub env: Optional<Vec<JobVariable>>,
}

/// The label that the Job controller sets on the pods of Jobs.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// The environment variable of an uploader that contains the upload URL.
pub const UPLOAD_DESTINATION: &str = "DESTINATION_URL";

/// The fields of an environment variable that we read.
#[apply(foreign_part)]
pub struct JobVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Optional<String>,
}

fn destination<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<JobVariable>, D::Error> {
    kept(deserializer, |variable: &JobVariable| variable.name == UPLOAD_DESTINATION)
}

/// The spec fields of a Job pod that we read.
#[apply(foreign_part)]
pub struct JobPod {
    /// The containers of the pod.
    pub containers: Vec<JobContainer>,
}

/// The fields of a pod template that we read.
#[apply(foreign_part)]
pub struct JobTemplate {
    /// The spec of the pods.
    pub spec: JobPod,
}

/// The fields of a Job's spec that we read.
#[apply(foreign_part)]
pub struct JobSpec {
    /// The template of its pods.
    pub template: JobTemplate,
}

/// The fields of a Job's status that we read.
#[apply(foreign_part)]
pub struct JobStatus {
    /// The number of its pods that are pending or running.
    pub active: Option<i32>,
    /// The number of its pods that are ready.
    pub ready: Option<i32>,
    /// The number of its pods that have succeeded.
    pub succeeded: Option<i32>,
    /// The number of its pods that have failed.
    pub failed: Option<i32>,
    /// The time when the Job controller started the Job.
    pub start_time: Option<Time>,
    /// The time when the Job completed.
    pub completion_time: Option<Time>,
    /// The conditions `Complete` and `Failed`, if they are true. All others are dropped during decoding.
    #[serde(deserialize_with = "ends")]
    pub conditions: Vec<ForeignCondition>,
}

fn ends<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| {
        ["Complete", "Failed"].contains(&&*condition.type_) && condition.status == "True"
    })
}
kind!(/// A Job.
    JobKind, Job, "batch", "v1", "Job", "jobs", namespaced: true, JobSpec, JobStatus, encoded: true);

impl Job {
    /// Whether one of its pods is ready, so the Job is running.
    pub fn is_ready(&self) -> bool {
        self.status.ready.unwrap_or(0) > 0
    }

    /// Returns the result of the Job, from the first of its final conditions; `None` while it is not finished.
    pub fn end(&self) -> Option<JobEnd<'_>> {
        let condition = self.status.conditions.first()?;
        Some(if condition.type_ == "Complete" { JobEnd::Complete } else { JobEnd::Failed(condition) })
    }
}

/// The result of a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd<'a> {
    /// The Job has succeeded.
    Complete,
    /// The Job has failed, for the reason in the condition.
    Failed(&'a ForeignCondition),
}

/// The status fields of a Job pod that we read.
#[apply(foreign_part)]
pub struct PodOfJobStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// The condition `PodScheduled`, if it is false. All others are dropped during decoding.
    #[serde(deserialize_with = "super::core::unscheduled")]
    pub conditions: Optional<Vec<ForeignCondition>>,
    /// The init containers.
    pub init_container_statuses: Optional<Vec<ContainerStatus>>,
    /// The containers.
    pub container_statuses: Optional<Vec<ContainerStatus>>,
}

kind!(/// A pod of a Job.
    PodOfJobKind, PodOfJob, "", "v1", "Pod", "pods", namespaced: true, Unread, PodOfJobStatus, encoded: true);

kind!(/// A Secret. Only the metadata is read, to see whether it exists.
    SecretNameKind, SecretName, "", "v1", "Secret", "secrets", namespaced: true, Unread, Unread);
