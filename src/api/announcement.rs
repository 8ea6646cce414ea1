//! Announcements: texts for the users of a course, or for all users, on the first page of the dashboard.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;

use super::custom::{AGE, Column, CustomResource};
use super::object::kind;
use super::wire::resource_part;

/// The maximum number of characters of a title.
pub const MOST_OF_TITLE: usize = 200;
/// The maximum number of characters of a text.
pub const MOST_OF_TEXT: usize = 2_000;

kind!(
    /// An `Announcement` as it is stored in the API server.
    AnnouncementKind, Announcement, super::LAB_GROUP, "v1alpha1", "Announcement", "announcements", namespaced: true,
    AnnouncementSpec, NoStatus
);

impl CustomResource for AnnouncementKind {
    const SHORT_NAMES: &'static [&'static str] = &["ann"];
    const COLUMNS: &'static [Column] =
        &[Column::text("Title", ".spec.title"), Column::text("Until", ".spec.until"), AGE];
    const DESCRIPTION: &'static str = "A text for the users of a course, or for all users if it is in the namespace \
        of the installation. The dashboard shows it on their first page.";
}

/// Content of the announcement.
#[apply(resource_part)]
pub struct AnnouncementSpec {
    /// Title, at most 200 characters, for example `No laboratory on Friday`. Required.
    #[schemars(length(min = 1, max = 200), extend("pattern" = r"\S"))]
    pub title: String,
    /// Text, at most 2000 characters. It is shown as it is, with its line breaks: it has no markup. Required.
    #[schemars(length(min = 1, max = 2000), extend("pattern" = r"\S"))]
    pub text: String,
    /// Time until which it is shown. Default: absent, it is shown until it is deleted.
    pub until: Option<Time>,
}

/// An announcement has no status.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct NoStatus {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::crd::crds;

    #[test]
    fn the_definition_has_the_limits_and_no_status() {
        let ours = crds().into_iter().find(|crd| crd.spec.names.kind == "Announcement").expect("the CRD");
        let version = serde_json::to_value(&ours.spec.versions[0]).expect("JSON");
        assert!(version["subresources"].is_null());
        let properties = &version["schema"]["openAPIV3Schema"]["properties"];
        assert!(properties["status"].is_null(), "{properties}");
        let spec = &properties["spec"]["properties"];
        for (field, most) in [("title", MOST_OF_TITLE), ("text", MOST_OF_TEXT)] {
            assert_eq!(spec[field]["maxLength"], json!(most), "{field}");
            assert_eq!(spec[field]["pattern"], r"\S", "{field}: a blank text is not an announcement");
        }
        assert_eq!(properties["spec"]["required"], json!(["title", "text"]));
    }
}
