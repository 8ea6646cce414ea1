//! Instances with several environments, and objects of the Go operator that supports them.

use super::*;
use crate::config::{GatewayApi, ParentRef};
use crate::kinds::{
    DataVolumeKind, HttpRouteKind, PersistentVolumeClaimKind, SecretKind, VirtualMachineKind,
};

/// A configuration with routes.
fn routed() -> InstanceConfig {
    let parent = ParentRef { name: "labs".to_owned(), namespace: "gateways".to_owned() };
    let gateway_api = GatewayApi { enabled: true, parent_refs: vec![parent], ..GatewayApi::default() };
    InstanceConfig { gateway_api, ..InstanceConfig::classic() }
}

/// A web application, a container with a disk, and a virtual machine with a disk.
fn three() -> Observed {
    let mut observed = observed(json!([
        environment("web", "Standalone", json!({})),
        environment("box", "Container", json!({"persistent": true})),
        environment("vm", "VirtualMachine", json!({"persistent": true})),
    ]));
    observed.has_routes = true;
    observed
}

/// The objects that the Go operator creates for [`three`], under its names.
fn made_by_the_go_operator() -> Children {
    let names = ["my-lab-web", "my-lab-box", "my-lab-vm"];
    let replicas = json!({"replicas": 1});
    Children::default()
        .with(names.map(|name| owned::<ServiceKind>(name, json!({"clusterIP": "None"}))))
        .with(names.map(|name| owned::<IngressKind>(name, json!({}))))
        .with(names.map(|name| owned::<HttpRouteKind>(name, json!({}))))
        .with([owned::<SecretKind>("my-lab", json!({}))])
        .with([owned::<PersistentVolumeClaimKind>("my-lab-box", json!({}))])
        .with(["my-lab-web", "my-lab-box"].map(|name| owned::<DeploymentKind>(name, replicas.clone())))
        .with([owned::<VirtualMachineKind>("my-lab-vm", json!({"running": true}))])
        .with([owned::<DataVolumeKind>("my-lab-vm", json!({}))])
}

#[test]
fn with_several_environments_every_object_has_the_name_of_instance_and_environment() {
    let plan = plan(&three(), &routed(), Timestamp::UNIX_EPOCH);
    assert!(plan.problems.is_empty(), "{:?}", plan.problems);
    assert_eq!(
        names(&plan),
        [
            "Service my-lab-web",
            "HTTPRoute my-lab-web",
            "Ingress my-lab-web",
            "Deployment my-lab-web",
            "Service my-lab-box",
            "HTTPRoute my-lab-box",
            "Ingress my-lab-box",
            "PersistentVolumeClaim my-lab-box",
            "Deployment my-lab-box",
            "Service my-lab-vm",
            "HTTPRoute my-lab-vm",
            "Ingress my-lab-vm",
            "Secret my-lab-vm",
            "VirtualMachine my-lab-vm",
        ]
    );
}

#[test]
fn objects_of_the_newest_go_operator_are_adopted_and_not_created_twice() {
    let mut observed = three();
    observed.children = made_by_the_go_operator();
    for fixed in [json!([]), json!([{"name": "web"}, {"name": "box"}, {"name": "vm"}])] {
        observed.instance = edit(&observed.instance, &json!({"status": {"environments": fixed}}));
        let plan = plan(&observed, &routed(), Timestamp::UNIX_EPOCH);
        assert!(plan.problems.is_empty() && plan.remove.is_empty(), "{:?} {:?}", plan.problems, plan.remove);
        let made: Vec<String> = plan
            .ensure
            .iter()
            .filter(|desired| desired.manifest.is_some() && desired.kind.kind != "Secret")
            .map(|desired| format!("{} {}", desired.kind.kind, desired.key.name))
            .collect();
        assert_eq!(made, [""; 0]);
        assert_eq!(plan.ensure.len(), 14);
        // That operator has one cloud-init Secret for all machines, and the last machine overwrites it. Here, each
        // machine has its own.
        let secrets = plan.ensure.iter().filter(|desired| desired.kind.kind == "Secret");
        assert_eq!(secrets.map(|secret| &*secret.key.name).collect::<Vec<_>>(), ["my-lab-vm"]);
    }
}

#[test]
fn a_stop_removes_objects_of_the_newest_go_operator() {
    let mut observed = three();
    observed.children = made_by_the_go_operator();
    observed.instance = edit(&observed.instance, &json!({"spec": {"running": false}}));
    let plan = planned(&observed);
    let removed: Vec<String> =
        plan.remove.iter().map(|removal| format!("{} {}", removal.kind.kind, removal.key.name)).collect();
    let of = |name: &str| ["Service", "Ingress", "HTTPRoute"].map(|kind| format!("{kind} {name}"));
    assert_eq!(removed, [of("my-lab-web"), of("my-lab-box"), of("my-lab-vm")].concat());
}

#[test]
fn a_single_environment_keeps_the_name_of_the_first_object_that_was_made() {
    // Only the Service was created before the takeover; the quota rejected the rest.
    let mut observed = observed(json!([environment("web", "Standalone", json!({}))]));
    observed.children.set::<ServiceKind>(vec![owned::<ServiceKind>("my-lab-web", json!({}))]);
    assert_eq!(
        names(&planned(&observed)),
        ["Service my-lab-web", "Ingress my-lab-web", "Deployment my-lab-web"]
    );
    // The Service of a public exposure shows nothing.
    let exposure = json!({"metadata": {"labels": {"crownlabs.polito.it/component": "pe"}}});
    observed.children.set::<ServiceKind>(vec![edit(observed.children.first::<ServiceKind>(), &exposure)]);
    assert_eq!(names(&planned(&observed)), ["Service my-lab", "Ingress my-lab-app", "Deployment my-lab"]);
}

#[test]
fn without_the_gateway_api_a_route_stays_until_its_ingress_has_an_address() {
    let ingress = |addresses: Value| {
        let made = owned::<IngressKind>("my-lab-app", json!({}));
        edit(&made, &json!({"status": {"loadBalancer": {"ingress": addresses}}}))
    };
    for (running, ingress, gone, ensured) in [
        (true, None, &[][..], 3),
        (true, Some(ingress(json!([]))), &[], 3),
        (true, Some(ingress(json!([{"ip": "10.0.0.1"}]))), &["HTTPRoute my-lab"], 3),
        (false, None, &["HTTPRoute my-lab"], 1),
    ] {
        let mut observed = observed(json!([environment("main", "Standalone", json!({}))]));
        observed.instance = edit(&observed.instance, &json!({"spec": {"running": running}}));
        observed.has_routes = true;
        observed.children.set::<HttpRouteKind>(vec![owned::<HttpRouteKind>("my-lab", json!({}))]);
        observed.children.set::<IngressKind>(ingress);
        let plan = planned(&observed);
        let removed: Vec<String> =
            plan.remove.iter().map(|removal| format!("{} {}", removal.kind.kind, removal.key.name)).collect();
        assert_eq!(removed, gone, "running: {running}");
        assert_eq!(plan.ensure.len(), ensured, "{:?}", names(&plan));
    }
}

#[test]
fn labels_and_name_are_set_also_without_an_environment() {
    let mut observed = observed(json!([]));
    observed.instance = edit(&observed.instance, &json!({"spec": {"prettyName": null}}));
    let plan = planned(&observed);
    let patch = &plan.patches.first().expect("labels and name").patch;
    let set = &patch["metadata"]["labels"];
    assert_eq!(set[labels::MANAGED_BY], "instance");
    assert_eq!(set[labels::TEMPLATE], "t");
    assert_eq!(set[labels::WORKSPACE], "w");
    assert_eq!(set[labels::PERSISTENT], "false");
    assert_eq!(set[labels::HAS_NODE_SELECTOR], "false");
    assert!(patch["spec"]["prettyName"].as_str().is_some_and(|name| name.contains(' ')), "{patch}");
    assert_eq!(plan.problems[0].reason, "InvalidTemplate");
    assert!(plan.ensure.is_empty() && plan.remove.is_empty());
}

#[test]
fn foreign_keys_in_the_cloud_init_secret_are_removed() {
    let mut observed = observed(json!([environment("main", "VirtualMachine", json!({}))]));
    let secret = object::<SecretKind>(json!({
        "metadata": owned::<SecretKind>("my-lab", json!({})).metadata.clone(),
        "data": {"userdata": "b2xk", "networkdata": "YWRkZWQ="},
    }));
    observed.children.set::<SecretKind>(vec![secret]);
    let plan = planned(&observed);
    let found = plan.ensure.iter().find(|desired| desired.kind.kind == "Secret").expect("the Secret");
    let data = found.fields["data"].as_object().expect("enforced data");
    assert_eq!(data["networkdata"], Value::Null);
    assert!(
        data.contains_key("networkdata") && data["userdata"].is_string() && data["x-shellscript"].is_string()
    );
    assert_eq!(data.len(), 3);
    assert!(found.manifest.is_none(), "it exists");
}
