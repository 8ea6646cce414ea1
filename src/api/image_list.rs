//! Image lists: the images that a registry offers to templates.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;

use super::condition::Condition;
use super::custom::{Column, CustomResource};
use super::object::kind;
use super::wire::{Optional, resource_part};

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
#[apply(resource_part)]
pub struct ImageListSpec {
    /// Host of the registry as it appears in names of images, for example `registry.example.org`. Required.
    pub registry_name: String,
    /// Project in the registry that contains the images, for example `crownlabs`. Default: empty, none.
    pub project_base_name: Optional<String>,
    /// Images in the registry; the list may be empty. Required.
    pub images: Vec<ImageListItem>,
}

/// An image of a registry.
#[apply(resource_part)]
pub struct ImageListItem {
    /// Name of the image without the registry, for example `machines/ubuntu`.
    pub name: String,
    /// Tags of the image, for example `["24.04", "22.04"]`.
    pub versions: Vec<String>,
}

/// Observed state of the image list.
#[apply(resource_part)]
pub struct ImageListStatus {
    /// Time of the last successful read of the registry; absent unless the list is stale.
    pub last_success_time: Option<Time>,
    /// Conditions of the image list.
    pub conditions: Optional<Vec<Condition>>,
}
