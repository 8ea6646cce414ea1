//! Jobs: the arguments of their containers, their result, and their pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ForeignCondition, Unread, kind};

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
    /// The number of its pods that have failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<i32>,
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
    conditions_with(deserializer, &["Complete", "Failed"], "True")
}

/// The conditions of these types that have this status.
fn conditions_with<'de, D: Deserializer<'de>>(
    deserializer: D,
    types: &[&str],
    status: &str,
) -> Result<Vec<ForeignCondition>, D::Error> {
    let mut conditions = Option::<Vec<ForeignCondition>>::deserialize(deserializer)?.unwrap_or_default();
    conditions.retain(|condition| types.contains(&condition.type_.as_str()) && condition.status == status);
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

/// The fields that we read of the status of a pod of a Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodOfJobStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// The condition `PodScheduled`, if it is false. All others are dropped while decoding.
    #[serde(deserialize_with = "unscheduled", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ForeignCondition>,
    /// The init containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// The containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub container_statuses: Vec<ContainerStatus>,
}

fn unscheduled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    conditions_with(deserializer, &["PodScheduled"], "False")
}

/// The fields that we read of the status of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The name of the container.
    pub name: String,
    /// What it does now.
    pub state: ContainerState,
    /// How it ended before it was started again.
    pub last_state: ContainerState,
}

/// The state of a container: one of these, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<ContainerWaiting>,
    /// It runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Unread>,
    /// It has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<ContainerTerminated>,
}

/// Why a container waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerWaiting {
    /// The reason, as one word.
    pub reason: String,
    /// The explanation.
    pub message: String,
}

/// How a container has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerTerminated {
    /// Its exit code.
    pub exit_code: i32,
    /// The reason, as one word, for example `OOMKilled`.
    pub reason: String,
    /// Its termination message, or the end of its log.
    pub message: String,
    /// When it ended.
    pub finished_at: Option<Time>,
}
kind!(/// A pod of a Job.
    PodOfJobKind, PodOfJob, "", "v1", "Pod", "pods", namespaced: true, Unread, PodOfJobStatus, encoded: true);

kind!(/// A Secret, of which only the metadata is read: whether it exists.
    SecretNameKind, SecretName, "", "v1", "Secret", "secrets", namespaced: true, Unread, Unread);
