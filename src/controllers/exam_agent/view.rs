//! The JSON that clients get.

use std::collections::BTreeMap;

use jiff::Timestamp;
use macro_rules_attribute::apply;
use schemars::JsonSchema;
use serde::Serialize;

use super::access::Granted;
use crate::api::instance::ContentUrls;
use crate::api::wire::{Optional, resource_part};
use crate::api::{Instance, Template};

/// An Instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Instance")]
pub struct InstanceView {
    /// The name of the Instance.
    pub id: String,
    /// The name of its Template.
    pub template: String,
    /// Whether it is to run.
    pub running: bool,
    /// The URLs of its content and of its status check; empty for clients that may not see them.
    pub customization_urls: CustomizationView,
    /// The URLs of its content in the newer form; absent if there are none, and for clients that may not see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_urls: Option<ContentView>,
    /// Its phase, such as `Starting`, `Ready`, `Off` or `Failed`; empty while it is not known.
    pub phase: String,
    /// The URL of its desktop; absent while there is none, and for clients that may not see URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub url: String,
    /// Its labels; null if there are none.
    pub labels: Option<BTreeMap<String, String>>,
}

/// The URLs of an Instance.
#[apply(resource_part)]
#[schemars(rename = "CustomizationUrls")]
pub struct CustomizationView {
    /// Where the content comes from.
    pub content_origin: Optional<String>,
    /// Where the content goes to when the Instance ends.
    pub content_destination: Optional<String>,
    /// The URL that says for how long the Instance is needed.
    pub status_check: Optional<String>,
}

/// The URLs of the content of an Instance.
#[apply(resource_part)]
#[schemars(rename = "ContentUrls")]
pub struct ContentView {
    /// Where it comes from.
    pub origin: Optional<String>,
    /// Where it goes to when the Instance ends.
    pub destination: Optional<String>,
}

/// A Template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Template")]
pub struct TemplateView {
    /// Its name.
    pub name: String,
    /// Its name for users.
    pub pretty_name: String,
    /// Whether any of its environments keeps its data while it is stopped.
    pub persistent: bool,
    /// When it was created, in RFC 3339 and UTC.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
}

/// An error of the answer about one Instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorView {
    /// The status code.
    #[schemars(with = "i32")]
    pub code: u16,
    /// What is wrong.
    pub text: &'static str,
}

impl InstanceView {
    /// The view of an Instance for a client with these rights.
    pub fn of(instance: &Instance, granted: Granted) -> Self {
        let spec = &instance.spec;
        // That of the desktop has the uid, which is all that protects some: it is as secret as the others.
        let (customization_urls, content_urls, url) = if granted.sees_urls {
            let (customization, content) = urls(instance);
            (customization, content, instance.status.open_url().to_owned())
        } else {
            (CustomizationView::default(), None, String::new())
        };
        let labels: BTreeMap<String, String> =
            instance.metadata.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self {
            id: instance.name().to_owned(),
            template: spec.template_ref.name.clone(),
            running: spec.running,
            customization_urls,
            content_urls,
            phase: instance.status.phase.as_str().to_owned(),
            url,
            labels: (!labels.is_empty()).then_some(labels),
        }
    }
}

/// The URLs that count, in both forms. Of several environments those of the first.
fn urls(instance: &Instance) -> (CustomizationView, Option<ContentView>) {
    let spec = &instance.spec;
    let first = instance.status.environments.first().and_then(|first| spec.content_urls.get(&first.name));
    let newer = first.or_else(|| spec.content_urls.values().next());
    let newer = newer.cloned().unwrap_or_default();
    let older = &spec.customization_urls;
    let either = |newer: String, older: &str| if newer.is_empty() { older.to_owned() } else { newer };
    let ContentUrls { origin, destination } = newer;
    let origin = either(origin, &older.content_origin);
    let destination = either(destination, &older.content_destination);
    let content = ContentView { origin: origin.clone(), destination: destination.clone() };
    let customization = CustomizationView {
        content_origin: origin,
        content_destination: destination,
        status_check: spec.effective_status_check_url().to_owned(),
    };
    (customization, Some(content).filter(|content| *content != ContentView::default()))
}

impl From<&Template> for TemplateView {
    fn from(template: &Template) -> Self {
        let created: Timestamp =
            template.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        Self {
            name: template.name().to_owned(),
            pretty_name: template.spec.pretty_name.clone(),
            persistent: template.spec.is_persistent(),
            created_at: created.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ALL: Granted = Granted { is_allowed: true, sees_urls: true };
    const LESS: Granted = Granted { is_allowed: false, sees_urls: false };

    fn shown(labels: &Value, spec: &Value, status: &Value, granted: Granted) -> String {
        let metadata = json!({"name": "exam-1", "namespace": "exams", "labels": labels});
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        let instance: Instance = serde_json::from_value(object).expect("an Instance");
        serde_json::to_string(&InstanceView::of(&instance, granted)).expect("JSON")
    }

    #[test]
    fn an_instance_has_always_the_same_members() {
        let none = json!({});
        assert_eq!(
            shown(&none, &none, &none, ALL),
            r#"{"id":"exam-1","template":"","running":true,"customizationUrls":{},"phase":"","labels":null}"#
        );
        let spec = json!({
            "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "exams"},
            "running": false,
            "customizationUrls": {"contentOrigin": "https://a", "statusCheck": "https://c"},
        });
        let status = json!({"phase": "Ready", "url": "https://labs.example.org/instance/1"});
        assert_eq!(
            shown(&json!({"b": "2", "a": "1"}), &spec, &status, ALL),
            "{\"id\":\"exam-1\",\"template\":\"desktop\",\"running\":false,\
             \"customizationUrls\":{\"contentOrigin\":\"https://a\",\"statusCheck\":\"https://c\"},\
             \"contentUrls\":{\"origin\":\"https://a\"},\"phase\":\"Ready\",\
             \"url\":\"https://labs.example.org/instance/1\",\"labels\":{\"a\":\"1\",\"b\":\"2\"}}"
        );
        assert_eq!(
            shown(&none, &spec, &status, LESS),
            "{\"id\":\"exam-1\",\"template\":\"desktop\",\"running\":false,\"customizationUrls\":{},\
             \"phase\":\"Ready\",\"labels\":null}"
        );
    }

    #[test]
    fn the_urls_that_count_are_shown_in_both_forms() {
        let spec = json!({
            "statusCheckUrl": "https://newer",
            "customizationUrls": {"contentOrigin": "https://older", "contentDestination": "https://d", "statusCheck": "https://older"},
            "contentUrls": {"a": {"origin": "https://of-a"}, "b": {"origin": "https://of-b"}},
        });
        let of = |status: &Value| -> Value {
            serde_json::from_str(&shown(&json!({}), &spec, status, ALL)).expect("JSON")
        };
        let expected = |origin: &str| json!({"contentOrigin": origin, "contentDestination": "https://d", "statusCheck": "https://newer"});
        assert_eq!(of(&json!({}))["customizationUrls"], expected("https://of-a"));
        let second = json!({"environments": [{"name": "b"}, {"name": "a"}]});
        assert_eq!(of(&second)["customizationUrls"], expected("https://of-b"));
        assert_eq!(of(&second)["contentUrls"], json!({"origin": "https://of-b", "destination": "https://d"}));
    }

    #[test]
    fn a_template_is_persistent_if_an_environment_is() {
        let object = json!({
            "metadata": {"name": "desktop", "creationTimestamp": "2026-01-31T12:00:00Z"},
            "spec": {"prettyName": "Desktop", "environmentList": [{"name": "a"}, {"name": "b", "persistent": true}]},
        });
        let template: Template = serde_json::from_value(object).expect("a Template");
        assert_eq!(
            serde_json::to_string(&TemplateView::from(&template)).expect("JSON"),
            r#"{"name":"desktop","prettyName":"Desktop","persistent":true,"createdAt":"2026-01-31T12:00:00Z"}"#
        );
    }
}
