//! The JSON that clients send to create or replace an Instance.
//!
//! Clients rely on how the decoder of Go reads it: keys in any case, the last one of several counts, `null` is as if the key were
//! not there, unknown keys are ignored, and so is what comes after the first value.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::controllers::shared::members::Members;

/// What a client wants an Instance to be. Keys are read in any case, and unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct WantedInstance {
    /// An identifier that is shown to users, for example that of a student. It is not the name of the Instance.
    #[schemars(with = "Option<String>", length(max = LONGEST_ID), extend("default" = null))]
    pub id: String,
    /// The name of a Template for exams.
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub template: String,
    /// Whether it runs. Default: true.
    #[schemars(with = "Option<bool>", extend("default" = null))]
    pub running: bool,
    /// The URLs of its content and of its status check.
    #[schemars(rename = "customizationUrls", with = "Option<Customization>")]
    pub customization: Customization,
    /// The URLs of its content in the newer form, which count instead of those in `customizationUrls`.
    #[schemars(rename = "contentUrls", with = "Option<Content>")]
    pub content: Content,
    /// Labels to be added or changed. Those of the daemon (`crownlabs.polito.it/…`) cannot be set.
    #[schemars(with = "Option<BTreeMap<String, String>>", extend("default" = null))]
    pub labels: BTreeMap<String, String>,
}

/// URLs of an Instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "WantedCustomization", rename_all = "camelCase")]
pub struct Customization {
    /// Where the content comes from.
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub content_origin: String,
    /// Where the content goes to when the Instance ends.
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub content_destination: String,
    /// The URL that says for how long the Instance is needed. An empty one removes that of an existing Instance, without one it
    /// is kept.
    #[schemars(extend("default" = null))]
    pub status_check: Option<String>,
}

/// URLs of the content of an Instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "WantedContent")]
pub struct Content {
    /// Where it comes from.
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub origin: String,
    /// Where it goes to when the Instance ends.
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub destination: String,
}

impl Default for WantedInstance {
    fn default() -> Self {
        Self {
            id: String::new(),
            template: String::new(),
            running: true,
            customization: Customization::default(),
            content: Content::default(),
            labels: BTreeMap::new(),
        }
    }
}

/// The longest identifier, in bytes: that of the name of an object.
const LONGEST_ID: usize = 253;

/// Reads a body.
///
/// # Errors
/// If it does not begin with a JSON object or `null`, a member has another type, or a text is not one that can be shown. The
/// error does not repeat values, which may be secret.
pub fn read(body: &[u8]) -> Result<WantedInstance, String> {
    let mut decoder = serde_json::Deserializer::from_slice(body);
    let first = <&RawValue>::deserialize(&mut decoder).map_err(|_| "this is no JSON".to_owned())?;
    let mut wanted = WantedInstance::default();
    for (key, value) in members("the body", first)? {
        match key.to_ascii_lowercase().as_str() {
            "id" => set(&key, value, &mut wanted.id)?,
            "template" => set(&key, value, &mut wanted.template)?,
            "running" => set(&key, value, &mut wanted.running)?,
            "customizationurls" => customization(&key, value, &mut wanted.customization)?,
            "contenturls" => content(&key, value, &mut wanted.content)?,
            "labels" => {
                // As in Go, the value of a label that is null is empty.
                let labels: Option<BTreeMap<String, Option<String>>> = typed(&key, value)?;
                let labels = labels.into_iter().flatten();
                wanted.labels.extend(labels.map(|(key, value)| (key, value.unwrap_or_default())));
            }
            _ => {}
        }
    }
    check(&wanted)?;
    Ok(wanted)
}

fn customization(key: &str, value: &RawValue, to: &mut Customization) -> Result<(), String> {
    for (name, value) in members(key, value)? {
        let path = format!("{key}.{name}");
        match name.to_ascii_lowercase().as_str() {
            "contentorigin" => set(&path, value, &mut to.content_origin)?,
            "contentdestination" => set(&path, value, &mut to.content_destination)?,
            "statuscheck" => {
                to.status_check = typed::<Option<String>>(&path, value)?.or(to.status_check.take());
            }
            _ => {}
        }
    }
    Ok(())
}

fn content(key: &str, value: &RawValue, to: &mut Content) -> Result<(), String> {
    for (name, value) in members(key, value)? {
        let path = format!("{key}.{name}");
        match name.to_ascii_lowercase().as_str() {
            "origin" => set(&path, value, &mut to.origin)?,
            "destination" => set(&path, value, &mut to.destination)?,
            _ => {}
        }
    }
    Ok(())
}

/// Sets a member, unless its value is null.
fn set<T: DeserializeOwned>(key: &str, value: &RawValue, to: &mut T) -> Result<(), String> {
    if let Some(value) = typed::<Option<T>>(key, value)? {
        *to = value;
    }
    Ok(())
}

fn typed<T: DeserializeOwned>(key: &str, value: &RawValue) -> Result<T, String> {
    serde_json::from_str(value.get()).map_err(|_| format!("{} has a wrong type", shown(key)))
}

/// The members of an object, in their order; none of `null`.
fn members<'v>(key: &str, value: &'v RawValue) -> Result<Vec<(String, &'v RawValue)>, String> {
    let members = serde_json::from_str::<Option<Members<'v>>>(value.get());
    let members = members.map_err(|_| format!("{} is no JSON object", shown(key)))?;
    Ok(members.map(|Members(members)| members).unwrap_or_default())
}

/// The beginning of a key, which may be long.
fn shown(key: &str) -> String {
    key.chars().take(64).filter(|character| !character.is_control()).collect()
}

/// Whether the texts can be shown and logged.
fn check(wanted: &WantedInstance) -> Result<(), String> {
    let WantedInstance { id, template, customization, content, .. } = wanted;
    if id.len() > LONGEST_ID {
        return Err(format!("id is longer than {LONGEST_ID} bytes"));
    }
    let texts = [
        ("id", id.as_str()),
        ("template", template),
        ("contentOrigin", &customization.content_origin),
        ("contentDestination", &customization.content_destination),
        ("statusCheck", customization.status_check.as_deref().unwrap_or_default()),
        ("origin", &content.origin),
        ("destination", &content.destination),
    ];
    match texts.into_iter().find(|(_, text)| text.chars().any(char::is_control)) {
        Some((key, _)) => Err(format!("{key} has control characters")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(body: &str) -> WantedInstance {
        read(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error}"))
    }

    #[test]
    fn every_member_may_be_missing_or_null() {
        for body in [
            "{}",
            "null",
            r#"{"id": null, "template": null, "running": null, "customizationUrls": null, "contentUrls": null, "labels": null}"#,
            r#"{"customizationUrls": {"contentOrigin": null, "statusCheck": null}, "contentUrls": {"origin": null}}"#,
        ] {
            assert_eq!(wanted(body), WantedInstance::default(), "{body}");
        }
    }

    #[test]
    fn keys_are_read_in_any_case_and_the_last_one_counts() {
        let body = r#"{"ID": "first", "iD": "exam-1", "id": null, "TEMPLATE": "desktop", "Running": false,
            "customizationurls": {"CONTENTORIGIN": "a", "contentdestination": "b"},
            "CustomizationUrls": {"StatusCheck": "c"}, "CONTENTURLS": {"Origin": "d", "DESTINATION": "e"},
            "Labels": {"A": "1", "a": "2", "n": null}, "labels": {"b": "3"}, "phase": 7, "url": [], "unknown": 1e999}"#;
        let expected = WantedInstance {
            id: "exam-1".to_owned(),
            template: "desktop".to_owned(),
            running: false,
            customization: Customization {
                content_origin: "a".to_owned(),
                content_destination: "b".to_owned(),
                status_check: Some("c".to_owned()),
            },
            content: Content { origin: "d".to_owned(), destination: "e".to_owned() },
            labels: [("A", "1"), ("a", "2"), ("n", ""), ("b", "3")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        };
        assert_eq!(wanted(body), expected);
    }

    #[test]
    fn what_comes_after_the_first_value_is_ignored() {
        for body in ["{}{", "{} garbage", r#"{"template": ""} {"template": "x"}"#] {
            assert_eq!(wanted(body), WantedInstance::default(), "{body}");
        }
    }

    #[test]
    fn an_empty_status_check_is_not_the_same_as_none() {
        let check = |body: &str| wanted(body).customization.status_check;
        assert_eq!(check(r#"{"customizationUrls": {}}"#), None);
        assert_eq!(check(r#"{"customizationUrls": {"statusCheck": ""}}"#).as_deref(), Some(""));
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_its_values() {
        let long = format!(r#"{{"id": "{}"}}"#, "secret".repeat(50));
        for (body, expected) in [
            ("", "this is no JSON"),
            (" ", "this is no JSON"),
            ("{", "this is no JSON"),
            ("[]", "the body is no JSON object"),
            ("\"secret\"", "the body is no JSON object"),
            ("7", "the body is no JSON object"),
            (r#"{"id": 7}"#, "id has a wrong type"),
            (r#"{"Running": "secret"}"#, "Running has a wrong type"),
            (r#"{"labels": {"a": 1}}"#, "labels has a wrong type"),
            (r#"{"labels": []}"#, "labels has a wrong type"),
            (r#"{"customizationUrls": "secret"}"#, "customizationUrls is no JSON object"),
            (
                r#"{"customizationUrls": {"statusCheck": 1}}"#,
                "customizationUrls.statusCheck has a wrong type",
            ),
            (r#"{"contentUrls": {"origin": {}}}"#, "contentUrls.origin has a wrong type"),
            (r#"{"id": "a\nb"}"#, "id has control characters"),
            (r#"{"contentUrls": {"origin": "\u0000"}}"#, "origin has control characters"),
            (r#"{"id": "\ud800"}"#, "id has a wrong type"),
            (&long, "id is longer than 253 bytes"),
        ] {
            assert_eq!(read(body.as_bytes()), Err(expected.to_owned()), "{body}");
        }
        assert!(read(b"{\"id\": \"\xff\"}").is_err());
        assert!(read("[".repeat(50_000).as_bytes()).is_err());
        assert_eq!(
            wanted(&format!(r#"{{"x": {}{}}}"#, "[".repeat(9_000), "]".repeat(9_000))),
            WantedInstance::default()
        );
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&body);
        }

        #[test]
        fn a_text_is_read_as_it_is(id in "[^\\p{C}]{0,60}") {
            let body = serde_json::json!({"id": &id}).to_string();
            prop_assert_eq!(wanted(&body).id, id);
        }
    }
}
