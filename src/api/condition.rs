//! Conditions, as Kubernetes' API conventions describe them ("Typical status properties").

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::text::Text;
use super::wire;

/// One aspect of the state of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Condition {
    /// Type of the condition in `CamelCase`, for example `Ready`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    #[serde(deserialize_with = "Text::deserialize_interned")]
    #[schemars(with = "String")]
    pub type_: Text,
    /// Whether the condition holds: `True`, `False` or `Unknown`.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    #[serde(deserialize_with = "Text::deserialize_interned")]
    #[schemars(with = "String")]
    pub status: Text,
    /// Reason for the status as one word in `CamelCase`, for example `TemplateNotFound`.
    #[serde(deserialize_with = "Text::deserialize_interned")]
    #[schemars(with = "String")]
    pub reason: Text,
    /// Explanation of the status as a sentence.
    #[schemars(length(max = 32768))]
    #[serde(deserialize_with = "Text::deserialize_interned")]
    #[schemars(with = "String")]
    pub message: Text,
    /// Time at which the status last changed.
    #[schemars(schema_with = "wire::date_time")]
    pub last_transition_time: Time,
    /// Value of `metadata.generation` for which the condition was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, range(min = 0))]
    pub observed_generation: Option<i64>,
}

impl Default for Condition {
    /// A condition without type, whose status is `Unknown` since 1970.
    fn default() -> Self {
        Self {
            type_: Text::default(),
            status: "Unknown".into(),
            reason: Text::default(),
            message: Text::default(),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            observed_generation: None,
        }
    }
}

/// The schema of a list of conditions. It has one entry for each type, so that server-side apply merges
/// lists by type.
pub(crate) fn list_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": generator.subschema_for::<Condition>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
