//! Jobs: the arguments of their containers and their result.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ForeignCondition, kind};

/// The fields that we read of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobContainer {
    /// The arguments of its entry point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

/// The fields that we read of the spec of a Job's pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobPod {
    /// The containers of the pod.
    pub containers: Vec<JobContainer>,
}

/// The fields that we read of a pod template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    /// The spec of the pods.
    pub spec: JobPod,
}

/// The fields that we read of the spec of a Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    /// The template of its pods.
    pub template: JobTemplate,
}

/// The fields that we read of the status of a Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// The number of its pods that are pending or running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<i32>,
    /// The number of its pods that have succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<i32>,
    /// The time at which the Job controller started the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// The time at which the Job was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The conditions `Complete` and `Failed`, if they are true. All others are dropped while decoding.
    #[serde(deserialize_with = "ends")]
    pub conditions: Vec<ForeignCondition>,
}

fn ends<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    let mut conditions = Option::<Vec<ForeignCondition>>::deserialize(deserializer)?.unwrap_or_default();
    conditions.retain(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    });
    Ok(conditions)
}
kind!(/// A Job.
    JobKind, Job, "batch", "v1", "Job", "jobs", namespaced: true, JobSpec, JobStatus, encoded: true);

impl Job {
    /// The result of the Job, from the first of its final conditions; `None` while it is not finished.
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
    /// The Job has failed; the condition says why.
    Failed(&'a ForeignCondition),
}
