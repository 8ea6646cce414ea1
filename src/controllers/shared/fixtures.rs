//! Fixtures for the unit tests of several loops.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::api::instance::{Instance, InstanceKind};
use crate::runtime::merge;
use crate::runtime::reconciler::Report;

/// A running Instance that was created at this time.
pub fn running_instance(created: Timestamp) -> Instance {
    let mut instance: Instance = serde_json::from_value(json!({
        "metadata": {"name": "box", "namespace": "tenant-ada", "uid": "u1", "generation": 1, "resourceVersion": "7"},
        "spec": {
            "running": true,
            "template.crownlabs.polito.it/TemplateRef": {"name": "vm", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
        },
    }))
    .expect("an Instance");
    instance.metadata.creation_timestamp = Some(Time(created));
    instance
}

/// Writes a report to its Instance. Returns whether anything was written.
pub fn write(report: Report<InstanceKind>, instance: &mut Arc<Instance>) -> bool {
    let mut object = serde_json::to_value(&**instance).expect("JSON");
    if let Some(patch) = &report.patch {
        merge::apply(&mut object, &patch.patch);
    }
    let mut after: Instance = serde_json::from_value(object).expect("an Instance");
    after.status = report.status;
    let is_new = report.patch.is_some() || after.status != instance.status;
    *instance = Arc::new(after);
    is_new
}
