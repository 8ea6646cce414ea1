//! The JSON Schema of the file, and its formats.

use serde_json::Value;

use super::duration::DURATION;
use super::exposure::PORT_RANGE;
use super::formats::{self, Format};
use super::listen_address::LISTEN_ADDRESS;
use super::network::NETWORK;
use super::{
    appearance, bastion, dashboard, exam_agent, image_list, instance, instance_metrics, log, mail,
    pod_config_node, pool, runtime_endpoint, ssh_tracker, webhook,
};

/// The JSON Schema (draft 2020-12) of the file, as `config/crownlabs.schema.json`, which a test generates from the types
/// and rules. It contains no references: each key is described where it is used. Other validators ignore formats that
/// begin with `crownlabs-` and use the patterns beside them.
pub const SCHEMA: &str = include_str!("../../config/crownlabs.schema.json");

/// The same as a value.
pub fn schema() -> Value {
    // A test compares the value with the generated one.
    serde_json::from_str(SCHEMA).unwrap_or_default()
}

/// Finds a format by its name in the schema.
pub(super) fn format(name: &str) -> Option<&'static Format> {
    let lists = [
        &[&DURATION, &LISTEN_ADDRESS, &NETWORK, &PORT_RANGE],
        appearance::FORMATS,
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
        ssh_tracker::FORMATS,
        webhook::FORMATS,
    ];
    lists.into_iter().flatten().copied().find(|format| format.name == name)
}
