//! Converts the values of the Go operators' Helm chart to values of the daemon's chart, or to a configuration.

mod form;
mod image_lists;
#[cfg(test)]
mod page;
mod report;
mod special;
mod table;

use serde_json::{Map, Value, json};

use self::form::{converted, plain};
use self::report::Remarks;
use self::table::{Fate, Form, PARTS, PODS, Part, WHOLE, below};
use crate::config::{Config, ConfigError, tree};

/// Loops that the chart runs in pods of their own: each section of the chart with the loops that it configures.
const ELSEWHERE: [(&str, &[&str]); 2] =
    [("bastion", &["bastion", "sshTracker", "webSsh"]), ("instanceMetrics", &["instanceMetrics"])];

/// The kind of file to make from values.
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
    remarks: Remarks,
}

impl FromValues {
    /// Whether the file can be used as it is, in the cluster as it is: no step must be done before.
    pub fn is_usable(&self) -> bool {
        self.remarks.steps.is_empty()
    }

    /// The steps that must be done, the facts that should be known, and the values that were ignored, each group below
    /// its heading. Empty if there are none.
    pub fn report(&self) -> String {
        self.remarks.to_string()
    }
}

/// Converts the values of the Go operators' chart to a file in YAML. `namespace` is the namespace of the operators'
/// release.
///
/// # Errors
/// When the text is not YAML, or contains no part of the chart.
pub fn from_values(text: &str, made: Made, namespace: Option<&str>) -> Result<FromValues, String> {
    let values: Value = serde_saphyr::from_str(text).map_err(tree::problem)?;
    let parts = parts(&values);
    if let Some((name, _)) = parts.iter().find(|(name, _)| is_scalar(&values[name])) {
        let value = &values[name];
        return Err(format!("{name} is {value}; expected a mapping with the values of this part"));
    }
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
    let Conversion { configuration, files, chart, mut remarks, .. } = conversion;
    let mut whole = configuration.clone();
    for (key, file) in files {
        set(&mut whole, key, file.into());
    }
    if let Err(ConfigError::Faults(mut faults)) = Config::parse("the configuration", &yaml(&whole)?) {
        // The values of the chart have other lines than the configuration.
        if made == Made::Chart {
            for fault in &mut faults {
                fault.line = None;
            }
        }
        let faults = ConfigError::Faults(faults);
        remarks.steps.push(format!("fix these faults of the configuration:\n{faults}"));
    }
    let document = match made {
        Made::Configuration => whole,
        Made::Chart => chart_values(configuration, chart),
    };
    Ok(FromValues { yaml: yaml(&document)?, remarks })
}

/// Whether a value is neither a mapping nor missing.
fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_null()
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
    let of_part = |(name, part): &(&str, &Part)| {
        let name = format!("{name}.");
        [part.rows(&name), below(&name, PODS)].concat()
    };
    parts.iter().flat_map(of_part).chain(below("", WHOLE)).collect()
}

/// The values of the chart: the configuration below `config`, or below the section whose pods run the loop.
fn chart_values(mut configuration: Value, mut chart: Value) -> Value {
    if let Some(members) = configuration.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
    }
    for (section, loops) in ELSEWHERE {
        for name in loops {
            let controllers = configuration.get_mut("controllers").and_then(Value::as_object_mut);
            if let Some(keys) = controllers.and_then(|all| all.remove(*name)) {
                set(&mut chart, &format!("{section}.config.controllers.{name}"), keys);
            }
        }
    }
    let mut values = Map::from_iter([("config".to_owned(), configuration)]);
    values.extend(chart.as_object().cloned().unwrap_or_default());
    values.into()
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
    remarks: Remarks,
}

impl<'v> Conversion<'v> {
    fn new(values: &'v Value, made: Made) -> Self {
        let configuration = json!({
            "apiVersion": "config.crownlabs.polito.it/v1alpha1",
            "kind": "ControllerManagerConfiguration",
        });
        Self { values, made, configuration, files: Vec::new(), chart: json!({}), remarks: Remarks::default() }
    }

    /// The value at a path; `None` if it is empty.
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

    /// The part among several names that exists in the values.
    fn part(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.values.get(name).is_some())
    }

    /// Writes a key of the configuration. If the key already has another value, it keeps that value.
    fn set(&mut self, path: &str, key: &str, value: impl Into<Value>) {
        if let Some((value, before)) = set(&mut self.configuration, key, value.into()) {
            let note = format!("{path}: {value} is left out, since {key} is {before} already");
            self.remarks.notes.push(note);
        }
    }

    /// Writes a value of the chart; a configuration alone has no such values.
    fn set_in_chart(&mut self, key: &str, value: impl Into<Value>) {
        if self.made == Made::Chart {
            set(&mut self.chart, key, value.into());
        }
    }

    /// Adds the step that must be done for the kind of file that is made.
    fn require(&mut self, configuration: String, chart: String) {
        self.remarks.steps.push(if self.made == Made::Chart { chart } else { configuration });
    }

    /// Carries a value over.
    fn carry(&mut self, path: &str, key: &str, form: Form) {
        let Some(value) = self.value(path) else { return };
        match converted(value, form) {
            Ok(converted) => self.set(path, key, converted),
            Err(expected) => {
                let step = format!("{path}: {value} is left out: expected {expected}: set {key}");
                self.remarks.steps.push(step);
            }
        }
    }

    /// Carries a value over into the chart.
    fn carry_to_chart(&mut self, path: &str, key: &str) {
        let Some(value) = self.value(path) else { return };
        self.set_in_chart(key, value.clone());
        if self.made == Made::Configuration {
            let place = format!("it is `{key}` of the chart");
            self.remarks.notes.push(format!("{path}: {value} is not part of the configuration: {place}"));
        }
    }
}

/// Writes a member of a document. If the member already has a different value, returns the new and the existing value.
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
