//! The privileges and the disk limits of container pods, and the paths that lead to them.

use super::*;

/// A configuration with a limit.
fn limited() -> InstanceConfig {
    InstanceConfig { ephemeral_storage: "10Gi".to_owned(), ..InstanceConfig::classic() }
}

/// An Instance of this type, with contents to download.
fn with_contents(kind: &str, more: Value) -> Observed {
    let mut observed = observed(json!([environment("main", kind, more)]));
    let contents = json!({"spec": {"contentUrls": {"main": {"origin": "https://x.example/a.zip"}}}});
    observed.instance = edit(&observed.instance, &contents);
    observed
}

/// The new object of a kind in the plan.
fn made(observed: &Observed, config: &InstanceConfig, kind: &str) -> Value {
    let plan = plan(observed, config, Timestamp::UNIX_EPOCH);
    assert!(plan.problems.is_empty(), "{:?}", plan.problems);
    let desired = plan.ensure.iter().find(|desired| desired.kind.kind == kind).expect("the object");
    desired.manifest.as_ref().expect("a new object").json().clone()
}

/// The spec of the pods, and its containers of both kinds.
fn pod(observed: &Observed, config: &InstanceConfig) -> (Value, Vec<Value>) {
    let pod = made(observed, config, "Deployment")["spec"]["template"]["spec"].clone();
    let of = |kind: &str| pod[kind].as_array().cloned().unwrap_or_default();
    let containers = [of("initContainers"), of("containers")].concat();
    (pod, containers)
}

#[test]
fn no_container_may_gain_a_right() {
    for (kind, count) in [("Container", 4), ("Standalone", 2)] {
        let (pod, containers) = pod(&with_contents(kind, json!({})), &InstanceConfig::classic());
        let context = &pod["securityContext"];
        assert_eq!(context["runAsNonRoot"], true);
        assert_eq!(context["seccompProfile"], json!({"type": "RuntimeDefault"}));
        assert_eq!(containers.len(), count, "{kind}");
        for container in containers {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false, "{container}");
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}), "{container}");
        }
    }
}

#[test]
fn the_disk_of_the_node_is_limited_if_configured() {
    let observed = with_contents("Container", json!({}));
    let (unlimited, containers) = pod(&observed, &InstanceConfig::classic());
    assert_eq!(unlimited["volumes"], json!([{"name": "persistent", "emptyDir": {}}]));
    assert!(containers.iter().all(|container| !container.to_string().contains("ephemeral")), "{unlimited}");
    let (pod_spec, containers) = pod(&observed, &limited());
    assert_eq!(pod_spec["volumes"], json!([{"name": "persistent", "emptyDir": {"sizeLimit": "10Gi"}}]));
    for container in &containers {
        let resources = &container["resources"];
        assert_eq!(resources["limits"]["ephemeral-storage"], "10Gi", "{container}");
        // Otherwise the request would equal the limit, and a few pods would fill the node.
        assert_eq!(resources["requests"]["ephemeral-storage"], "0", "{container}");
    }
    let (persistent, containers) = pod(&with_contents("Standalone", json!({"persistent": true})), &limited());
    assert!(persistent["volumes"][0].get("emptyDir").is_none(), "{persistent}");
    assert_eq!(containers[1]["resources"]["limits"]["ephemeral-storage"], "10Gi");
    // An amount in the Template takes precedence.
    let own = json!({"resources": {"otherResources": {"ephemeral-storage": "1Gi"}}});
    let (_, containers) = pod(&with_contents("Standalone", own), &limited());
    let own = json!([
        containers[1]["resources"]["limits"]["ephemeral-storage"],
        containers[1]["resources"]["requests"]["ephemeral-storage"]
    ]);
    assert_eq!(own, json!(["1Gi", "1Gi"]));
}

#[test]
fn a_deployment_that_exists_keeps_its_pods() {
    let mut observed = with_contents("Container", json!({}));
    observed.children.set::<DeploymentKind>(vec![owned::<DeploymentKind>("my-lab", json!({"replicas": 1}))]);
    let plan = plan(&observed, &limited(), Timestamp::UNIX_EPOCH);
    let desired = plan.ensure.iter().find(|desired| desired.kind.kind == "Deployment").expect("it");
    assert!(desired.manifest.is_none());
    assert_eq!(desired.fields, json!({"spec": {"replicas": 1}}));
}

/// An Ingress of the Instance with these paths, each with its type.
fn ingress(name: &str, paths: &[(&str, &str)]) -> Arc<Ingress> {
    let path = |(path, type_): &(&str, &str)| json!({"path": path, "pathType": type_, "backend": {"service": {"name": "my-lab", "port": {"name": "gui"}}}});
    let paths: Vec<Value> = paths.iter().map(path).collect();
    owned::<IngressKind>(name, json!({"rules": [{"host": "labs.example.org", "http": {"paths": paths}}]}))
}

#[test]
fn a_path_that_is_a_regular_expression_has_a_type_that_allows_it() {
    let path = |environments: Value| {
        let ingress = made(&observed(environments), &InstanceConfig::classic(), "Ingress");
        let path = &ingress["spec"]["rules"][0]["http"]["paths"][0];
        format!("{} {}", path["pathType"].as_str().expect("a type"), path["path"].as_str().expect("a path"))
    };
    let web = |more: Value| environment("main", "Standalone", more);
    assert_eq!(path(json!([web(json!({}))])), "Prefix /instance/u1/app");
    assert_eq!(
        path(json!([web(json!({"rewriteURL": true}))])),
        "ImplementationSpecific /instance/u1/app(/|$)(.*)"
    );
    let vm = environment("vm", "VirtualMachine", json!({}));
    assert_eq!(path(json!([vm])), "Prefix /instance/u1/vnc");
    assert_eq!(path(json!([vm, web(json!({}))])), "ImplementationSpecific /instance/u1/vm/(.*)");
}

#[test]
fn an_ingress_that_exists_gets_the_type_in_place_and_keeps_everything_else() {
    let mut observed = observed(json!([environment("main", "Standalone", json!({"rewriteURL": true}))]));
    let regex = "/instance/u1/app(/|$)(.*)";
    let fields = |observed: &Observed| {
        let plan = planned(observed);
        assert!(plan.remove.is_empty());
        let desired = plan.ensure.iter().find(|desired| desired.kind.kind == "Ingress").expect("it");
        assert!(desired.manifest.is_none());
        desired.fields.clone()
    };
    observed
        .children
        .set::<IngressKind>(vec![ingress("my-lab-app", &[("/mine", "Exact"), (regex, "Prefix")])]);
    let wanted = fields(&observed);
    let paths = &wanted["spec"]["rules"][0]["http"]["paths"];
    assert_eq!((&paths[0]["path"], &paths[0]["pathType"]), (&json!("/mine"), &json!("Exact")));
    assert_eq!((&paths[1]["path"], &paths[1]["pathType"]), (&json!(regex), &json!("ImplementationSpecific")));
    assert_eq!(paths[1]["backend"]["service"]["port"], json!({"name": "gui"}));
    assert_eq!(wanted["spec"]["rules"][0]["host"], "labs.example.org");
    for paths in [&[(regex, "ImplementationSpecific")][..], &[("/instance/u1/app", "Prefix")]] {
        observed.children.set::<IngressKind>(vec![ingress("my-lab-app", paths)]);
        assert_eq!(fields(&observed), Value::Null, "{paths:?}");
    }
}

#[test]
fn a_pod_has_no_token_and_nothing_of_its_node() {
    for kind in ["Container", "Standalone"] {
        let plan = planned(&observed(json!([environment("main", kind, json!({}))])));
        let made = plan.ensure.iter().find(|desired| desired.kind.kind == "Deployment").expect("it");
        let made = made.manifest.as_ref().expect("a new object").json();
        let pod = &made["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        let context = &pod["securityContext"];
        assert_eq!((&context["runAsUser"], &context["runAsNonRoot"]), (&json!(1010), &json!(true)));
        for member in ["serviceAccountName", "hostNetwork", "hostPID", "hostIPC"] {
            assert_eq!(pod[member], Value::Null, "{member}");
        }
        assert!(!pod["volumes"].to_string().contains("hostPath"), "{pod}");
        for container in pod["containers"].as_array().expect("containers") {
            let own = &container["securityContext"];
            assert_eq!(
                (&own["privileged"], &own["allowPrivilegeEscalation"]),
                (&json!(false), &json!(false))
            );
            assert_eq!((&own["capabilities"], &own["runAsUser"]), (&json!({"drop": ["ALL"]}), &Value::Null));
        }
    }
}
