//! The table of fields has every field of the CRD.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::crd::crds;
use crate::config::Language;
use crate::controllers::dashboard::templates::fields::{
    ENVIRONMENT, ENVIRONMENTS, Field, Group, Input, SPEC,
};
use crate::controllers::dashboard::texts::texts;

/// Returns the schema of the spec of Templates.
fn spec() -> Value {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == "Template").expect("the CRD");
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).expect("JSON");
    schema["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// Returns the paths of all fields of an object of the schema, each with its schema and whether it is required. The
/// fields of an object within it count as its own, except for references to other objects.
fn leaves(schema: &Value, path: &[String]) -> Vec<(Vec<String>, Value, bool)> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let members = schema["properties"].as_object().expect("an object");
    let leaf = |(name, member): (&String, &Value)| {
        let path = [path, &[name.clone()][..]].concat();
        let is_reference = member["properties"]["namespace"].is_object();
        if member["properties"].is_object() && !is_reference {
            leaves(member, &path)
        } else {
            vec![(path, member.clone(), required.contains(&name.as_str()))]
        }
    };
    members.iter().flat_map(leaf).collect()
}

/// Whether the input of a field fits its schema.
fn fits(field: &Field, schema: &Value) -> bool {
    let (kind, default) = (schema["type"].as_str().unwrap_or_default(), &schema["default"]);
    match field.input {
        Input::YesNo(value) => kind == "boolean" && (default.is_null() || *default == value),
        Input::Number => kind == "integer",
        Input::OneOf(values) => schema["enum"] == serde_json::json!(values),
        Input::Amount => schema["x-kubernetes-int-or-string"] == true,
        Input::Duration => schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("never")),
        Input::Labels => schema["additionalProperties"]["type"] == "string",
        Input::Resources => schema["additionalProperties"]["x-kubernetes-int-or-string"] == true,
        Input::Mounts => {
            let members = schema["items"]["properties"].as_object().expect("an object");
            members.keys().map(String::as_str).collect::<BTreeSet<_>>()
                == BTreeSet::from(["mountPath", "readOnly", "sharedVolume"])
        }
        Input::Lines => kind == "array" && schema["items"]["type"] == "string",
        Input::Reference => {
            let members = schema["properties"].as_object().expect("an object");
            members.keys().map(String::as_str).collect::<BTreeSet<_>>()
                == BTreeSet::from(["name", "namespace"])
        }
        Input::Text | Input::Area | Input::Image | Input::StorageClass => {
            kind == "string" && schema["pattern"].is_null() && schema["enum"].is_null()
        }
    }
}

/// Compares a table with the fields of the schema.
fn compare(table: &[Field], schema: &Value, but: &[&str]) {
    let leaves = leaves(schema, &[]);
    let leaves: Vec<_> = leaves.iter().filter(|(path, ..)| !but.contains(&path[0].as_str())).collect();
    let of_crd: BTreeSet<Vec<&str>> =
        leaves.iter().map(|(path, ..)| path.iter().map(String::as_str).collect()).collect();
    let of_table: BTreeSet<Vec<&str>> = table.iter().map(|field| field.path.to_vec()).collect();
    assert_eq!(of_table, of_crd, "the fields of the form, and those of the CRD");
    assert_eq!(of_table.len(), table.len(), "each field once");
    for (path, schema, is_required) in leaves {
        let field = table.iter().find(|field| field.path == path.as_slice()).expect("a field");
        assert!(fits(field, schema), "{path:?}: {:?} does not fit {schema}", field.input);
        assert_eq!(field.is_required, *is_required, "{path:?}");
    }
}

#[test]
fn the_form_has_exactly_the_fields_of_the_crd() {
    let spec = spec();
    compare(SPEC, &spec, &[ENVIRONMENTS]);
    compare(ENVIRONMENT, &spec["properties"][ENVIRONMENTS]["items"], &[]);
}

#[test]
fn every_field_has_its_texts_and_a_group_of_its_form() {
    let names: BTreeSet<&str> = SPEC.iter().chain(ENVIRONMENT).map(|field| field.name).collect();
    assert_eq!(names.len(), SPEC.len() + ENVIRONMENT.len(), "each name once");
    for (table, groups) in [(SPEC, Group::OF_TEMPLATE), (ENVIRONMENT, Group::OF_ENVIRONMENT)] {
        let used: BTreeSet<Group> = table.iter().map(|field| field.group).collect();
        assert_eq!(used, BTreeSet::from(groups));
    }
    for language in Language::all() {
        let fields = &texts(language).templates.fields;
        assert_eq!(fields.keys().map(String::as_str).collect::<BTreeSet<_>>(), names, "{}", language.code());
        for field in SPEC.iter().chain(ENVIRONMENT) {
            let known = if let Input::OneOf(values) = field.input { values } else { &[] };
            let words: BTreeSet<&str> = fields[field.name].values.keys().map(String::as_str).collect();
            assert_eq!(
                words,
                known.iter().copied().collect::<BTreeSet<_>>(),
                "{}: {}",
                language.code(),
                field.name
            );
        }
    }
}
