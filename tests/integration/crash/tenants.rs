//! The daemon dies after any of its writes about Tenants and Workspaces, and the world comes out the same.

use serde_json::Value;

use super::{Scenario, crash_after_every_write};
use crate::cluster::Options as ClusterOptions;
use crate::lab::Lab;
use crate::tenants::{KINDS, tenant, workspace};

/// Everything that belongs to Tenants and Workspaces, in the whole cluster.
fn belongings(lab: &Lab) -> Vec<Value> {
    let all = lab.list(KINDS, "");
    let owned = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let claim = object["metadata"]["namespace"] == "mydrive-pvcs";
        claim || owners.iter().any(|owner| owner["kind"] == "Tenant" || owner["kind"] == "Workspace")
    };
    let is_one = |object: &Value| object["kind"] == "Tenant" || object["kind"] == "Workspace";
    // What is being deleted is as good as gone: when it is gone is the controller manager's to say.
    let going = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    let ending: Vec<Value> = all
        .iter()
        .filter(|object| object["kind"] == "Namespace" && going(object))
        .map(|namespace| namespace["metadata"]["name"].clone())
        .collect();
    let stays = |object: &Value| {
        !ending.contains(&object["metadata"]["namespace"]) && (is_one(object) || !going(object))
    };
    all.into_iter().filter(|object| (is_one(object) || owned(object)) && stays(object)).map(settled).collect()
}

/// An object without what others write into it, at their own pace.
fn settled(mut object: Value) -> Value {
    if object["kind"] != "Tenant" && object["kind"] != "Workspace" {
        object.as_object_mut().expect("an object").remove("status");
    }
    // A namespace that is being emptied.
    if object["kind"] == "Namespace" {
        object.as_object_mut().expect("an object").remove("spec");
    }
    object
}

#[test]
fn tenants_and_workspaces_survive_a_crash_after_every_write() {
    let lab = Lab::start(ClusterOptions { play: false, ..ClusterOptions::default() });
    let scenario = Scenario {
        name: "tenant and workspace",
        lab: "tcrash",
        steps: vec![
            Box::new(|lab| {
                // Of the time before.
                for namespace in ["workspace-crash-course", "tenant-crash-tenant", "sandbox-crash-tenant"] {
                    lab.await_gone("namespaces", "default", namespace);
                }
                lab.apply(&workspace("tcrash", "crash-course", "immediate"));
            }),
            Box::new(|lab| {
                let entries = ", createSandbox: true, workspaces: [{name: crash-course, role: candidate}]";
                lab.apply(&tenant("tcrash", "crash.tenant", entries));
            }),
            Box::new(|lab| {
                lab.kubectl(&["delete", "workspace", "crash-course", "--wait=false"]);
            }),
            Box::new(|lab| {
                lab.kubectl(&["delete", "tenant", "crash.tenant", "--wait=false"]);
            }),
        ],
        look: Box::new(belongings),
        config: "controllers: {instance: {enabled: false}, tenant: {myDrive: {onTenantDeletion: delete}}}\n",
    };
    let writes = crash_after_every_write(&lab, &scenario);
    assert!(writes >= 25, "only {writes} writes");
    println!("{writes} crashes");
}
