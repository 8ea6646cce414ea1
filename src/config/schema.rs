//! The JSON Schema of the file, generated from the types.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use super::duration::DURATION;
use super::exposure::PORT_RANGE;
use super::formats::{self, Format};
use super::listen_address::LISTEN_ADDRESS;
use super::network::NETWORK;
use super::types::Config;
use super::{
    bastion, dashboard, exam_agent, image_list, instance, instance_metrics, log, mail, pod_config_node, pool,
    runtime_endpoint,
};

/// The JSON Schema (draft 2020-12) of the file. It contains no references: each key is described where it is used.
/// Formats that begin with `crownlabs-` are specific to this project; other validators ignore them.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(tidy));
    settings.into_generator().into_root_schema_for::<Config>().to_value()
}

/// Joins the lines of descriptions, and removes the defaults of mappings, because their keys have their own defaults.
fn tidy(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if schema.get("properties").is_some() {
        schema.remove("default");
    }
}

/// Finds a format by its name in the schema.
pub(super) fn format(name: &str) -> Option<&'static Format> {
    let lists = [
        &[&DURATION, &LISTEN_ADDRESS, &NETWORK, &PORT_RANGE],
        bastion::FORMATS,
        dashboard::FORMATS,
        exam_agent::FORMATS,
        formats::FORMATS,
        image_list::FORMATS,
        instance::FORMATS,
        instance_metrics::FORMATS,
        log::FORMATS,
        mail::FORMATS,
        pod_config_node::FORMATS,
        pool::FORMATS,
        runtime_endpoint::FORMATS,
    ];
    lists.into_iter().flatten().copied().find(|format| format.name == name)
}
