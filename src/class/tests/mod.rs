//! Tests of actions on a class, with a fake API server.

mod plan;
mod requests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::model::{ActionId, Class, Person};
use crate::api::{Instance, Template};
use crate::fixtures::time;

/// The identifier of the action of the tests.
fn id() -> ActionId {
    ActionId::parse(&format!("abcdefghij234567-{}", created("10:00:00").as_second())).expect("an identifier")
}

/// An identifier with another random part.
fn other(at: &str) -> ActionId {
    ActionId::parse(&format!("zzzzzzzzzz234567-{}", created(at).as_second())).expect("an identifier")
}

fn created(at: &str) -> Timestamp {
    time(&format!("2026-03-04T{at}Z"))
}

fn template() -> Template {
    let environments = json!([{"name": "desktop", "image": "i", "environmentType": "Container"}]);
    let spec = json!({"prettyName": "Desktop", "description": "", "environmentList": environments});
    let object = json!({"metadata": {"name": "desktop", "namespace": "workspace-tea"}, "spec": spec});
    serde_json::from_value(object).expect("a Template")
}

fn person(name: &str) -> Person {
    Person {
        name: name.to_owned(),
        title: name.to_uppercase(),
        namespace: format!("tenant-{name}"),
        has_namespace: true,
    }
}

/// A machine of a person, created before the action.
fn machine(person: &str, name: &str, more: &Value) -> Value {
    let mut object = json!({
        "metadata": {
            "name": name, "namespace": format!("tenant-{person}"), "uid": format!("u-{name}"), "resourceVersion": "7",
            "creationTimestamp": "2026-03-04T09:00:00Z", "labels": {"crownlabs.polito.it/workspace": "tea"},
        },
        "spec": {
            "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": person},
        },
    });
    json_patch::merge(&mut object, more);
    object
}

/// The class of Ada, with these machines.
fn class(machines: &[Value]) -> Class {
    let read =
        |machine: &Value| -> Instance { serde_json::from_value(machine.clone()).expect("an Instance") };
    let machines = BTreeMap::from([("tenant-ada".to_owned(), machines.iter().map(read).collect())]);
    Class { people: vec![person("ada")], machines, ..Class::default() }
}
