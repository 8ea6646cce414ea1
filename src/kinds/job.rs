//! Jobs: what they were told to do, and how far they are.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ForeignCondition, kind};

/// The part of a container that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobContainer {
    /// What its program is told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

/// The part of a pod that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobPod {
    /// Its containers.
    pub containers: Vec<JobContainer>,
}

/// The part of a pod's template that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    /// The pod.
    pub spec: JobPod,
}

/// The part of a Job's spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    /// What its pods are.
    pub template: JobTemplate,
}

/// The part of a Job's status that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// How many of its pods are there and have not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<i32>,
    /// How many of its pods have succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<i32>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// How it has ended, if it has: `Complete` or `Failed`. The other conditions tell us nothing.
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
    /// How it has ended, if it has: the first of its conditions that tells decides.
    #[must_use]
    pub fn end(&self) -> Option<JobEnd<'_>> {
        let condition = self.status.conditions.first()?;
        Some(if condition.type_ == "Complete" { JobEnd::Complete } else { JobEnd::Failed(condition) })
    }
}

/// How a Job has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd<'a> {
    /// All is done.
    Complete,
    /// It was given up; the condition says why.
    Failed(&'a ForeignCondition),
}
