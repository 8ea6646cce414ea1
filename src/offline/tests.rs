//! What users write, however hostile, is planned without a panic, and nothing is made under a name that nothing can have or
//! in a namespace of others.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaPropsOrArray;

use super::*;
use crate::api::crd::crds;
use crate::api::names::{check_dns_label, check_object_name};

/// Values that no text of a user should have.
fn texts() -> Vec<Value> {
    let long = ["a".repeat(70), "a".repeat(300), "ä".repeat(64), "9".repeat(400), "[".repeat(10_000)];
    let short = [
        "",
        " ",
        "my vm",
        "../../kube-system/secrets/x",
        "/",
        ".",
        "..",
        "x?y=1",
        "x#y",
        "x%2Fy",
        "UPPER",
        "-a",
        "a.b.",
        "a\nb",
        "a\u{0}b",
        "\u{202e}exe",
        "${IFS}$(reboot)",
        "'; rm -rf / #",
        "{{ .Values }}",
        "- a: b",
        "true",
        "null",
        "-1",
        "1e309",
        "kube-system",
        "99999999999999999999999999h",
    ];
    short.into_iter().map(Value::from).chain(long.into_iter().map(Value::from)).collect()
}

/// Values that no number or switch should have.
fn others() -> Vec<Value> {
    let numbers = [i64::MIN, -1, 0, 1, 65_536, i64::from(u32::MAX), i64::MAX].map(Value::from);
    let wrong = [json!(null), json!(true), json!("1"), json!(0.5), json!([]), json!({}), json!(1e300)];
    numbers.into_iter().chain(wrong).collect()
}

/// The fields of a schema, as JSON pointers, and the values for each.
fn fields(schema: &JSONSchemaProps, place: &str, found: &mut Vec<(String, Vec<Value>)>) {
    for (name, member) in schema.properties.iter().flatten() {
        let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
        if !["/apiVersion", "/kind", "/metadata"].contains(&place.as_str()) {
            fields(member, &place, found);
        }
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        fields(item, &format!("{place}/0"), found);
    }
    if schema.additional_properties.is_some() {
        for text in texts().iter().filter_map(Value::as_str) {
            let name = text.replace('~', "~0").replace('/', "~1");
            found.push((format!("{place}/{name}"), vec![json!("text"), json!(-1)]));
        }
    }
    match schema.type_.as_deref() {
        Some("object" | "array") if !place.is_empty() => found.push((place.to_owned(), others())),
        Some("object") => {}
        Some("string") | None => {
            found.push((place.to_owned(), texts().into_iter().chain(others()).collect()));
        }
        Some(_) => found.push((place.to_owned(), others())),
    }
}

/// Sets a value, and what it is in.
fn set(document: &mut Value, pointer: &str, value: &Value) {
    let mut current = document;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if token == "0" {
            if !current.is_array() {
                *current = json!([{}]);
            }
            let list = current.as_array_mut().expect("a list");
            if list.is_empty() {
                list.push(json!({}));
            }
            current = &mut list[0];
        } else {
            if !current.is_object() {
                *current = json!({});
            }
            current = current.as_object_mut().expect("a map").entry(token).or_insert(Value::Null);
        }
    }
    *current = value.clone();
}

/// The objects of the samples, all of which the loops make something of.
fn samples() -> Vec<Value> {
    let files = [
        include_str!("../../manifests/samples/00-namespaces.yaml"),
        include_str!("../../manifests/samples/10-people.yaml"),
        include_str!("../../manifests/samples/20-templates.yaml"),
        include_str!("../../manifests/samples/30-instances.yaml"),
        include_str!("../../manifests/samples/40-storage.yaml"),
        include_str!("../../manifests/samples/optional/local-vm.yaml"),
        include_str!("../../manifests/samples/optional/public-exposure.yaml"),
        include_str!("../../manifests/samples/optional/snapshot.yaml"),
    ];
    files.iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).expect("YAML")).collect()
}

fn named(documents: &[Value]) -> Vec<(String, Value)> {
    documents.iter().map(|document| ("a file".to_owned(), document.clone())).collect()
}

/// The namespaces and names of what is made, without the objects that were given.
fn made(output: &Output, given: &[Value]) -> BTreeSet<(String, String, String)> {
    let text = |object: &Value, pointer: &str| {
        object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let name = |object: &Value| {
        (text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"))
    };
    let given: BTreeSet<_> = given.iter().map(name).collect();
    output.objects.iter().map(name).filter(|name| !given.contains(name)).collect()
}

/// The fields of all CRDs with the values for each: the kind, the place, and the value. The status is written by the loops,
/// and by nobody else but administrators: it gets every fifth value.
fn cases() -> Vec<(String, String, Value)> {
    let mut cases = Vec::new();
    for crd in crds() {
        let mut places = Vec::new();
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            fields(schema.expect("a schema"), "", &mut places);
        }
        let kind = crd.spec.names.kind;
        assert!(places.len() > 10, "{kind} has fields");
        for (place, values) in places {
            let step = if place.starts_with("/status") { 5 } else { 1 };
            let values = values.into_iter().step_by(step);
            cases.extend(values.map(|value| (kind.clone(), place.clone(), value)));
        }
    }
    cases
}

#[test]
fn no_value_of_any_field_escapes_its_namespace() {
    let config = Config::default();
    let samples = samples();
    let usual = plan_documents(named(&samples), &config).expect("the samples");
    let mut namespaces: BTreeSet<String> =
        made(&usual, &samples).into_iter().map(|(_, namespace, _)| namespace).collect();
    // A Tenant may ask for a sandbox.
    namespaces.insert("sandbox-ada-rossi".to_owned());
    // Nothing is made of the other kinds.
    let is_sampled = |kind: &str| samples.iter().any(|document| document["kind"] == kind);
    let cases: Vec<_> = cases().into_iter().filter(|(kind, _, _)| is_sampled(kind)).collect();
    assert!(cases.len() > 2_500, "{} values", cases.len());
    // What the Tenants get is planned anew only for the values that it depends on: it is the largest part of the plan.
    let mut without_tenants = config.clone();
    without_tenants.controllers.tenant.enabled = false;
    without_tenants.controllers.workspace.enabled = false;
    let drive = json!({"apiVersion": "v1", "kind": "Secret", "data": {"server-name": "bmZz", "path": "L2E="},
        "metadata": {"name": "mydrive-info", "namespace": "tenant-ada-rossi"}});
    let with_drives = [&samples[..], &[drive]].concat();
    let usual_of_others = plan_documents(named(&with_drives), &without_tenants).expect("the samples");
    assert!(made(&usual_of_others, &with_drives).len() > 10, "Instances and volumes are planned");
    let check = |(kind, place, value): &(String, String, Value)| {
        let is_of_tenants = ["Tenant", "Workspace"].contains(&kind.as_str());
        let (mut changed, config) =
            if is_of_tenants { (samples.clone(), &config) } else { (with_drives.clone(), &without_tenants) };
        // All objects of the kind get the value.
        for document in changed.iter_mut().filter(|document| document["kind"] == *kind) {
            set(document, place, value);
        }
        // What cannot be read at all is refused with a message.
        let Ok(output) = plan_documents(named(&changed), config) else { return };
        for (of, namespace, name) in made(&output, &changed) {
            let whole = format!("{kind} {place} = {value}: {of} {namespace}/{name}");
            assert!(namespaces.contains(&namespace), "in a namespace of others: {whole}");
            assert!(check_object_name(&name).is_ok(), "a name that nothing can have: {whole}");
            assert!(namespace.is_empty() || check_dns_label(&namespace).is_ok(), "{whole}");
        }
    };
    let (some, others) = cases.split_at(cases.len() / 2);
    std::thread::scope(|scope| {
        let half = scope.spawn(|| some.iter().for_each(check));
        others.iter().for_each(check);
        half.join().expect("no panic");
    });
}
