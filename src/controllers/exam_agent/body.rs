//! The JSON that clients send to create or replace an Instance.
//!
//! Clients rely on how Go's decoder reads an object: keys match in any case, the last duplicate counts, `null` counts
//! as absent, and unknown keys and everything after the first value are ignored. The first value must be an object.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::access::Refusal;
use crate::controllers::shared::members::Members;

/// The Instance that a client asks for. Keys are read in any case, and unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct WantedInstance {
    /// An identifier that is shown to users, such as a student's number. It is not the name of the Instance.
    #[schemars(with = "Option<String>", length(max = LONGEST_ID), extend("default" = null, "pattern" = TEXT))]
    pub id: String,
    /// The name of a Template for exams.
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME))]
    pub template: String,
    /// Whether the Instance runs. Default: true.
    #[schemars(with = "Option<bool>", extend("default" = null))]
    pub running: bool,
    /// The URLs of its content and of its status check.
    #[schemars(rename = "customizationUrls", with = "Option<Customization>")]
    pub customization: Customization,
    /// The URLs of its content in the newer form. They take precedence over those in `customizationUrls`.
    #[schemars(rename = "contentUrls", with = "Option<Content>")]
    pub content: Content,
    /// Labels to add or change. The daemon's own labels (`crownlabs.polito.it/…`) cannot be set.
    #[schemars(
        with = "Option<BTreeMap<String, String>>",
        extend("default" = null, "propertyNames" = label_key(), "additionalProperties" = label_value())
    )]
    pub labels: BTreeMap<String, String>,
}

/// URLs of an Instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "WantedCustomization", rename_all = "camelCase")]
pub struct Customization {
    /// Where the content comes from.
    #[schemars(with = "Option<String>", extend("default" = null, "pattern" = TEXT))]
    pub content_origin: String,
    /// Where the content goes to when the Instance ends.
    #[schemars(with = "Option<String>", extend("default" = null, "pattern" = TEXT))]
    pub content_destination: String,
    /// The URL that says for how long the Instance is needed. An empty value removes the URL of an existing Instance;
    /// without this field, the URL is kept.
    #[schemars(extend("default" = null, "pattern" = TEXT))]
    pub status_check: Option<String>,
}

/// URLs of the content of an Instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "WantedContent")]
pub struct Content {
    /// Where it comes from.
    #[schemars(with = "Option<String>", extend("default" = null, "pattern" = TEXT))]
    pub origin: String,
    /// Where it goes to when the Instance ends.
    #[schemars(with = "Option<String>", extend("default" = null, "pattern" = TEXT))]
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

/// The longest identifier, in characters.
const LONGEST_ID: usize = 253;
/// The pattern of the names of objects.
pub const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// The pattern of texts without control characters.
const TEXT: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
/// An example for the messages.
const EXAMPLE: &str = r#"send an object such as {"template": "desktop"}"#;

/// The schema of the key of a label that a client may set.
pub fn label_key() -> Value {
    let prefix = "([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?";
    let pattern = format!("^{prefix}[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$");
    json!({"pattern": pattern, "maxLength": 253, "not": {"pattern": "(^|\\.)crownlabs\\.polito\\.it/"}})
}

/// The schema of the value of a label.
pub fn label_value() -> Value {
    json!({"type": "string", "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"})
}

/// Reads a body.
///
/// # Errors
/// [`Refusal::Malformed`] if the body does not begin with JSON. [`Refusal::Invalid`] if the first value is not an
/// object, a member has the wrong type, or a text has control characters. The error does not repeat values, which may
/// be secret.
pub fn read(body: &[u8]) -> Result<WantedInstance, Refusal> {
    if body.trim_ascii().is_empty() {
        return Err(Refusal::Malformed(format!("the body is empty: {EXAMPLE}")));
    }
    let mut decoder = serde_json::Deserializer::from_slice(body);
    let first = <&RawValue>::deserialize(&mut decoder);
    let first =
        first.map_err(|error| Refusal::Malformed(format!("the body is not JSON ({error}): {EXAMPLE}")))?;
    wanted(first).map_err(Refusal::Invalid)
}

/// The Instance that the first value of a body describes.
fn wanted(first: &RawValue) -> Result<WantedInstance, String> {
    if let Some(kind) = other_than_object(first) {
        return Err(format!("the body must be an object, not {kind}: {EXAMPLE}"));
    }
    let mut wanted = WantedInstance::default();
    for (key, value) in members("body", first)? {
        match key.to_ascii_lowercase().as_str() {
            "id" => set(&key, value, &mut wanted.id)?,
            "template" => set(&key, value, &mut wanted.template)?,
            "running" => set(&key, value, &mut wanted.running)?,
            "customizationurls" => customization(&key, value, &mut wanted.customization)?,
            "contenturls" => content(&key, value, &mut wanted.content)?,
            "labels" => {
                // As in Go, a label whose value is null gets an empty value.
                let labels: Option<Labels> = typed(&key, value)?;
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
                to.status_check = typed::<String>(&path, value)?.or(to.status_check.take());
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

/// The labels as the client sent them.
type Labels = BTreeMap<String, Option<String>>;

/// A type that a member can have.
trait Member: DeserializeOwned {
    /// The name of the type in messages.
    const TYPE: &str;
}

impl Member for String {
    const TYPE: &str = "a text";
}

impl Member for bool {
    const TYPE: &str = "true or false";
}

impl Member for Labels {
    const TYPE: &str = "an object whose values are texts";
}

/// Sets a member, unless its value is null.
fn set<T: Member>(key: &str, value: &RawValue, to: &mut T) -> Result<(), String> {
    if let Some(value) = typed(key, value)? {
        *to = value;
    }
    Ok(())
}

/// The value of a member; `None` if it is null.
fn typed<T: Member>(key: &str, value: &RawValue) -> Result<Option<T>, String> {
    serde_json::from_str(value.get()).map_err(|_| format!("{} must be {}", shown(key), T::TYPE))
}

/// The members of an object in their order; `null` has no members.
fn members<'v>(key: &str, value: &'v RawValue) -> Result<Vec<(String, &'v RawValue)>, String> {
    let members = serde_json::from_str::<Option<Members<'v>>>(value.get());
    let members = members.map_err(|_| format!("{} must be an object", shown(key)))?;
    Ok(members.map(|Members(members)| members).unwrap_or_default())
}

/// The name of the value's type, unless it is an object.
fn other_than_object(value: &RawValue) -> Option<&'static str> {
    match value.get().as_bytes().first() {
        Some(b'{') => None,
        Some(b'[') => Some("an array"),
        Some(b'"') => Some("a text"),
        Some(b'n') => Some("null"),
        Some(b't' | b'f') => Some("true or false"),
        _ => Some("a number"),
    }
}

/// The first characters of a key, which may be long.
fn shown(key: &str) -> String {
    key.chars().take(64).filter(|character| !character.is_control()).collect()
}

/// Checks that the texts can be displayed and logged.
fn check(wanted: &WantedInstance) -> Result<(), String> {
    let WantedInstance { id, template, customization, content, .. } = wanted;
    if id.chars().count() > LONGEST_ID {
        return Err(format!("id must have at most {LONGEST_ID} characters"));
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
    let wrong = texts.into_iter().find(|(_, text)| text.chars().any(char::is_control));
    wrong.map_or(Ok(()), |(key, _)| Err(format!("{key} must not have control characters")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(body: &str) -> WantedInstance {
        read(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error:?}"))
    }

    #[test]
    fn every_member_may_be_missing_or_null() {
        for body in [
            "{}",
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
    fn text_after_the_first_value_is_ignored() {
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
    fn an_unreadable_body_is_refused_without_repeating_its_values() {
        let long = format!(r#"{{"id": "{}"}}"#, "secret".repeat(50));
        for (body, expected) in [
            (
                "null",
                "the body must be an object, not null: send an object such as {\"template\": \"desktop\"}",
            ),
            (" null ", "the body must be an object, not null"),
            ("[]", "the body must be an object, not an array"),
            ("\"secret\"", "the body must be an object, not a text"),
            ("7", "the body must be an object, not a number"),
            ("-7e3", "the body must be an object, not a number"),
            ("true", "the body must be an object, not true or false"),
            (r#"{"id": 7}"#, "id must be a text"),
            (r#"{"template": ["secret"]}"#, "template must be a text"),
            (r#"{"Running": "secret"}"#, "Running must be true or false"),
            (r#"{"labels": {"a": 1}}"#, "labels must be an object whose values are texts"),
            (r#"{"labels": []}"#, "labels must be an object whose values are texts"),
            (r#"{"customizationUrls": "secret"}"#, "customizationUrls must be an object"),
            (r#"{"customizationUrls": {"statusCheck": 1}}"#, "customizationUrls.statusCheck must be a text"),
            (r#"{"contentUrls": {"origin": {}}}"#, "contentUrls.origin must be a text"),
            (r#"{"id": "a\nb"}"#, "id must not have control characters"),
            (r#"{"contentUrls": {"origin": "\u0000"}}"#, "origin must not have control characters"),
            (r#"{"id": "\ud800"}"#, "id must be a text"),
            (&long, "id must have at most 253 characters"),
        ] {
            let Err(Refusal::Invalid(message)) = read(body.as_bytes()) else { panic!("{body}") };
            assert!(message.starts_with(expected) && !message.contains("secret"), "{body}: {message}");
        }
        let deep = "[".repeat(50_000);
        for (body, expected) in [
            ("", "the body is empty: send an object"),
            (" \n", "the body is empty: send an object"),
            ("{", "the body is not JSON (EOF while parsing an object at line 1 column 1): send an object"),
            ("secret", "the body is not JSON (expected value at line 1 column 1)"),
            ("id=secret", "the body is not JSON ("),
            (r#"{"secret"}"#, "the body is not JSON ("),
            (&deep, "the body is not JSON ("),
        ] {
            let Err(Refusal::Malformed(message)) = read(body.as_bytes()) else { panic!("{body}") };
            assert!(message.starts_with(expected) && !message.contains("secret"), "{body}: {message}");
        }
        assert!(matches!(read(b"{\"id\": \"\xff\"}"), Err(Refusal::Malformed(_))));
        assert_eq!(wanted(&format!(r#"{{"id": "{}"}}"#, "\u{e4}".repeat(253))).id.chars().count(), 253);
        assert_eq!(
            wanted(&format!(r#"{{"x": {}{}}}"#, "[".repeat(9_000), "]".repeat(9_000))),
            WantedInstance::default()
        );
    }

    proptest! {
        #[test]
        fn no_body_makes_the_reader_panic(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&body);
        }

        #[test]
        fn a_text_is_read_as_it_is(id in "[^\\p{C}]{0,60}") {
            let body = serde_json::json!({"id": &id}).to_string();
            prop_assert_eq!(wanted(&body).id, id);
        }
    }
}
