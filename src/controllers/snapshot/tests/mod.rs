//! Tests of decisions, the Job and reports, with JSON as the API server returns it.

mod decide;
mod job;
mod report;
mod trouble;

use std::sync::Arc;

use serde_json::{Value, json};

use super::decide::{Decision, Export, decide};
use super::observe::Observed;
use crate::api::Object;
use crate::config::{Layout, SnapshotConfig};
use crate::fixtures::{now, object};
use crate::kinds::JobKind;
use crate::runtime::children::Children;
use crate::runtime::merge;
use crate::runtime::object_events::Events;

fn config() -> SnapshotConfig {
    SnapshotConfig {
        vm_registry: "registry.example.org".to_owned(),
        vm_registry_secret: "registry-credentials".to_owned(),
        ..SnapshotConfig::default()
    }
}

fn snapshot(more: &Value) -> Value {
    let mut snapshot = json!({
        "metadata": {
            "name": "snap.one", "namespace": "tenant-ada", "uid": "s1", "generation": 1,
            "creationTimestamp": "2026-03-04T05:00:00Z",
        },
        "spec": {"instanceRef": {"name": "my.box"}, "imageName": "my-image"},
    });
    merge::apply(&mut snapshot, more);
    snapshot
}

fn template(environments: &Value) -> Value {
    json!({
        "metadata": {"name": "box", "namespace": "workspace-tea"},
        "spec": {"environmentList": environments},
    })
}

/// A snapshot of a stopped machine, with further members of the snapshot and of the Instance.
fn observed(more: &Value, of_instance: &Value) -> Observed {
    let mut instance = json!({
        "metadata": {"name": "my.box", "namespace": "tenant-ada", "uid": "i1"},
        "spec": {
            "running": false,
            "template.crownlabs.polito.it/TemplateRef": {"name": "box", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "Ada.L"},
        },
    });
    merge::apply(&mut instance, of_instance);
    let main = json!([{"name": "main", "environmentType": "VirtualMachine", "persistent": true}]);
    Observed {
        snapshot: object(snapshot(more)),
        instance: Some(object(&instance)),
        template: Some(object(template(&main))),
        children: Children::default(),
        job_pods: Vec::new(),
        events: Events::Unknown,
        has_secret: true,
        machines: vec![object(json!({"metadata": {"name": "my-box", "namespace": "tenant-ada"}}))],
        running: Vec::new(),
        disks: Vec::new(),
        pods: Vec::new(),
        others: Vec::new(),
        namespace_tenant: Some("Ada.L".to_owned()),
        repository_owner: None,
        layout: Layout::Classic,
    }
}

fn usual() -> Observed {
    observed(&json!({}), &json!({}))
}

fn export() -> Export {
    Export {
        disk: "my-box".to_owned(),
        destination: "registry.example.org/adal/my-image:20260304t050607".to_owned(),
    }
}

fn next(observed: &Observed) -> Decision {
    decide(observed, &config(), now())
}

/// The observation with the Job of the snapshot in this status.
fn with_job(mut observed: Observed, status: &Value) -> Observed {
    let desired = super::children::job(&observed, &config(), &export()).made();
    let mut made = desired.manifest.as_ref().expect("a Job").json().clone();
    made["metadata"]["uid"] = "j1".into();
    made["status"] = status.clone();
    observed.children.set::<JobKind>([object(&made)]);
    observed
}
