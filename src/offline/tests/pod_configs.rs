//! Hostile `PodConfig`s: each fault is reported, and no object is made except the sample in the same namespace.

use super::*;

/// A configuration with only the `PodConfig` loop.
fn alone() -> Config {
    let mut config = Config::default();
    let controllers = &mut config.controllers;
    for enabled in [
        &mut controllers.workspace.enabled,
        &mut controllers.tenant.enabled,
        &mut controllers.instance.enabled,
        &mut controllers.public_exposure.enabled,
        &mut controllers.shared_volume.enabled,
        &mut controllers.snapshot.enabled,
    ] {
        *enabled = false;
    }
    controllers.pod_config.enabled = true;
    controllers.pod_config.reserved_cidrs = vec!["10.96.0.0/12".to_owned()];
    config
}

fn sampled() -> Vec<Value> {
    let files = [
        include_str!("../../../manifests/samples/podconfig/podconfig-a.yaml"),
        include_str!("../../../manifests/samples/podconfig/podconfig-b.yaml"),
    ];
    files.iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).expect("YAML")).collect()
}

#[test]
fn no_value_of_any_field_makes_anything_but_a_sample_in_the_same_namespace() {
    let (config, documents) = (alone(), sampled());
    let usual = made(&plan_documents(named(&documents), &config).expect("the samples"), &documents);
    assert_eq!(usual.len(), 2, "{usual:?}");
    let allowed: BTreeSet<_> = [("PodConfig".to_owned(), "cnf-test".to_owned())].into();
    let trial = Trial { config: &config, documents: &documents, allowed: &allowed };
    let cases: Vec<_> = cases().into_iter().filter(|(kind, _, _)| kind == "PodConfig").collect();
    assert!(cases.len() > 200, "{} values", cases.len());
    let faults: Vec<String> = cases.iter().flat_map(|case| trial.faults(case, true)).collect();
    let first: Vec<&String> = faults.iter().take(20).collect();
    assert!(faults.is_empty(), "{} faults: {first:#?}", faults.len());
}

/// The messages about a `PodConfig` with this spec, next to a valid one.
fn said(spec: &Value) -> String {
    let mut liar = json!({"apiVersion": "podconfig.opdev.io/v1alpha1", "kind": "PodConfig",
        "metadata": {"name": "zz-liar", "namespace": "cnf-test"}});
    liar["spec"] = spec.clone();
    let documents = [sampled(), vec![liar]].concat();
    let output = plan_documents(named(&documents), &alone()).expect("it is read");
    let samples = output.objects.iter().filter(|object| object["kind"] == "Deployment").count();
    assert!(samples >= 2, "the others are still planned: {output:?}");
    let about = |name: &str| {
        let begin = format!("PodConfig cnf-test/{name}: ");
        output
            .messages
            .iter()
            .filter(|message| message.starts_with(&begin))
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(about("podconfig-sample-a"), "", "it has no fault");
    about("zz-liar")
}

#[test]
fn the_faults_of_a_hostile_pod_config_are_reported() {
    let attachment = |changed: &Value| {
        let mut one =
            json!({"name": "x", "linkType": "veth", "parent": "", "master": "br9", "cidr": "10.9.0.0/24"});
        merge::apply(&mut one, changed);
        json!({"networkAttachments": [one]})
    };
    assert_eq!(said(&attachment(&json!({}))), "", "this one is valid");
    let many: Vec<Value> = (0..5_000)
        .map(|n| json!({"name": format!("a{n}"), "linkType": "veth", "parent": "", "master": "br", "cidr": "10.8.0.0/24"}))
        .collect();
    for (spec, parts) in [
        (attachment(&json!({"name": "../../proc"})), "name \"../../proc\""),
        (attachment(&json!({"name": "%n%n"})), "name \"%n%n\""),
        (attachment(&json!({"name": "a".repeat(100_000)})), "is too long"),
        (attachment(&json!({"master": "br0; reboot"})), "master \"br0; reboot\""),
        (attachment(&json!({"linkType": "ipvlan"})), "linkType \"ipvlan\" is not supported"),
        (attachment(&json!({"cidr": "0.0.0.0/0"})), "cidr \"0.0.0.0/0\""),
        (attachment(&json!({"cidr": "10.9.0.0/33"})), "cidr \"10.9.0.0/33\""),
        (attachment(&json!({"cidr": "10.100.0.0/16"})), "10.96.0.0/12"),
        (attachment(&json!({"cidr": "192.168.0.0/16"})), "PodConfig"),
        (json!({"networkAttachments": many}), "has 5000 entries"),
        (json!({"networkAttachments": "all"}), "networkAttachments"),
        (json!({"networkAttachments": [7]}), "networkAttachments"),
        (json!({"sampleDeployment": {"create": true, "name": "kube-system/x"}}), "kube-system/x"),
    ] {
        let said = said(&spec);
        let begin: String = spec.to_string().chars().take(200).collect();
        assert!(said.contains(parts), "{begin}: {parts} is not in {said}");
        assert!(said.len() < 20_000, "{begin}: {} bytes", said.len());
    }
}
