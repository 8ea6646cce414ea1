//! The fields of our CRDs in the API server's OpenAPI document, and the fields of both earlier generations of CRDs. The
//! relay of a dashboard builds its queries from that document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;

/// Type and values of a field, by kind, version and path.
type Fields = BTreeMap<String, String>;

/// Every field of one of the generations, with the generation.
fn known() -> Vec<(String, String, &'static str)> {
    let lines = include_str!("../recorded/fields.txt").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let [kind, version, path, type_, values, generation] =
            line.split(' ').collect::<Vec<_>>().try_into().expect("six columns");
        (format!("{kind} {version} {path}"), format!("{type_} {values}"), generation)
    };
    lines.map(read).collect()
}

/// The fields of a schema below `path`.
fn walk(path: &str, schema: &Value, found: &mut Fields) {
    let type_ = match schema["type"].as_str() {
        _ if schema["x-kubernetes-int-or-string"] == true => "intOrString",
        Some("object") if schema["additionalProperties"].is_object() => "map",
        Some(type_) => type_,
        None => "any",
    };
    let mut values: Vec<&str> =
        schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = if values.is_empty() { "-".to_owned() } else { values.join(",") };
    found.insert(path.to_owned(), format!("{type_} {values}"));
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), inner, found);
    }
    for (member, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[member].is_object() {
            walk(&format!("{path}{mark}"), &schema[member], found);
        }
    }
}

/// The fields that the API server serves.
fn served(lab: &Lab) -> Fields {
    let mut found = Fields::new();
    for version in ["v1alpha1", "v1alpha2"] {
        let path = format!("/openapi/v3/apis/crownlabs.polito.it/{version}");
        let document: Value = serde_json::from_str(&lab.kubectl(&["get", "--raw", &path])).expect("JSON");
        for schema in document["components"]["schemas"].as_object().into_iter().flat_map(|all| all.values()) {
            let of = &schema["x-kubernetes-group-version-kind"][0];
            let (Some("crownlabs.polito.it"), Some(kind)) = (of["group"].as_str(), of["kind"].as_str())
            else {
                continue;
            };
            for part in ["spec", "status"] {
                walk(&format!("{kind} {version} {part}"), &schema["properties"][part], &mut found);
            }
        }
    }
    found
}

/// The fields that differ from a generation.
fn differences(served: &Fields) -> BTreeSet<String> {
    let differs = |(field, had, generation): (String, String, &str)| match served.get(&field) {
        Some(has) if *has == had => None,
        Some(has) => Some(format!("{field}: {has}, {generation}: {had}")),
        None => Some(format!("{field} is not served, {generation}: {had}")),
    };
    known().into_iter().filter_map(differs).collect()
}

#[test]
fn every_field_of_both_generations_is_served_as_it_was() {
    let lab = Lab::start(ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() });
    // LocalVM is a type of the newer generation.
    let environments = "Template v1alpha2 spec.environmentList[].environmentType: string \
                        CloudVM,Container,LocalVM,Standalone,VirtualMachine, 2025-10: string \
                        CloudVM,Container,Standalone,VirtualMachine";
    let cpu = ["Tenant v1alpha2 spec.personalWorkspace.cpu", "Workspace v1alpha1 spec.quota.cpu"];
    // The older generation uses quantities, the newer one whole numbers.
    let amounts = cpu.map(|field| format!("{field}: intOrString -, 2026-08: integer -"));
    let expected = |more: &[String]| -> BTreeSet<String> {
        more.iter().cloned().chain([environments.to_owned()]).collect()
    };
    let found = served(&lab);
    assert!(found.len() > 250, "{found:#?}");
    assert_eq!(differences(&found), expected(&amounts));
    // With the CRDs of whole numbers, the newer generation finds all its fields unchanged.
    lab.apply(&crownlabs::crds(true));
    let whole = [format!("{}: integer -, 2025-10: intOrString -", cpu[1])];
    wait_until(PATIENCE, || {
        let found = differences(&served(&lab));
        (found == expected(&whole)).then_some(()).ok_or_else(|| format!("{found:#?}"))
    });
}
