//! A Template that is being written: from the object or from the form, and back.

use serde_json::{Map, Value, json};

use super::fields::{ENVIRONMENT, ENVIRONMENTS, Field, SPEC, TEMPLATES, WORKSPACE};
use super::value::{at, read, set};
use super::yaml;
use crate::controllers::dashboard::http::fields::Fields;
use crate::runtime::merge;

/// The annotation in which `kubectl apply` keeps a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The parts of the metadata that can be edited.
const METADATA: [&str; 2] = ["labels", "annotations"];
/// The maximum number of environments in a form.
const MOST_ENVIRONMENTS: usize = 20;

/// The field of a form with the keys of its environments.
pub const KEYS: &str = "environments";
/// The field of a form with the text of the YAML view; absent in the other view.
pub const YAML: &str = "yaml";
/// The field of a form with the labels and annotations, as JSON.
pub const KEPT: &str = "metadata";

/// A Template that is being written.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Its name.
    pub name: String,
    /// Its labels and annotations.
    pub metadata: Value,
    /// Its spec.
    pub spec: Value,
    /// The key of each environment, which is part of the names of its fields in the form. It stays the same while others
    /// are added and removed.
    pub keys: Vec<u32>,
}

/// Returns the name of a field of an environment in the form.
pub fn name_in(key: u32, field: &str) -> String {
    format!("e{key}.{field}")
}

/// Returns an environment with usual values.
pub fn new_environment(name: &str) -> Value {
    json!({
        "name": name, "environmentType": "VirtualMachine", "image": "", "guiEnabled": true, "persistent": false,
        "mode": "Standard", "mountMyDriveVolume": true,
        "resources": {"cpu": 2, "reservedCPUPercentage": 50, "memory": "4Gi"},
    })
}

impl Draft {
    /// Returns a new Template of a course, with one environment.
    pub fn new(workspace: &str) -> Self {
        let spec = json!({
            "prettyName": "", "description": "", WORKSPACE: {"name": workspace},
            ENVIRONMENTS: [new_environment("desktop")],
        });
        Self::of(&json!({"spec": spec}))
    }

    /// Reads a Template.
    pub fn of(object: &Value) -> Self {
        let mut metadata = json!({});
        for part in METADATA {
            let mut found = object["metadata"][part].clone();
            if let Some(members) = found.as_object_mut() {
                members.shift_remove(LAST_APPLIED);
                set(&mut metadata, &[part], Some(found).filter(|found| *found != json!({})));
            }
        }
        let spec = if object["spec"].is_object() { object["spec"].clone() } else { json!({}) };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut draft = Self { name, metadata, spec, keys: Vec::new() };
        draft.keys = (0..).take(draft.environments().len()).collect();
        draft
    }

    /// Reads a form in one of its two views. `before` is the Template that it changes; `Null` for a new one.
    ///
    /// # Errors
    /// A sentence if the text of the YAML view is invalid.
    pub fn of_form(form: &Fields, before: &Value) -> Result<Self, String> {
        let has_text = form.0.iter().any(|(name, _)| name == YAML);
        if has_text {
            return yaml::read(form.get(YAML), before["metadata"]["name"].as_str())
                .map(|object| Self::of(&object));
        }
        let name = match before["metadata"]["name"].as_str() {
            Some(name) => name.to_owned(),
            None => form.get("name").trim().to_owned(),
        };
        let metadata = serde_json::from_str(form.get(KEPT)).ok().filter(Value::is_object);
        let metadata = metadata.unwrap_or_else(|| json!({}));
        let mut spec = if before["spec"].is_object() { before["spec"].clone() } else { json!({}) };
        let none = Vec::new();
        let known = before["spec"][ENVIRONMENTS].as_array().unwrap_or(&none);
        let keys = form.get(KEYS).split(',').filter_map(|key| key.parse().ok());
        let keys: Vec<u32> = keys.take(MOST_ENVIRONMENTS).collect();
        let environment = |key: &u32| {
            let was = form.get(&name_in(*key, "was"));
            let mut environment =
                known.iter().find(|known| known["name"] == was).cloned().unwrap_or_else(|| json!({}));
            fill(&mut environment, ENVIRONMENT, form, |field| name_in(*key, field));
            environment
        };
        let environments: Vec<Value> = keys.iter().map(environment).collect();
        fill(&mut spec, SPEC, form, str::to_owned);
        set(&mut spec, &[ENVIRONMENTS], Some(environments.into()));
        Ok(Self { name, metadata, spec, keys })
    }

    /// Returns the environments.
    pub fn environments(&self) -> &[Value] {
        self.spec[ENVIRONMENTS].as_array().map_or(&[][..], Vec::as_slice)
    }

    /// Returns the environments with their keys.
    pub fn keyed(&self) -> impl Iterator<Item = (u32, &Value)> {
        self.keys.iter().copied().zip(self.environments())
    }

    /// Adds an environment with a new name.
    pub fn add(&mut self) {
        if self.keys.len() >= MOST_ENVIRONMENTS {
            return;
        }
        let key = self.keys.iter().max().map_or(0, |last| last.saturating_add(1));
        let environments = self.environments();
        let is_free =
            |name: &String| environments.iter().all(|environment| environment["name"] != name.as_str());
        let mut names = (environments.len() + 1..).map(|number| format!("environment-{number}"));
        let name = names.find(is_free).unwrap_or_default();
        let all: Vec<Value> = environments.iter().cloned().chain([new_environment(&name)]).collect();
        set(&mut self.spec, &[ENVIRONMENTS], Some(all.into()));
        self.keys.push(key);
    }

    /// Removes the environment with this key.
    pub fn remove(&mut self, key: u32) {
        let left = self.keyed().filter(|(known, _)| *known != key);
        let (keys, environments): (Vec<u32>, Vec<Value>) =
            left.map(|(known, environment)| (known, environment.clone())).unzip();
        set(&mut self.spec, &[ENVIRONMENTS], Some(environments.into()));
        self.keys = keys;
    }

    /// Returns the members that a user edits.
    fn edited(&self) -> Value {
        let mut metadata = Map::new();
        for part in METADATA {
            metadata.insert(part.to_owned(), self.metadata.get(part).cloned().unwrap_or_else(|| json!({})));
        }
        json!({"metadata": metadata, "spec": self.spec})
    }

    /// Returns the object to create.
    pub fn body(&self) -> Value {
        json!({"metadata": self.metadata, "spec": self.spec})
    }

    /// Returns the whole object, as the YAML view shows it.
    pub fn object(&self, namespace: &str) -> Value {
        let mut metadata = json!({"name": self.name, "namespace": namespace});
        merge::apply(&mut metadata, &self.metadata);
        json!({"apiVersion": TEMPLATES.api_version(), "kind": TEMPLATES.kind, "metadata": metadata, "spec": self.spec})
    }

    /// Returns the merge patch that makes a stored Template equal; `None` if it already is.
    pub fn patch(&self, stored: &Value) -> Option<Value> {
        merge::difference(&Self::of(stored).edited(), &self.edited())
    }
}

/// Fills in the fields of a form.
fn fill(object: &mut Value, table: &[Field], form: &Fields, name: impl Fn(&str) -> String) {
    for field in table {
        let before = at(object, field.path).cloned();
        let value = read(field, &name(field.name), form, before.as_ref());
        if value != before {
            set(object, field.path, value);
        }
    }
}
