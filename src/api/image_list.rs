//! Image lists: what a registry offers to templates.

use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{Column, CustomResource};
use super::object::{Kind, Object};

/// The kind of [`ImageList`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageListKind;

/// What a registry offers.
pub type ImageList = Object<ImageListKind>;

impl Kind for ImageListKind {
    const GROUP: &'static str = super::GROUP;
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "ImageList";
    const PLURAL: &'static str = "imagelists";
    const NAMESPACED: bool = false;
    type Spec = ImageListSpec;
    type Status = ImageListStatus;
}

impl CustomResource for ImageListKind {
    const COLUMNS: &'static [Column] = &[Column::text("Registry Name", ".spec.registryName")];
    const DESCRIPTION: &'static str = "The images that a registry offers to templates.";
}

/// The images of a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ImageListSpec {
    /// The host of the registry, as templates name it.
    pub registry_name: String,
    /// The project of the registry that holds the images.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub project_base_name: String,
    /// The images.
    pub images: Vec<ImageListItem>,
}

/// An image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ImageListItem {
    /// Its name, without the registry.
    pub name: String,
    /// Its tags.
    pub versions: Vec<String>,
}

/// What is reported of an image list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ImageListStatus {
    /// The state of the image list in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}
