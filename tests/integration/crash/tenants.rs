//! The daemon dies after any of its writes about Tenants and Workspaces, and the world comes out the same.

use serde_json::Value;

use super::{Scenario, crash_after};
use crate::cluster::Options as ClusterOptions;
use crate::cluster::proxy::{Fault, everything};
use crate::keycloak::realm::Realm;
use crate::keycloak::tenants::{integration, roles, user};
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
    // The account is another one each time.
    for place in ["/status/keycloak/userCreated/name", "/status/keycloak/actionMail/user"] {
        if let Some(id) = object.pointer_mut(place) {
            *id = "set".into();
        }
    }
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        // In which moment a connection broke is nothing to compare.
        if condition["message"].as_str().is_some_and(|message| message.contains("Keycloak cannot be reached"))
        {
            condition["message"] = "Keycloak cannot be reached".into();
        }
    }
    if object["kind"] != "Tenant" && object["kind"] != "Workspace" {
        object.as_object_mut().expect("an object").remove("status");
    }
    // A namespace that is being emptied.
    if object["kind"] == "Namespace" {
        object.as_object_mut().expect("an object").remove("spec");
    }
    object
}

/// With a Keycloak that is there for the creation, away for the deletion, and there again: what was made
/// there is gone in the end as everything else is.
fn come_and_go(name: &'static str, chosen: impl Fn(u64) -> bool) {
    let lab = Lab::start(ClusterOptions { play: false, ..ClusterOptions::default() });
    let realm = Realm::new(name);
    let config = format!(
        "controllers: {{instance: {{enabled: false}}, publicExposure: {{enabled: false}}, \
         tenant: {{waitUserVerification: false, myDrive: {{onTenantDeletion: delete}}}}}}\n{}",
        integration(&realm)
    );
    let scenario = Scenario {
        name: "tenant and workspace",
        lab: "tcrash",
        steps: vec![
            Box::new(|lab| {
                // Of the time before.
                for namespace in ["workspace-crash-course", "tenant-crash-tenant", "sandbox-crash-tenant"] {
                    lab.await_gone("namespaces", "default", namespace);
                }
                assert_eq!((user(&realm, "crash.tenant"), roles(&realm)), (None, Vec::new()));
                lab.apply(&workspace("tcrash", "crash-course", "immediate"));
            }),
            Box::new(|lab| {
                let entries = ", createSandbox: true, workspaces: [{name: crash-course, role: candidate}]";
                lab.apply(&tenant("tcrash", "crash.tenant", entries));
            }),
            Box::new(|lab| {
                realm.proxy.set(Fault::Break { matching: everything() });
                lab.kubectl(&["delete", "workspace", "crash-course", "--wait=false"]);
            }),
            Box::new(|lab| {
                lab.kubectl(&["delete", "tenant", "crash.tenant", "--wait=false"]);
            }),
            Box::new(|lab| {
                realm.proxy.set(Fault::None);
                for object in ["workspace/crash-course", "tenant/crash.tenant"] {
                    // The next try may be a while away; unless it has just been made, and it is gone.
                    let _ = lab.try_kubectl(&["annotate", object, "look=again"], "");
                }
            }),
        ],
        look: Box::new(belongings),
        is_complete: |object| {
            object["kind"] != "Tenant" || object["status"]["keycloak"]["userCreated"]["created"] == true
        },
        configs: &[&config],
    };
    let writes = crash_after(&lab, &scenario, chosen);
    assert!(writes >= 25, "only {writes} writes");
    assert_eq!((user(&realm, "crash.tenant"), roles(&realm)), (None, Vec::new()));
    println!("{writes} writes");
}

// In two halves, which run at the same time: each deletion of a namespace takes the controller manager
// more than five seconds.
#[test]
fn tenants_and_workspaces_survive_a_crash_after_every_odd_write() {
    come_and_go("crash-odd", |n| n % 2 == 1);
}

#[test]
fn tenants_and_workspaces_survive_a_crash_after_every_even_write() {
    come_and_go("crash-even", |n| n % 2 == 0);
}
