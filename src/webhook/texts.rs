//! Limits new texts: a user who may edit an object could store a mebibyte in it, which every reader of the object would
//! hold in memory and display. Existing texts are kept, so that other fields can still be changed.

use std::collections::HashSet;

use serde_json::Value;

use super::decision::Denial;
use crate::api::denial::DenialReason;
use crate::api::shown::{self, shown};

/// The maximum length of texts for people, in characters, by field name.
const OF_PEOPLE: [(&str, usize); 4] =
    [("prettyName", shown::MOST), ("firstName", shown::MOST), ("lastName", shown::MOST), ("email", 320)];
/// The maximum length of other texts, in characters. The longest are URLs, which browsers and servers also limit to
/// this length.
const OF_OTHERS: usize = 2_048;
/// The list whose texts have a separate rule (`tenant::input`).
const PUBLIC_KEYS: &str = "publicKeys";
/// The maximum total size of all texts of an object in bytes, including its annotations.
const OF_OBJECT: usize = 64 << 10;
/// The same for a Tenant, which may have 64 KiB of keys and be in thousands of Workspaces. Both may occur twice,
/// because `kubectl apply` keeps a copy in an annotation.
const OF_TENANT: usize = 512 << 10;

/// Checks the texts of an object. `old` is null if it is created.
///
/// # Errors
/// When a text that is not in `old`, or the total, is too long. The message names the field, its length and the limit.
pub fn check(old: &Value, new: &Value, is_tenant: bool) -> Result<(), Denial> {
    let ((before, _), (now, annotations)) = (texts(old), texts(new));
    let known: HashSet<&str> = before.iter().map(|text| text.value).collect();
    for Text { path, name, value } in now.iter().skip(annotations) {
        let most = OF_PEOPLE.iter().find(|(of, _)| of == name).map_or(OF_OTHERS, |(_, most)| *most);
        let length = value.chars().count();
        if length > most && !known.contains(value) {
            let path = shown(path);
            let message = format!("{path} has {length} characters: at most {most} are allowed");
            return Err(Denial::malformed(message).because(DenialReason::TextTooLong, &most.to_string()));
        }
    }
    let bytes = |texts: &[Text<'_>]| texts.iter().map(|text| text.value.len()).sum::<usize>();
    let (most, length) = (if is_tenant { OF_TENANT } else { OF_OBJECT }, bytes(&now));
    if length > most && length > bytes(&before) {
        let message =
            format!("spec and metadata.annotations have {length} bytes of text: at most {most} are allowed");
        return Err(Denial::malformed(message));
    }
    Ok(())
}

/// The texts of an object, and the number of texts in annotations, which come first.
fn texts(object: &Value) -> (Vec<Text<'_>>, usize) {
    let mut found = Vec::new();
    collect("metadata.annotations", "", &object["metadata"]["annotations"], &mut found);
    let annotations = found.len();
    collect("spec", "", &object["spec"], &mut found);
    (found, annotations)
}

/// A text of an object.
struct Text<'a> {
    /// Its path, such as `spec.contentUrls.desktop.origin`.
    path: String,
    /// The name of its field.
    name: &'a str,
    value: &'a str,
}

/// Collects the texts within a value, and the names of members.
fn collect<'a>(path: &str, name: &'a str, value: &'a Value, found: &mut Vec<Text<'a>>) {
    match value {
        Value::String(value) => found.push(Text { path: path.to_owned(), name, value }),
        Value::Array(_) if name == PUBLIC_KEYS => {}
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(&format!("{path}[{index}]"), name, item, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let path = format!("{path}.{}", shown(name));
                found.push(Text { path: format!("the name {path}"), name: "", value: name });
                collect(&path, name, member, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::webhook::fixture::{instance, merged, tenant};

    fn refusal(old: &Value, new: &Value) -> String {
        check(old, new, new["kind"] == "Tenant").err().map(|denial| denial.message).unwrap_or_default()
    }

    #[test]
    fn a_new_text_that_is_too_long_is_named_with_its_length_and_the_bound() {
        let box_ = || instance("tenant-ada", "box", "workspace-tea/desktop", true);
        let long = |length: usize| "ä".repeat(length);
        for (patch, expected) in [
            (json!({"spec": {"prettyName": long(200)}}), ""),
            (
                json!({"spec": {"prettyName": long(201)}}),
                "spec.prettyName has 201 characters: at most 200 are allowed",
            ),
            (json!({"spec": {"statusCheckUrl": long(2_048)}}), ""),
            (
                json!({"spec": {"contentUrls": {"desktop": {"origin": long(2_049)}}}}),
                "spec.contentUrls.desktop.origin has 2049 characters: at most 2048 are allowed",
            ),
            (
                json!({"spec": {"nodeSelector": {long(2_049): "x"}}}),
                &*format!(
                    "the name spec.nodeSelector.{}… has 2049 characters: at most 2048 are allowed",
                    long(172)
                ),
            ),
            (
                json!({"metadata": {"annotations": {"a": long(40_000)}}}),
                "spec and metadata.annotations have 80",
            ),
            (json!({"metadata": {"annotations": {"a": long(20_000)}}}), ""),
        ] {
            let new = merged(box_(), &patch);
            for said in [refusal(&Value::Null, &new), refusal(&box_(), &new)] {
                assert!(said.starts_with(expected) && said.is_empty() == expected.is_empty(), "{said}");
            }
            // Stored texts may stay, or move, while another field changes.
            assert_eq!(refusal(&new, &merged(new.clone(), &json!({"spec": {"running": false}}))), "");
        }
        let many: Vec<Value> = (0..100).map(|n| json!({"name": format!("{n}{}", long(900))})).collect();
        let many = merged(box_(), &json!({"spec": {"publicExposure": {"ports": many}}}));
        assert!(refusal(&box_(), &many).starts_with("spec and metadata.annotations have "), "all together");
    }

    #[test]
    fn keys_of_tenants_have_their_own_rule_and_many_courses_are_possible() {
        let courses: Vec<String> = (0..4_000).map(|n| format!("course-with-a-long-name-{n}:user")).collect();
        let courses: Vec<&str> = courses.iter().map(String::as_str).collect();
        let keys = json!({"spec": {"publicKeys": vec!["k".repeat(2_800); 20]}});
        assert_eq!(refusal(&Value::Null, &merged(tenant("ada", &courses), &keys)), "");
        let name = json!({"spec": {"firstName": "a\u{1b}".repeat(101)}});
        let expected = "spec.firstName has 202 characters: at most 200 are allowed";
        assert_eq!(refusal(&Value::Null, &merged(tenant("ada", &[]), &name)), expected);
    }
}
