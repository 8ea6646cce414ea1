//! Hostile values of users are planned without a panic, and no object is made with an invalid name or in a foreign
//! namespace.

mod image_lists;
mod kstatus;
mod names;
mod pod_configs;
mod shown_texts;

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};

use super::*;
use crate::api::crd::{crds, has_status};
use crate::api::image_list::ImageList;
use crate::api::names::{check_dns_label, check_object_name};
use crate::api::pod_config::PodConfig;

/// The maximum number of rounds with writes: objects that one loop creates may be prerequisites of another one.
const MOST_ROUNDS: u32 = 8;

/// One of this number of values is reconciled repeatedly, because that takes the most time.
const REPEATED: usize = 7;

/// The number of groups of the sample Instances. A value is tried on the Instances of one group, and the next value on
/// the next group: every field meets every type of machine, with a third of its values.
const GROUPS: usize = 3;

/// Plans the documents, each with the name of its file.
fn plan_documents(documents: Vec<(String, Value)>, config: &Config) -> anyhow::Result<Output> {
    Planning::new(documents, None, config)?.plan()
}

/// The documents with the Instances of only one group.
fn of_group(documents: &[Value], group: usize) -> Vec<Value> {
    let mut instances = 0;
    let mut is_in = |document: &Value| {
        let is_instance = document["kind"] == "Instance";
        instances += usize::from(is_instance);
        !is_instance || instances % GROUPS == group
    };
    documents.iter().filter(|document| is_in(document)).cloned().collect()
}

/// The time of all rounds.
fn now() -> jiff::Timestamp {
    static NOW: std::sync::OnceLock<jiff::Timestamp> = std::sync::OnceLock::new();
    *NOW.get_or_init(clock::now)
}

/// Invalid values for texts.
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

/// Invalid values for numbers and switches.
fn others() -> Vec<Value> {
    let numbers = [i64::MIN, -1, 0, 1, 65_536, i64::from(u32::MAX), i64::MAX].map(Value::from);
    let wrong = [
        json!(null),
        json!(true),
        json!("1"),
        json!("../x"),
        json!(0.5),
        json!(-1e300),
        json!(1e300),
        json!(u64::MAX),
        json!([]),
        json!([[]]),
        json!([null]),
        json!({}),
        json!({"": ""}),
    ];
    numbers.into_iter().chain(wrong).collect()
}

/// Values for the members of a map whose keys users choose.
fn member_values() -> Vec<Value> {
    vec![json!("text"), json!(-1)]
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
            found.push((format!("{place}/{name}"), member_values()));
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

/// Sets a value, and creates its parents.
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

/// The sample objects. The loops make objects for each of them.
fn samples() -> Vec<Value> {
    let files = [
        include_str!("../../../manifests/samples/00-namespaces.yaml"),
        include_str!("../../../manifests/samples/10-people.yaml"),
        include_str!("../../../manifests/samples/20-templates.yaml"),
        include_str!("../../../manifests/samples/30-instances.yaml"),
        include_str!("../../../manifests/samples/40-storage.yaml"),
        include_str!("../../../manifests/samples/optional/local-vm.yaml"),
        include_str!("../../../manifests/samples/optional/public-exposure.yaml"),
        include_str!("../../../manifests/samples/optional/snapshot.yaml"),
    ];
    files.iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).expect("YAML")).collect()
}

fn named(documents: &[Value]) -> Vec<(String, Value)> {
    documents.iter().map(|document| ("a file".to_owned(), document.clone())).collect()
}

/// An object that the loops made.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    /// The kind of the owner; empty for objects that outlive their owner.
    of: String,
    kind: String,
    namespace: String,
    name: String,
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The objects that were made, without the given objects.
fn made(output: &Output, given: &[Value]) -> BTreeSet<Made> {
    let id = |object: &Value| ["/kind", "/metadata/namespace", "/metadata/name"].map(|at| text(object, at));
    let given: BTreeSet<_> = given.iter().map(id).collect();
    let made = output.objects.iter().filter(|object| !given.contains(&id(object)));
    made.map(|object| {
        let [kind, namespace, name] = id(object);
        Made { of: text(object, "/metadata/ownerReferences/0/kind"), kind, namespace, name }
    })
    .collect()
}

/// The allowed namespaces for objects of each kind of owner: the usual ones, the sandbox that a Tenant may request, and
/// the namespace of a snapshot, which is created once its machine is off.
fn namespaces(usual: &BTreeSet<Made>) -> BTreeSet<(String, String)> {
    let usual = usual.iter().map(|made| (made.of.clone(), made.namespace.clone()));
    let more = [("Tenant", "sandbox-ada-rossi"), ("InstanceSnapshot", "tenant-ada-rossi")];
    usual.chain(more.map(|(of, namespace)| (of.to_owned(), namespace.to_owned()))).collect()
}

/// Reconciles everything repeatedly, as if each write had succeeded, until there are no more writes. Returns the writes
/// of the last round.
fn unrest(planning: &Planning<'_>, output: &Output) -> Vec<String> {
    let loops = || planning.of_cluster.iter().chain(&planning.in_namespaces);
    let mut last = Vec::new();
    for version in 1..=MOST_ROUNDS {
        let mut written: Vec<(Value, String)> = if version == 1 {
            output.objects.iter().map(|object| (object.clone(), String::new())).collect()
        } else {
            loops().flat_map(|built| built.written(now(), None)).collect()
        };
        for (object, _) in &mut written {
            object["metadata"]["resourceVersion"] = version.to_string().into();
            let uid = format!("<uid {}/{}>", text(object, "/kind"), text(object, "/metadata/name"));
            object["metadata"].as_object_mut().expect("metadata").entry("uid").or_insert(uid.into());
            // The API server would reject invalid objects.
            let _ = planning.cluster.factory.offer(object);
        }
        last = written.into_iter().map(|(_, what)| what).collect();
        if last.is_empty() {
            break;
        }
    }
    last
}

/// The fields of all CRDs with values for each: the kind, the place, and the value. Only loops and administrators write
/// the status, so its texts get every second value.
fn cases() -> Vec<(String, String, Value)> {
    let mut cases = Vec::new();
    // No loop reads a kind without a status.
    for crd in crds().into_iter().filter(has_status) {
        let mut places = Vec::new();
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            fields(schema.expect("a schema"), "", &mut places);
        }
        let kind = crd.spec.names.kind;
        assert!(places.len() > 10, "{kind} has fields");
        for (place, values) in places {
            let step = if place.starts_with("/status") && values.len() >= 40 { 2 } else { 1 };
            let values: Vec<Value> = values.into_iter().step_by(step).collect();
            // The names of members are also values.
            assert!(
                values.len() >= 20 || values == member_values(),
                "{kind} {place}: {} values",
                values.len()
            );
            cases.extend(values.into_iter().map(|value| (kind.clone(), place.clone(), value)));
        }
    }
    cases
}

/// A configuration with only the snapshot loop: no other loop reads snapshots.
fn snapshots_alone(config: &Config) -> Config {
    let mut config = config.clone();
    config.controllers.instance.enabled = false;
    config.controllers.public_exposure.enabled = false;
    config.controllers.shared_volume.enabled = false;
    config
}

/// The objects and the configuration for a case.
#[derive(Clone, Copy)]
struct Trial<'a> {
    config: &'a Config,
    documents: &'a [Value],
    /// The kinds of owners, each with a namespace where objects may be made for it.
    allowed: &'a BTreeSet<(String, String)>,
}

impl Trial<'_> {
    /// Plans with a value in all objects of a kind. Returns the faults of the objects that are made and, if
    /// `is_repeated`, of later reconciles.
    fn faults(&self, (kind, place, value): &(String, String, Value), is_repeated: bool) -> Vec<String> {
        let mut changed = self.documents.to_vec();
        for document in changed.iter_mut().filter(|document| document["kind"] == *kind) {
            set(document, place, value);
        }
        // Invalid objects are rejected with a message.
        let Ok(mut planning) = Planning::new(named(&changed), None, self.config) else { return Vec::new() };
        let Ok(output) = planning.plan() else { return Vec::new() };
        let mut faults = Vec::new();
        for Made { of, kind: made, namespace, name } in made(&output, &changed) {
            let whole = format!("{kind} {place} = {value}: {made} {namespace}/{name} of {of:?}");
            if !self.allowed.contains(&(of, namespace.clone())) {
                faults.push(format!("in a namespace of others: {whole}"));
            }
            let has_name = check_object_name(&name).is_ok();
            if !has_name || !(namespace.is_empty() || check_dns_label(&namespace).is_ok()) {
                faults.push(format!("a name that nothing can have: {whole}"));
            }
        }
        let again = if is_repeated { unrest(&planning, &output) } else { Vec::new() };
        faults.extend(
            again.into_iter().map(|what| format!("repeatedly written: {kind} {place} = {value}: {what}")),
        );
        faults
    }
}

#[test]
fn no_field_value_escapes_its_namespace_or_causes_endless_writes() {
    let config = Config::default();
    let samples = samples();
    // The objects of Tenants are planned again only for the values that they depend on, because they are the largest
    // part of the plan.
    let mut without_tenants = config.clone();
    without_tenants.controllers.tenant.enabled = false;
    without_tenants.controllers.workspace.enabled = false;
    let drive = json!({"apiVersion": "v1", "kind": "Secret", "data": {"server-name": "bmZz", "path": "L2E="},
        "metadata": {"name": "mydrive-info", "namespace": "tenant-ada-rossi"}});
    let with_drives = [&samples[..], &[drive]].concat();
    let usual = made(&plan_documents(named(&samples), &config).expect("the samples"), &samples);
    let allowed = namespaces(&usual);
    for (of, namespace) in [
        ("Instance", "tenant-ada-rossi"),
        ("InstanceSnapshot", "tenant-ada-rossi"),
        ("SharedVolume", "workspace-netlab"),
    ] {
        let places: Vec<&str> =
            allowed.iter().filter(|(kind, _)| kind == of).map(|(_, namespace)| namespace.as_str()).collect();
        assert_eq!(places, [namespace], "{of}");
    }
    let of_tenants = Trial { config: &config, documents: &samples, allowed: &allowed };
    let of_others = Trial { config: &without_tenants, documents: &with_drives, allowed: &allowed };
    for trial in [&of_tenants, &of_others] {
        let mut planning = Planning::new(named(trial.documents), None, trial.config).expect("the samples");
        let output = planning.plan().expect("the samples");
        assert!(made(&output, trial.documents).len() > 10, "Instances and volumes are planned");
        assert_eq!(unrest(&planning, &output), Vec::<String>::new(), "the samples");
    }
    let snapshots_alone = snapshots_alone(&without_tenants);
    let of_snapshots = Trial { config: &snapshots_alone, ..of_others };
    let groups: Vec<[Vec<Value>; 2]> =
        (0..GROUPS).map(|group| [of_group(&samples, group), of_group(&with_drives, group)]).collect();
    // No objects are made for the other kinds.
    let is_sampled = |kind: &str| samples.iter().any(|document| document["kind"] == kind);
    let cases: Vec<_> = cases().into_iter().filter(|(kind, _, _)| is_sampled(kind)).collect();
    assert!(cases.len() > 3_500, "{} values", cases.len());
    // All of them take minutes: each run takes every third, and `make properties` all.
    let step = if crate::properties::scaled(1) == 1 { 3 } else { 1 };
    let cases: Vec<_> = cases.into_iter().step_by(step).enumerate().collect();
    let faults = |(number, case): &(usize, (String, String, Value))| {
        let [all, without_accounts] = &groups[number % GROUPS];
        let trial = match case.0.as_str() {
            "Tenant" | "Workspace" => Trial { documents: all, ..of_tenants },
            "InstanceSnapshot" => of_snapshots,
            _ => Trial { documents: without_accounts, ..of_others },
        };
        trial.faults(case, number % REPEATED == 0)
    };
    let (some, others) = cases.split_at(cases.len() / 2);
    let faults: Vec<String> = std::thread::scope(|scope| {
        let half = scope.spawn(|| some.iter().flat_map(faults).collect::<Vec<_>>());
        let rest: Vec<String> = others.iter().flat_map(faults).collect();
        [half.join().expect("no panic"), rest].concat()
    });
    let first: Vec<&String> = faults.iter().take(40).collect();
    assert!(faults.is_empty(), "{} faults: {first:#?}", faults.len());
}

#[test]
fn kinds_without_made_objects_accept_any_content() {
    let mut read = BTreeSet::new();
    for (kind, place, value) in cases() {
        let mut object = json!({"kind": kind, "metadata": {"name": "x", "namespace": "ns", "uid": "u"}});
        set(&mut object, &place, &value);
        let fault = match kind.as_str() {
            "ImageList" => serde_json::from_value::<ImageList>(object).err(),
            "PodConfig" => serde_json::from_value::<PodConfig>(object).err(),
            _ => continue,
        };
        assert!(fault.is_none(), "{kind} {place} = {value}: {fault:?}");
        read.insert(kind);
    }
    assert_eq!(read.len(), 2, "{read:?}");
}
