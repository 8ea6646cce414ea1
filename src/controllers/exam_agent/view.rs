//! The JSON that the agent returns.

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
    /// Whether the Instance should run.
    pub running: bool,
    /// The URLs of its content and of its status check; empty for clients that may not see URLs.
    pub customization_urls: CustomizationView,
    /// The URLs of its content in the newer form; absent if the Instance has no such URLs, and for clients that may not
    /// see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_urls: Option<ContentView>,
    /// Its phase, such as `Starting`, `Ready`, `Off` or `Failed`; empty while it is unknown.
    pub phase: String,
    /// The URL of its desktop; absent while the desktop has no URL, and for clients that may not see URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub url: String,
    /// The token that lets a browser open its desktop; absent if browsers need no token, and for clients that may not see
    /// URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub token: String,
    /// Its labels; null if it has no labels.
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
    /// The name of the Template.
    pub name: String,
    /// The name that is shown to users.
    pub pretty_name: String,
    /// Whether any of its environments keeps its data while it is stopped.
    pub persistent: bool,
    /// Its creation time, in RFC 3339 and UTC.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
}

/// An error about one Instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorView {
    /// The HTTP status code.
    #[schemars(with = "i32")]
    pub code: u16,
    /// A description of the error.
    pub text: &'static str,
}

impl InstanceView {
    /// The view of an Instance for a client with these rights.
    pub fn of(instance: &Instance, granted: Granted) -> Self {
        let spec = &instance.spec;
        // The URL of the desktop contains the uid, which is the only protection of some desktops, so it is as secret as
        // the others.
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
            template: spec.template_ref.name.to_string(),
            running: spec.running,
            customization_urls,
            content_urls,
            phase: instance.status.phase.as_str().to_owned(),
            url,
            token: String::new(),
            labels: (!labels.is_empty()).then_some(labels),
        }
    }
}

/// The effective URLs, in both forms. If there are several environments, the first one counts.
fn urls(instance: &Instance) -> (CustomizationView, Option<ContentView>) {
    let spec = &instance.spec;
    let first = instance.status.environments.first().and_then(|first| spec.content_urls.get(&*first.name));
    let newer = first.or_else(|| spec.content_urls.values().next());
    let newer = newer.cloned().unwrap_or_default();
    let older = &spec.customization_urls;
    let either = |newer: String, older: &str| if newer.is_empty() { older.to_owned() } else { newer };
    let ContentUrls { origin, destination } = newer;
    let origin = either(origin, &older.content_origin);
    let destination = either(destination, &older.content_destination);
    let content = ContentView { origin: origin.clone(), destination: destination.clone() };
    let status_check = spec.effective_status_check_url().to_owned();
    let customization =
        CustomizationView { content_origin: origin, content_destination: destination, status_check };
    (customization, Some(content).filter(|content| *content != ContentView::default()))
}

impl From<&Template> for TemplateView {
    fn from(template: &Template) -> Self {
        let created =
            template.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let (name, pretty_name) = (template.name().to_owned(), template.spec.pretty_name.clone());
        let persistent = template.spec.is_persistent();
        Self { name, pretty_name, persistent, created_at: created.to_string() }
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
