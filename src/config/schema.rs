//! The JSON Schema of the file, generated from the types.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use super::duration::DURATION;
use super::formats::{self, Format};
use super::listen_address::LISTEN_ADDRESS;
use super::log::LOG_FILTER;
use super::network::NETWORK;
use super::runtime_endpoint::RUNTIME_ENDPOINT;
use super::types::Config;
use super::{
    bastion, dashboard, exam_agent, exposure, image_list, instance, instance_metrics, mail, pod_config_node,
};

/// The JSON Schema (draft 2020-12) of the file. It has no references: each key is described where it is
/// used. Formats that begin with `crownlabs-` are ours, and other validators ignore them.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(tidy));
    settings.into_generator().into_root_schema_for::<Config>().to_value()
}

/// Joins the lines of descriptions, and removes the defaults of mappings, whose keys have defaults of their
/// own.
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
    let lists: [&[&Format]; 11] = [
        &[&DURATION, &LISTEN_ADDRESS, &LOG_FILTER, &NETWORK, &RUNTIME_ENDPOINT],
        &formats::FORMATS,
        &bastion::FORMATS,
        &dashboard::FORMATS,
        &exam_agent::FORMATS,
        &exposure::FORMATS,
        &image_list::FORMATS,
        &instance::FORMATS,
        &instance_metrics::FORMATS,
        &mail::FORMATS,
        &pod_config_node::FORMATS,
    ];
    lists.into_iter().flatten().copied().find(|format| format.name == name)
}
