//! Conditions, as the Kubernetes API conventions describe them ("Typical status properties").

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::wire;

/// One aspect of an object's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Condition {
    /// The aspect, a capitalised word such as Ready.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// Whether it holds.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// Why, as a capitalised word.
    pub reason: String,
    /// Why, as a sentence.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// When status last changed.
    #[schemars(schema_with = "wire::date_time")]
    pub last_transition_time: Time,
    /// The generation of the object that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, range(min = 0))]
    pub observed_generation: Option<i64>,
}

impl Default for Condition {
    /// A condition of which nothing is known.
    fn default() -> Self {
        Self {
            type_: String::new(),
            status: "Unknown".to_owned(),
            reason: String::new(),
            message: String::new(),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            observed_generation: None,
        }
    }
}

/// Declares the member of a status that holds its conditions: a list with one entry a type.
pub(crate) fn list_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": generator.subschema_for::<Condition>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
