//! The `CustomResourceDefinition`s, generated from the types of the custom resources. `crownlabs crd` prints
//! them, and `manifests/crds` has one file for each.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::Kind;
use super::custom::{CATEGORY, Column, CustomResource, Rule};
use super::image_list::ImageListKind;
use super::instance::InstanceKind;
use super::instance_snapshot::InstanceSnapshotKind;
use super::pod_config::PodConfigKind;
use super::shared_volume::SharedVolumeKind;
use super::template::TemplateKind;
use super::tenant::TenantKind;
use super::workspace::WorkspaceKind;

/// The definitions of all our kinds, in a fixed order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        definition::<WorkspaceKind>(),
        definition::<TenantKind>(),
        definition::<TemplateKind>(),
        definition::<InstanceKind>(),
        definition::<InstanceSnapshotKind>(),
        definition::<SharedVolumeKind>(),
        definition::<ImageListKind>(),
        definition::<PodConfigKind>(),
    ]
}

/// The quotas whose processor cores may have to be whole numbers: the kind, and the member of its spec.
const QUOTAS: [(&str, &str); 2] = [(WorkspaceKind::KIND, "quota"), (TenantKind::KIND, "personalWorkspace")];

/// Restricts the processor cores of quotas to whole numbers of at least one. Other values that are already stored
/// stay valid until they are changed.
pub fn with_integer_cpu(definition: &mut CustomResourceDefinition) {
    let quotas = QUOTAS.iter().filter(|(kind, _)| definition.spec.names.kind == *kind);
    for (_, quota) in quotas {
        let schemas = definition.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
        let specs = schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut());
        for spec in specs {
            let mut path = ["spec", quota, "cpu"].into_iter();
            let cpu = path.try_fold(spec, |schema, member| schema.properties.as_mut()?.get_mut(member));
            if let Some(cpu) = cpu {
                *cpu = JSONSchemaProps {
                    description: Some("Processor cores, a whole number, for example `8`.".to_owned()),
                    type_: Some("integer".to_owned()),
                    format: Some("int64".to_owned()),
                    minimum: Some(1.0),
                    ..JSONSchemaProps::default()
                };
            }
        }
    }
}

/// Writes definitions as YAML, one document for each.
pub fn to_yaml(crds: &[CustomResourceDefinition]) -> String {
    let document = |crd| {
        // All keys are text and all numbers are finite, so neither conversion can fail.
        let mut value = serde_json::to_value(crd).unwrap_or_default();
        whole_numbers(&mut value);
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        serde_saphyr::to_string_with_options(&value, options).unwrap_or_default()
    };
    crds.iter().map(document).collect::<Vec<_>>().join("---\n")
}

/// Writes numbers without a fraction as integers, `1` instead of `1.0`: schemars writes bounds as floats.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) => {
            if let Some(whole) =
                number.to_string().strip_suffix(".0").and_then(|text| text.parse::<i64>().ok())
            {
                *value = whole.into();
            }
        }
        _ => {}
    }
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
            // If a schema cannot be converted, it is missing here, and the test below fails.
            open_api_v3_schema: serde_json::from_value(schema::<K>()).ok(),
        }),
        additional_printer_columns: list(K::COLUMNS.iter().map(column)),
        subresources: Some(CustomResourceSubresources {
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
            "status": part::<K::Status>(),
        },
    });
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

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The first line of every generated file.
    const HEADER: &str = "# Generated by `crownlabs crd`; do not edit.\n";

    /// The name of a definition's file: `<plural>.<group>.yaml`.
    fn file_name(crd: &CustomResourceDefinition) -> String {
        format!("{}.{}.yaml", crd.spec.names.plural, crd.spec.group)
    }

    /// Compares manifests/crds with the types. With `UPDATE_MANIFESTS=1`, it writes the files instead.
    #[test]
    fn the_manifests_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/crds");
        for crd in crds() {
            let path = folder.join(file_name(&crd));
            let text = format!("{HEADER}{}", to_yaml(std::slice::from_ref(&crd)));
            if std::env::var_os("UPDATE_MANIFESTS").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let stored = fs::read_to_string(&path).unwrap();
            assert!(
                stored == text,
                "{} is not up to date: run UPDATE_MANIFESTS=1 cargo test",
                path.display()
            );
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), crds().len(), "a file without a kind");
    }

    #[test]
    fn yaml_reads_back_as_the_same_definitions() {
        let read: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&to_yaml(&crds())).unwrap();
        assert_eq!(read, crds());
    }

    #[test]
    fn schemas_use_only_features_of_every_supported_api_server() {
        fn walk(path: &str, schema: &Value) {
            let Value::Object(members) = schema else { return };
            for word in ["$ref", "$schema", "title", "nullable", "oneOf", "allOf", "x-kubernetes-validations"]
            {
                assert!(!members.contains_key(word), "{path} has {word}");
            }
            let typed = members.get("type").is_some_and(Value::is_string);
            assert!(typed || members.contains_key("x-kubernetes-int-or-string"), "{path} has no type");
            if let Some(format) = members.get("format") {
                assert!(
                    ["int32", "int64", "date-time"].iter().any(|known| format == known),
                    "{path}: {format}"
                );
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
        for crd in crds() {
            let mut schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
            let schema = &mut schema["openAPIV3Schema"];
            // Rules apply to the whole object and check changes only. Stored objects stay valid.
            let rules =
                schema.as_object_mut().unwrap().remove("x-kubernetes-validations").unwrap_or_default();
            for rule in rules.as_array().into_iter().flatten() {
                assert!(rule["rule"].as_str().is_some_and(|rule| rule.contains("oldSelf")), "{rule}");
            }
            walk(&crd.spec.names.kind, schema);
        }
    }
}
