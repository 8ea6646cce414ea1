//! The values of the daemon's chart, or the configuration, that say what the values of the Go operators' Helm chart say.

mod form;
mod image_lists;
#[cfg(test)]
mod page;
mod report;
mod special;
mod table;

use serde_json::{Map, Value, json};

use self::form::{converted, plain};
use self::table::{Fate, Form, PARTS, PODS, Part, Row, WHOLE};
use super::Config;

/// Values of the chart that are loops in pods of their own: each with the section of the chart that has their configuration.
const ELSEWHERE: [(&str, &[&str]); 2] =
    [("bastion", &["bastion", "sshTracker", "webSsh"]), ("instanceMetrics", &["instanceMetrics"])];

/// What is made of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// Values of the daemon's chart.
    Chart,
    /// The configuration alone.
    Configuration,
}

/// A file made from values.
#[derive(Debug)]
pub struct FromValues {
    /// The file, as YAML.
    pub yaml: String,
    /// What was not carried over, and what is left to do, a sentence each.
    pub messages: Vec<String>,
}

/// Makes a file from the values of the chart with the Go operators, as YAML. `namespace` is that of their release.
///
/// # Errors
/// When the text is no YAML, or has none of the chart's parts.
pub fn from_values(text: &str, made: Made, namespace: Option<&str>) -> Result<FromValues, String> {
    let values: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let parts = parts(&values);
    if parts.is_empty() {
        return Err(report::no_parts(&values));
    }
    let mut conversion = Conversion::new(&values, made);
    for (path, fate) in rows(&parts) {
        match fate {
            Fate::Key(key, form) => conversion.carry(&path, key, form),
            Fate::Chart(value) => conversion.carry_to_chart(&path, value),
            Fate::With(_) | Fate::Left(_) => {}
        }
    }
    conversion.specials(namespace);
    conversion.image_lists();
    conversion.as_before();
    conversion.report(&parts);
    let Conversion { configuration, files, chart, mut messages, .. } = conversion;
    let mut whole = configuration.clone();
    for (key, file) in files {
        set(&mut whole, key, file.into());
    }
    if let Err(error) = Config::parse("the configuration", &yaml(&whole)?) {
        messages.push(format!("to be mended before it can be used:\n{error}"));
    }
    let document = match made {
        Made::Configuration => whole,
        Made::Chart => chart_values(configuration, chart),
    };
    Ok(FromValues { yaml: yaml(&document)?, messages })
}

fn yaml(document: &Value) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(document, options).map_err(|error| error.to_string())?;
    Ok(format!("{}\n", text.trim_end()))
}

/// The parts that the values have, by name.
fn parts(values: &Value) -> Vec<(&'static str, &'static Part)> {
    let named = PARTS.iter().flat_map(|part| part.names.iter().map(move |name| (*name, part)));
    named.filter(|(name, _)| values.get(name).is_some()).collect()
}

/// The rows of the parts and of the whole chart, with whole paths.
fn rows(parts: &[(&'static str, &'static Part)]) -> Vec<(String, Fate)> {
    let of_part = |(name, part): &(&'static str, &'static Part)| -> Vec<(String, Fate)> {
        let rows: Vec<&Row> = part.rows.iter().chain(PODS).collect();
        rows.into_iter().map(|(path, fate)| (format!("{name}.{path}"), *fate)).collect()
    };
    let whole = WHOLE.iter().map(|(path, fate)| ((*path).to_owned(), *fate));
    parts.iter().flat_map(of_part).chain(whole).collect()
}

/// The values of the chart: the configuration below `config`, or below the section whose pods run the loop.
fn chart_values(mut configuration: Value, chart: Value) -> Value {
    let mut values = json!({});
    if let Some(members) = configuration.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
    }
    let Value::Object(mut rest) = chart else { return values };
    let mut sections = Map::new();
    for (section, loops) in ELSEWHERE {
        for name in loops {
            let keys = configuration["controllers"].as_object_mut().and_then(|all| all.remove(*name));
            if let Some(keys) = keys {
                let place = sections.entry(section).or_insert_with(|| json!({"config": {"controllers": {}}}));
                place["config"]["controllers"][*name] = keys;
            }
        }
    }
    values["config"] = configuration;
    for (section, made) in sections {
        let place = rest.entry(section).or_insert_with(|| json!({}));
        place["config"] = made["config"].clone();
    }
    for (key, value) in rest {
        values[key] = value;
    }
    values
}

/// A conversion under way.
struct Conversion<'v> {
    values: &'v Value,
    made: Made,
    configuration: Value,
    /// The keys that name files, which the chart sets when it mounts them.
    files: Vec<(&'static str, String)>,
    /// The values of the daemon's chart beside the configuration.
    chart: Value,
    messages: Vec<String>,
}

impl<'v> Conversion<'v> {
    fn new(values: &'v Value, made: Made) -> Self {
        let configuration = json!({
            "apiVersion": "config.crownlabs.polito.it/v1alpha1",
            "kind": "ControllerManagerConfiguration",
        });
        Self { values, made, configuration, files: Vec::new(), chart: json!({}), messages: Vec::new() }
    }

    /// The value at a path; none where it is empty.
    fn value(&self, path: &str) -> Option<&'v Value> {
        let value = path.split('.').try_fold(self.values, |value, key| value.get(key))?;
        (!report::is_empty(value)).then_some(value)
    }

    fn text(&self, path: &str) -> Option<String> {
        self.value(path).map(plain)
    }

    fn flag(&self, path: &str) -> Option<bool> {
        self.value(path).and_then(Value::as_bool)
    }

    /// The part of several names that is there.
    fn part(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.values.get(name).is_some())
    }

    /// Writes a key of the configuration. One that was written before with another value stays as it was.
    fn set(&mut self, path: &str, key: &str, value: Value) {
        if let Some((value, before)) = set(&mut self.configuration, key, value) {
            self.messages.push(format!("{path}: {value} is left out, since {key} is {before} already"));
        }
    }

    /// Notes a key that names a file.
    fn set_file(&mut self, key: &'static str, file: String) {
        self.files.push((key, file));
    }

    /// Writes a value of the chart, which a configuration alone does not have.
    fn set_in_chart(&mut self, key: &str, value: Value) {
        if self.made == Made::Chart {
            set(&mut self.chart, key, value);
        }
    }

    /// Carries a value over.
    fn carry(&mut self, path: &str, key: &str, form: Form) {
        let Some(value) = self.value(path) else { return };
        match converted(value, form) {
            Ok(converted) => self.set(path, key, converted),
            Err(expected) => self.messages.push(format!("{path}: {value} is left out: expected {expected}")),
        }
    }

    /// Carries a value over into the chart.
    fn carry_to_chart(&mut self, path: &str, key: &str) {
        let Some(value) = self.value(path) else { return };
        match self.made {
            Made::Chart => self.set_in_chart(key, value.clone()),
            Made::Configuration => {
                self.messages.push(format!(
                    "{path}: {value} is no part of the configuration: it is `{key}` of the chart"
                ));
            }
        }
    }
}

/// Writes a member of a document. If something else is there already, returns the value that was to be written, and that.
fn set(document: &mut Value, key: &str, value: Value) -> Option<(Value, Value)> {
    let mut place = document;
    for part in key.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(members) = place else { return None };
        place = members.entry(part).or_insert(Value::Null);
    }
    if place.is_null() {
        *place = value;
        return None;
    }
    (*place != value).then(|| (value, place.clone()))
}

#[cfg(test)]
mod tests;
