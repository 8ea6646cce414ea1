//! The daemon is killed after its writes for Tenants and Workspaces; the resulting objects are the same.

use serde_json::Value;

use super::{Scenario, crash_after};
use crate::keycloak::realm::Realm;
use crate::keycloak::tenants::{integration, roles, user};
use crate::lab::Lab;
use crate::tenants::{KINDS, tenant, workspace};
use cluster::Options as ClusterOptions;
use cluster::proxy::{Fault, everything};

/// The Tenants, the Workspaces and all objects that they own, in the whole cluster.
fn owned_objects(lab: &Lab) -> Vec<Value> {
    let all = lab.list(KINDS, "");
    let owned = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let claim = object["metadata"]["namespace"] == "mydrive-pvcs";
        claim || owners.iter().any(|owner| owner["kind"] == "Tenant" || owner["kind"] == "Workspace")
    };
    let is_custom = |object: &Value| object["kind"] == "Tenant" || object["kind"] == "Workspace";
    // Objects that are being deleted are left out: the controller manager decides when they are gone.
    let is_terminating = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    let terminating: Vec<Value> = all
        .iter()
        .filter(|object| object["kind"] == "Namespace" && is_terminating(object))
        .map(|namespace| namespace["metadata"]["name"].clone())
        .collect();
    let stays = |object: &Value| {
        !terminating.contains(&object["metadata"]["namespace"])
            && (is_custom(object) || !is_terminating(object))
    };
    all.into_iter()
        .filter(|object| (is_custom(object) || owned(object)) && stays(object))
        .map(without_foreign_fields)
        .collect()
}

/// An object without the fields that other controllers write, which may differ from run to run.
fn without_foreign_fields(mut object: Value) -> Value {
    // Each run creates a new account.
    for place in ["/status/keycloak/userCreated/name", "/status/keycloak/actionMail/user"] {
        if let Some(id) = object.pointer_mut(place) {
            *id = "set".into();
        }
    }
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        // The rest of the message depends on when the connection broke.
        if condition["message"].as_str().is_some_and(|message| message.contains("Keycloak cannot be reached"))
        {
            condition["message"] = "Keycloak cannot be reached".into();
        }
    }
    if object["kind"] != "Tenant" && object["kind"] != "Workspace" {
        object.as_object_mut().expect("an object").remove("status");
    }
    // The controller manager changes the spec of a namespace.
    if object["kind"] == "Namespace" {
        object.as_object_mut().expect("an object").remove("spec");
    }
    object
}

/// Keycloak is available for the creation, unavailable for the deletion, and available again: in the end, its users and
/// roles are deleted like all other objects.
fn create_and_delete(name: &'static str, chosen: impl Fn(u64) -> bool) {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    let realm = Realm::new(name);
    let config = format!(
        "controllers: {{instance: {{enabled: false}}, publicExposure: {{enabled: false}}, \
         tenant: {{waitUserVerification: false, myDrive: {{onTenantDeletion: delete}}}}}}\n{}",
        integration(&realm)
    );
    let scenario = Scenario {
        name: "tenant and workspace",
        fixtures: "tcrash",
        steps: vec![
            Box::new(|lab| {
                // Objects of the previous run.
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
                lab.begin_delete("workspace", "", &["crash-course"]);
            }),
            Box::new(|lab| {
                lab.begin_delete("tenant", "", &["crash.tenant"]);
            }),
            Box::new(|lab| {
                realm.proxy.set(Fault::None);
                for object in ["workspace/crash-course", "tenant/crash.tenant"] {
                    // A mark that nothing waits for Keycloak any more. The object may be gone.
                    let _ = lab.try_kubectl(&["annotate", object, "look=again"], "");
                }
            }),
        ],
        list: Box::new(owned_objects),
        is_complete: |object| {
            // A few seconds after Keycloak is back, deleted objects are gone.
            object["metadata"]["annotations"]["look"].is_null()
                && (object["kind"] != "Tenant"
                    || object["status"]["keycloak"]["userCreated"]["created"] == true)
        },
        configs: &[&config],
    };
    let writes = crash_after(&lab, &scenario, chosen);
    assert!(writes >= 25, "only {writes} writes");
    assert_eq!((user(&realm, "crash.tenant"), roles(&realm)), (None, Vec::new()));
    println!("{writes} writes");
}

/// The personal volume of a Tenant is bound, prepared, kept when its Tenant is deleted, and given back to a Tenant with
/// the same name and address.
#[test]
fn a_personal_volume_survives_a_crash_after_every_third_write() {
    let lab = Lab::start(ClusterOptions::default());
    let create = |lab: &Lab| {
        lab.await_gone("namespaces", "default", "tenant-dcrash");
        lab.apply(&tenant("dcrash", "dcrash", ""));
    };
    let delete = |lab: &Lab| {
        lab.begin_delete("tenant", "", &["dcrash"]);
    };
    let scenario = Scenario {
        name: "personal volume",
        fixtures: "dcrash",
        steps: vec![
            Box::new(|lab| {
                // Objects of the previous run.
                lab.delete_all("persistentvolumeclaims", "mydrive-pvcs");
                lab.delete_all("job", "mydrive-pvcs");
                create(lab);
            }),
            Box::new(delete),
            Box::new(create),
            Box::new(delete),
        ],
        list: Box::new(|lab| {
            let mut secrets = lab.list("secrets", "tenant-dcrash");
            for secret in &mut secrets {
                // Each run has another volume at another path.
                let data = secret["data"].as_object_mut().into_iter().flatten();
                data.for_each(|(_, value)| *value = "set".into());
            }
            [owned_objects(lab), secrets].concat()
        }),
        is_complete: |object| match object["kind"].as_str() {
            Some("Tenant") => {
                object["status"]["ready"] == true && object["metadata"]["deletionTimestamp"].is_null()
            }
            Some("PersistentVolumeClaim") => {
                object["metadata"]["labels"]["crownlabs.polito.it/volume-provisioning"] == "completed"
            }
            _ => true,
        },
        configs: &["controllers: {instance: {enabled: false}, publicExposure: {enabled: false}}\n"],
    };
    let writes = crash_after(&lab, &scenario, |n| n % 3 == 0);
    assert!(writes >= 25, "only {writes} writes");
    println!("{writes} writes");
}

// Two halves that run at the same time, because the controller manager takes more than five seconds to delete a
// namespace.
#[test]
fn tenants_and_workspaces_survive_a_crash_after_every_odd_write() {
    create_and_delete("crash-odd", |n| n % 2 == 1);
}

#[test]
fn tenants_and_workspaces_survive_a_crash_after_every_even_write() {
    create_and_delete("crash-even", |n| n % 2 == 0);
}
