//! The settings that isolate users from each other: who reaches whom, and changes of the settings while Instances run.

mod network;
mod reach;
mod settings;

use serde_json::{Value, json};

use crate::lab::instance;

/// An environment of a Template.
fn environment(kind: &str, mode: &str, is_persistent: bool) -> Value {
    let image = if kind == "CloudVM" { "https://i.example.org/vm.img" } else { "r.example.org/app:1" };
    json!({
        "name": "main", "environmentType": kind, "image": image, "mountMyDriveVolume": false, "mode": mode,
        "persistent": is_persistent,
        "resources": {"cpu": 1, "reservedCPUPercentage": 10, "memory": "64Mi", "disk": "1Gi"},
    })
}

/// An Instance of a Template of a course, in the personal namespace of a Tenant.
fn instance_of(course: &str, tenant: &str, name: &str, template: &str) -> String {
    let own = instance(course, name, template);
    let own = own.replace(&format!("namespace: tenant-{course}}}"), &format!("namespace: tenant-{tenant}}}"));
    own.replace(&format!("TenantRef: {{name: {course}}}"), &format!("TenantRef: {{name: {tenant}}}"))
}
