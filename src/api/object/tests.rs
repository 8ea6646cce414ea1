use serde_json::{Value, json};

use super::*;
use crate::api::environment::{EnvironmentMode, EnvironmentType};
use crate::api::image_list::ImageListKind;
use crate::api::instance::{Instance, InstanceKind, InstancePhase, InstanceSpec, InstanceStatus, Protocol};
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::pod_config::{PodConfig, PodConfigKind};
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::{Template, TemplateKind, TemplateSpec};
use crate::api::tenant::{Role, Tenant, TenantKind};
use crate::api::workspace::{Workspace, WorkspaceKind};

/// The objects of `tests/recorded`, and one pod configuration.
fn recorded() -> Vec<Value> {
    let files = [
        include_str!("../../../tests/recorded/generations/2025-10.yaml"),
        include_str!("../../../tests/recorded/generations/2026-08.yaml"),
        include_str!("../../../tests/recorded/samples/instance.yaml"),
        include_str!("../../../tests/recorded/samples/instance-snapshot.yaml"),
        include_str!("../../../tests/recorded/samples/sharedvolumes.yaml"),
        include_str!("../../../tests/recorded/samples/templates.yaml"),
        include_str!("../../../tests/recorded/samples/tenant.yml"),
        include_str!("../../../tests/recorded/samples/workspace.yml"),
    ];
    let read = |text: &str| serde_saphyr::from_multiple::<Value>(text).unwrap();
    let mut objects: Vec<Value> = files.into_iter().flat_map(read).collect();
    objects.retain(|object| object["kind"] != "Namespace");
    objects.push(json!({
        "apiVersion": "podconfig.opdev.io/v1alpha1",
        "kind": "PodConfig",
        "metadata": {"name": "lab-net", "namespace": "cnf-test"},
        "spec": {
            "sampleDeployment": {"create": true, "name": "lab-pods"},
            "networkAttachments": [
                {"name": "data", "linkType": "veth", "parent": "data", "master": "labbr0", "cidr": "10.77.0.0/24"},
            ],
            "vlans": [{"parentInterfaceName": "eth1", "bridgeName": "br1", "vlanID": 7}],
        },
        "status": {"phase": "configured", "podConfigurations": [{"podName": "a", "configList": ["{…}"]}]},
    }));
    assert!(objects.len() > 90);
    objects
}

/// Decodes an object as its kind. Returns the encoded result, and the error if the spec is malformed.
fn reread(object: &Value) -> (Value, Option<String>) {
    fn with<K: Kind>(object: &Value) -> (Value, Option<String>) {
        let text = object.to_string();
        let read: Object<K> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (serde_json::to_value(&read).unwrap(), read.malformed)
    }
    match object["kind"].as_str().unwrap() {
        "Workspace" => with::<WorkspaceKind>(object),
        "Tenant" => with::<TenantKind>(object),
        "Template" => with::<TemplateKind>(object),
        "Instance" => with::<InstanceKind>(object),
        "InstanceSnapshot" => with::<InstanceSnapshotKind>(object),
        "SharedVolume" => with::<SharedVolumeKind>(object),
        "ImageList" => with::<ImageListKind>(object),
        "PodConfig" => with::<PodConfigKind>(object),
        kind => panic!("{kind}"),
    }
}

/// Whether a field may be left out in the encoded object.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}

/// The fields of `before` that `after` lacks or changes, except empty ones, which may be left out.
fn lost(before: &Value, after: Option<&Value>, path: &str) -> Vec<String> {
    match (before, after) {
        (before, None) if is_empty(before) => vec![],
        (Value::Object(members), Some(after)) => members
            .iter()
            .flat_map(|(name, member)| lost(member, after.get(name), &format!("{path}.{name}")))
            .collect(),
        (Value::Array(items), Some(Value::Array(others))) if items.len() == others.len() => items
            .iter()
            .zip(others)
            .flat_map(|(item, other)| lost(item, Some(other), &format!("{path}[]")))
            .collect(),
        // Quantities are encoded as text.
        (Value::Number(number), Some(Value::String(text))) if number.to_string() == *text => vec![],
        (before, Some(after)) if before == after => vec![],
        (before, after) => vec![format!("{path}: {before} became {after:?}")],
    }
}

/// The JSON pointers of all fields and items in a value.
fn pointers(value: &Value, pointer: &str) -> Vec<String> {
    let inner = |name: &str, inner: &Value| {
        let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        let below = pointers(inner, &pointer);
        std::iter::once(pointer).chain(below).collect::<Vec<_>>()
    };
    match value {
        Value::Object(members) => members.iter().flat_map(|(name, member)| inner(name, member)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(index, item)| inner(&index.to_string(), item)).collect()
        }
        _ => vec![],
    }
}

/// Returns copies of the objects, each with one of its fields replaced.
fn replaced(by: impl Fn(&Value) -> Value) -> impl Iterator<Item = (Value, String)> {
    let mut objects = recorded();
    // The other maximal objects differ only in values.
    objects.retain(|object| {
        object["metadata"]["name"]
            .as_str()
            .is_some_and(|name| !name.starts_with("maximal-") || name == "maximal-1")
    });
    objects.into_iter().flat_map(move |object| {
        let by = &by;
        let below = |half: &str| {
            let pointer = format!("/{half}");
            let inner = object.get(half).map_or_else(Vec::new, |half| pointers(half, &pointer));
            std::iter::once(pointer).chain(inner)
        };
        let replace = |pointer: String| {
            let mut object = object.clone();
            let member = object.pointer_mut(&pointer)?;
            *member = by(member);
            Some((object, pointer))
        };
        below("spec").chain(below("status")).filter_map(replace).collect::<Vec<_>>()
    })
}

#[test]
fn recorded_objects_of_both_operators_are_read_completely() {
    for object in recorded() {
        let (after, malformed) = reread(&object);
        assert_eq!(malformed, None, "{object}");
        assert_eq!(lost(&object, Some(&after), ""), Vec::<String>::new(), "{object}");
    }
}

#[test]
fn null_is_accepted_for_every_field() {
    for (object, pointer) in replaced(|_| Value::Null) {
        let (_, malformed) = reread(&object);
        assert_eq!(malformed, None, "{pointer} of {object}");
    }
}

#[test]
fn a_wrong_type_is_reported_with_its_path_and_affects_nothing_else() {
    let mut faults = 0;
    for (object, pointer) in replaced(|member| if member.is_object() { json!(true) } else { json!({"x": 1}) })
    {
        let (after, malformed) = reread(&object);
        assert_eq!(after["metadata"]["name"], object["metadata"]["name"], "{pointer}");
        let Some(reason) = malformed else { continue };
        faults += 1;
        let segments = pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
        let path: String = segments
            .map(|name| match name.parse::<usize>() {
                Ok(index) => format!("[{index}]"),
                Err(_) => format!(".{name}"),
            })
            .collect();
        let named = format!(".{reason}");
        assert!(named.starts_with(&format!("{path}: ")), "{path} is not the path in {reason}");
    }
    assert!(faults > 500, "{faults}");
}

#[test]
fn an_object_without_a_spec_has_the_default_spec() {
    for spec in ["", r#", "spec": null"#] {
        let text =
            format!(r#"{{"metadata": {{"name": "a", "managedFields": [{{}}]}}{spec}, "status": null}}"#);
        let instance: Instance = serde_json::from_str(&text).unwrap();
        assert_eq!(instance, Object::new(None, "a", InstanceSpec::default()));
        assert!(!instance.spec.running);
        assert!(instance.spec.template_ref.is_empty());
        let template: Template = serde_json::from_str(&text).unwrap();
        assert_eq!(template.spec, TemplateSpec::default());
        assert_eq!(template.malformed, None);
    }
}

// Takes a value because callers pass a literal.
#[allow(clippy::needless_pass_by_value)]
fn instance(spec: Value) -> Instance {
    serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap()
}

#[allow(clippy::needless_pass_by_value)]
fn environment(environment: Value) -> Template {
    let spec = json!({"environmentList": [environment]});
    serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap()
}

#[test]
fn an_instance_runs_by_default() {
    assert!(instance(json!({})).spec.running);
    assert!(instance(json!({"running": null})).spec.running);
    assert!(!instance(json!({"running": false})).spec.running);
}

#[test]
fn lists_have_no_spare_capacity() {
    let status = json!({"environments": [{"name": "main"}], "conditions": [{"type": "Ready"}]});
    let instance: Instance =
        serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status})).unwrap();
    let InstanceStatus { environments, conditions, .. } = instance.status;
    assert_eq!((environments.capacity(), conditions.capacity()), (1, 1));
    for length in [0, 1, 3, 9, 100] {
        let status = json!({"environments": vec![json!({"name": "main"}); length]});
        let status: InstanceStatus = serde_json::from_value(status).unwrap();
        assert_eq!((status.environments.len(), status.environments.capacity()), (length, length));
    }
}

#[test]
fn a_malformed_spec_is_replaced_by_the_default_and_reported_with_its_path() {
    let stored = instance(json!({"running": "yes", "prettyName": "A"}));
    assert_eq!(stored.spec, InstanceSpec::default());
    assert_eq!(
        stored.malformed.as_deref(),
        Some(r#"spec.running: invalid type: string "yes", expected a boolean"#)
    );
    let stored = environment(json!({"resources": {"memory": ["1Gi"]}}));
    assert_eq!(
        stored.malformed.as_deref(),
        Some("spec.environmentList[0].resources.memory: invalid type: sequence, expected a quantity")
    );
    let stored = instance(json!({"tenant.crownlabs.polito.it/TenantRef": {"name": 5}}));
    assert_eq!(
        stored.malformed.as_deref(),
        Some("spec.tenant.crownlabs.polito.it/TenantRef.name: invalid type: integer `5`, expected a string")
    );
}

#[test]
fn an_unreadable_status_is_ignored() {
    let value = json!({"metadata": {"name": "a"}, "spec": {"prettyName": "A"}, "status": {"phase": 5}});
    let stored: Instance = serde_json::from_value(value).unwrap();
    assert_eq!(stored.spec.pretty_name, "A");
    assert_eq!(stored.status.phase, InstancePhase::Unset);
    assert_eq!(stored.malformed, None);
}

#[test]
fn an_unknown_enumeration_value_is_kept() {
    let stored = environment(json!({"name": "a", "environmentType": "Quantum", "mode": "exam"}));
    let Template { spec, malformed, .. } = &stored;
    assert_eq!(*malformed, None);
    let read = &spec.environment_list[0];
    assert_eq!(read.environment_type, EnvironmentType::Other("Quantum".into()));
    assert_eq!(read.mode.as_str(), "exam");
    assert_eq!(read.name, "a");
    assert_eq!(serde_json::to_value(&stored).unwrap()["spec"]["environmentList"][0]["mode"], "exam");
    let read = &environment(json!({})).spec.environment_list[0];
    assert_eq!((read.environment_type.as_str(), &read.mode), ("", &EnvironmentMode::Standard));
    assert!(read.gui_enabled && read.mount_my_drive_volume);
}

#[test]
fn numbers_may_be_text() {
    let cores = |cpu: Value| {
        let stored = environment(json!({"resources": {"cpu": cpu}}));
        stored.malformed.map_or_else(|| Ok(stored.spec.environment_list[0].resources.cpu), Err)
    };
    assert_eq!(cores(json!(8)), Ok(8));
    assert_eq!(cores(json!("8")), Ok(8));
    assert_eq!(cores(json!("8000m")), Ok(8));
    assert_eq!(cores(json!("8500m")), Ok(8));
    assert_eq!(cores(json!("")), Ok(0));
    assert_eq!(cores(json!(2.5)), Ok(2));
    assert!(cores(json!("many")).unwrap_err().starts_with("spec.environmentList[0].resources.cpu: \"many\""));
    assert!(cores(json!(u64::MAX)).is_err());
    let share = environment(json!({"resources": {"reservedCPUPercentage": 5_000_000_000_i64}}));
    assert!(share.malformed.unwrap().ends_with("reservedCPUPercentage: 5000000000 is out of range"));
    let ports = json!({"publicExposure": {"ports": [{"name": "ssh", "targetPort": "22"}]}});
    let port = instance(ports).spec.public_exposure.unwrap().ports[0].clone();
    assert_eq!((port.port, port.target_port, port.protocol), (0, 22, Protocol::Tcp));
}

#[test]
fn quantities_are_read_from_any_text_or_number() {
    let stored = environment(json!({"resources": {"memory": 2_000_000_000, "disk": "much"}}));
    assert_eq!(stored.malformed, None);
    let resources = &stored.spec.environment_list[0].resources;
    assert_eq!(resources.memory.parse().unwrap().to_string(), "2G");
    assert!(resources.disk.as_ref().unwrap().parse().is_err());
}

#[test]
fn an_empty_selector_differs_from_an_absent_one() {
    let stored = environment(json!({"nodeSelector": {}}));
    assert!(stored.spec.environment_list[0].node_selector.as_ref().unwrap().is_empty());
    assert_eq!(stored.spec.node_selector, None);
    let written = serde_json::to_value(&stored).unwrap();
    assert_eq!(written["spec"]["environmentList"][0]["nodeSelector"], json!({}));
    assert!(written["spec"].get("nodeSelector").is_none());
    assert!(environment(json!({"nodeSelector": null})).spec.environment_list[0].node_selector.is_none());
}

#[test]
fn status_fields_that_other_programs_require_are_always_written() {
    let mut tenant: Tenant = Object::new(None, "john.doe", crate::api::tenant::TenantSpec::default());
    tenant.status.personal_namespace.created = true;
    assert_eq!(
        serde_json::to_value(&tenant.status).unwrap(),
        json!({
            "personalNamespace": {"created": true},
            "sandboxNamespace": {"created": false},
            "keycloak": {
                "userCreated": {"created": false}, "userConfirmed": false, "userSynchronized": false,
            },
            "ready": false,
            "quota": {"cpu": "0", "memory": "0", "instances": 0},
        })
    );
    let workspace = Workspace::new(None, "tea", crate::api::workspace::WorkspaceSpec::default());
    assert_eq!(serde_json::to_value(&workspace.status).unwrap(), json!({"namespace": {"created": false}}));
    let config = PodConfig::new(None, "lab", crate::api::pod_config::PodConfigSpec::default());
    assert_eq!(serde_json::to_value(&config.status).unwrap(), json!({"podConfigurations": []}));
}

#[test]
fn roles_are_found_by_workspace() {
    let workspaces = json!([{"name": "tea", "role": "manager"}, {"name": "coffee", "role": "owner"}]);
    let value = json!({"metadata": {"name": "john.doe"}, "spec": {"workspaces": workspaces}});
    let tenant: Tenant = serde_json::from_value(value).unwrap();
    assert_eq!(tenant.spec.role_in("tea"), Some(&Role::Manager));
    assert_eq!(tenant.spec.role_in("coffee"), Some(&Role::Other("owner".into())));
    assert_eq!(tenant.spec.role_in("milk"), None);
}

#[test]
fn a_spec_above_the_size_limit_is_not_read() {
    let read =
        |json: Value| Object::<InstanceKind>::from_json(json.to_string().as_bytes()).expect("an object");
    let object = |length: usize| {
        let text = "x".repeat(length);
        json!({"metadata": {"name": "a", "uid": "u"}, "spec": {"prettyName": text}, "status": {"url": text}})
    };
    let small = read(object(InstanceKind::LARGEST - 100));
    assert_eq!((small.malformed, small.spec.pretty_name.len()), (None, InstanceKind::LARGEST - 100));
    let large = read(object(InstanceKind::LARGEST));
    let why = large.malformed.expect("it is too large");
    assert!(why.starts_with("spec has 65") && why.ends_with("but at most 65536 can be read"), "{why}");
    assert_eq!(
        (large.spec, large.status),
        (InstanceSpec::default(), crate::api::instance::InstanceStatus::default())
    );
    assert_eq!(large.metadata.uid, "u", "the metadata is read, so that the fault can be reported");
    // The limit does not apply to fields that are not read.
    let service = |ports: usize| {
        let ports = vec![
            json!({"name": "a", "port": 1, "protocol": "TCP", "targetPort": 1, "unread": "x".repeat(50)});
            ports
        ];
        let json = json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.1", "ports": ports}});
        json.to_string()
    };
    let text = service(10_000);
    let of_address = Object::<crate::kinds::ServiceKind>::from_json(text.as_bytes()).expect("a Service");
    assert_eq!(of_address.malformed, None);
    let of_ports =
        Object::<crate::kinds::LoadBalancerServiceKind>::from_json(text.as_bytes()).expect("a Service");
    assert!(of_ports.malformed.is_some() && of_ports.spec.ports.is_empty());
}
