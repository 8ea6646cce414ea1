//! Image lists: what a registry offers to templates.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{Column, CustomResource};
use super::object::kind;
use super::wire;

kind!(
    /// An `ImageList` as it is stored in the API server.
    ImageListKind, ImageList, super::GROUP, "v1alpha1", "ImageList", "imagelists", namespaced: false,
    ImageListSpec, ImageListStatus, largest: 4 << 20
);

impl CustomResource for ImageListKind {
    const SHORT_NAMES: &'static [&'static str] = &["imglist"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Registry Name", ".spec.registryName"),
        Column::wide("Stale", r#".status.conditions[?(@.type=="Stale")].status"#),
        Column::wide("Message", r#".status.conditions[?(@.type=="Stale")].message"#),
    ];
    const DESCRIPTION: &'static str = "The images in a registry that templates can use.";
}

/// Content of the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ImageListSpec {
    /// Host of the registry as it appears in names of images, for example `registry.example.org`. Required.
    pub registry_name: String,
    /// Project in the registry that contains the images, for example `crownlabs`. Default: empty, none.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub project_base_name: String,
    /// Images in the registry; the list may be empty. Required.
    pub images: Vec<ImageListItem>,
}

/// An image of a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ImageListItem {
    /// Name of the image without the registry, for example `machines/ubuntu`.
    pub name: String,
    /// Tags of the image, for example `["24.04", "22.04"]`.
    pub versions: Vec<String>,
}

/// Observed state of the image list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ImageListStatus {
    /// Time at which the registry was last read, while the list is stale; absent while it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "wire::date_time")]
    pub last_success_time: Option<Time>,
    /// Conditions of the image list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}
