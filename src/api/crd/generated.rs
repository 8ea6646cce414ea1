//! Generates the definitions from the types of the custom resources, and compares them with `manifests/crds`.

use std::fs;
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::{crds, to_yaml};
use crate::api::announcement::AnnouncementKind;
use crate::api::custom::{CATEGORY, Column, CustomResource, Rule};
use crate::api::image_list::ImageListKind;
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::pod_config::PodConfigKind;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;

/// The definitions of all our kinds, in the order of [`crds`].
pub fn generated() -> Vec<CustomResourceDefinition> {
    vec![
        definition::<WorkspaceKind>(),
        definition::<TenantKind>(),
        definition::<TemplateKind>(),
        definition::<InstanceKind>(),
        definition::<InstanceSnapshotKind>(),
        definition::<SharedVolumeKind>(),
        definition::<ImageListKind>(),
        definition::<PodConfigKind>(),
        definition::<AnnouncementKind>(),
    ]
}

/// Whether objects of a kind have a status.
const fn keeps_status<K: CustomResource>() -> bool {
    size_of::<K::Status>() > 0
}

fn definition<K: CustomResource>() -> CustomResourceDefinition {
    let names = CustomResourceDefinitionNames {
        kind: K::KIND.to_owned(),
        list_kind: Some(format!("{}List", K::KIND)),
        plural: K::PLURAL.to_owned(),
        singular: Some(K::KIND.to_ascii_lowercase()),
        short_names: list(K::SHORT_NAMES.iter().map(|name| (*name).to_owned())),
        categories: Some(vec![CATEGORY.to_owned()]),
    };
    let version = CustomResourceDefinitionVersion {
        name: K::VERSION.to_owned(),
        served: true,
        storage: true,
        schema: Some(CustomResourceValidation {
            // If a schema cannot be converted, it is missing here, and a test fails.
            open_api_v3_schema: serde_json::from_value(schema::<K>()).ok(),
        }),
        additional_printer_columns: list(K::COLUMNS.iter().map(column)),
        subresources: keeps_status::<K>().then(|| CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(json!({}))),
            scale: None,
        }),
        ..CustomResourceDefinitionVersion::default()
    };
    CustomResourceDefinition {
        metadata: ObjectMeta { name: Some(format!("{}.{}", K::PLURAL, K::GROUP)), ..ObjectMeta::default() },
        spec: CustomResourceDefinitionSpec {
            group: K::GROUP.to_owned(),
            names,
            scope: if K::NAMESPACED { "Namespaced" } else { "Cluster" }.to_owned(),
            versions: vec![version],
            ..CustomResourceDefinitionSpec::default()
        },
        status: None,
    }
}

/// Collects items into a list. Returns `None` for no items, so that the field is left out.
fn list<T>(items: impl Iterator<Item = T>) -> Option<Vec<T>> {
    Some(items.collect::<Vec<T>>()).filter(|items| !items.is_empty())
}

fn column(column: &Column) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: column.name.to_owned(),
        type_: column.type_.to_owned(),
        json_path: column.json_path.to_owned(),
        priority: Some(column.priority).filter(|priority| *priority != 0),
        ..CustomResourceColumnDefinition::default()
    }
}

fn schema<K: CustomResource>() -> Value {
    let version = format!("Version of the schema of this object: {}/{}.", K::GROUP, K::VERSION);
    let kind = format!("Kind of the object: {}.", K::KIND);
    let mut schema = json!({
        "description": K::DESCRIPTION,
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "description": version},
            "kind": {"type": "string", "description": kind},
            "metadata": {"type": "object"},
            "spec": part::<K::Spec>(),
        },
    });
    if keeps_status::<K>() {
        schema["properties"]["status"] = part::<K::Status>();
    }
    if !K::RULES.is_empty() {
        let rules = K::RULES.iter().map(|Rule { rule, message }| json!({"rule": rule, "message": message}));
        schema["x-kubernetes-validations"] = rules.collect();
    }
    schema
}

/// The schema of a spec or status, as a structural schema, which Kubernetes requires of definitions.
fn part<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    settings.with_transform(structural).into_generator().into_root_schema_for::<T>().to_value()
}

/// Removes titles, and `null` as a type or value. A structural schema must not contain them. The API server itself
/// drops a `null` in an optional field.
fn structural(schema: &mut Schema) {
    transform_subschemas(&mut structural, schema);
    schema.remove("title");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only {
                // A field's own description takes precedence over the description of its type.
                if schema.get(&key).is_none() {
                    schema.insert(key, value);
                }
            }
        }
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// The first line of every generated file.
const HEADER: &str = "# Generated by `make generate`; do not edit.\n";

/// The name of a definition's file: `<plural>.<group>.yaml`.
fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}.{}.yaml", crd.spec.names.plural, crd.spec.group)
}

/// Compares manifests/crds with the types. With `UPDATE_MANIFESTS=1`, it writes the files first; the next build
/// contains them.
#[test]
fn the_manifests_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/crds");
    for crd in generated() {
        let path = folder.join(file_name(&crd));
        let text = format!("{HEADER}{}", to_yaml(std::slice::from_ref(&crd)));
        if std::env::var_os("UPDATE_MANIFESTS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let stored = fs::read_to_string(&path).unwrap();
        assert!(stored == text, "{} is not up to date: run `make generate`", path.display());
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), generated().len(), "a file without a kind");
}

#[test]
fn the_files_read_back_as_the_generated_definitions() {
    assert_eq!(crds(), generated());
}

#[test]
fn schemas_use_only_features_of_every_supported_api_server() {
    fn walk(path: &str, schema: &Value) {
        let Value::Object(members) = schema else { return };
        for word in ["$ref", "$schema", "title", "nullable", "oneOf", "allOf", "x-kubernetes-validations"] {
            assert!(!members.contains_key(word), "{path} has {word}");
        }
        let typed = members.get("type").is_some_and(Value::is_string);
        assert!(typed || members.contains_key("x-kubernetes-int-or-string"), "{path} has no type");
        if let Some(format) = members.get("format") {
            assert!(["int32", "int64", "date-time"].iter().any(|known| format == known), "{path}: {format}");
        }
        if let Some(Value::Object(properties)) = members.get("properties") {
            for (name, property) in properties {
                let described = property.get("description").is_some() || name == "metadata";
                assert!(described, "{path}.{name} has no description");
                walk(&format!("{path}.{name}"), property);
            }
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(inner_schema) = members.get(inner) {
                walk(&format!("{path}.{inner}"), inner_schema);
            }
        }
    }
    for crd in generated() {
        let mut schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let schema = &mut schema["openAPIV3Schema"];
        // Rules apply to the whole object and check changes only. Stored objects stay valid.
        let rules = schema.as_object_mut().unwrap().remove("x-kubernetes-validations").unwrap_or_default();
        for rule in rules.as_array().into_iter().flatten() {
            assert!(rule["rule"].as_str().is_some_and(|rule| rule.contains("oldSelf")), "{rule}");
        }
        walk(&crd.spec.names.kind, schema);
    }
}
