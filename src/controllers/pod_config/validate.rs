//! Validates the attachments of a `PodConfig`. This module finds the problems of a single attachment (its name, its
//! bridge, its link type, its range). [`super::claims`] finds conflicts with other attachments.

use std::collections::{BTreeSet, HashMap};

use super::ranges::Range;
use crate::api::pod_config::{NetworkAttachment, PodConfig, PodConfigSpec};
use crate::api::reason;
use crate::controllers::pod_network::{LONGEST_NAME, link_name_fault};
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The maximum number of attachments of one `PodConfig`: more than any pod has, and few enough to list in a message.
pub const LIMIT: usize = 64;
/// The number of characters of a user's text that a message repeats.
const SHOWN: usize = 40;

/// A valid attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name, which is part of the names of both links.
    pub name: String,
    /// The bridge.
    pub bridge: String,
    /// The range.
    pub range: Range,
}

/// The decision about an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Pods get it.
    Granted(Attachment),
    /// Pods get it once the former user of its range or bridge is removed. Pods that already have it keep it.
    Waiting(Attachment, Problem),
    /// Pods do not get it.
    Refused(Problem),
}

/// The decisions about the attachments of each `PodConfig`, in the order of its spec.
pub type Decisions = HashMap<ObjectKey, Vec<Verdict>>;

/// The validated requests of a `PodConfig`: the input of plan and report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validated {
    /// The attachments that its pods get, in the order of its spec, each with whether more pods may get it now.
    pub attachments: Vec<(Attachment, bool)>,
    /// Whether some attachments were refused.
    pub is_refused: bool,
    /// The problems of its spec, and conflicts.
    pub problems: Vec<Problem>,
}

/// Validates a `PodConfig`, given the decisions about its attachments.
pub fn validate(config: &PodConfig, verdicts: &[Verdict]) -> Validated {
    let mut validated = Validated::default();
    if let Some(why) = &config.malformed {
        let message = format!("the spec cannot be read: {why}");
        validated.problems.push(Problem::fault(Component::Whole, reason::INVALID_SPEC, message));
    }
    for verdict in verdicts {
        let (attachment, problem) = match verdict {
            Verdict::Granted(attachment) => (Some((attachment.clone(), true)), None),
            Verdict::Waiting(attachment, problem) => (Some((attachment.clone(), false)), Some(problem)),
            Verdict::Refused(problem) => (None, Some(problem)),
        };
        validated.is_refused |= attachment.is_none();
        validated.attachments.extend(attachment);
        validated.problems.extend(problem.cloned());
    }
    validated
}

/// The attachments of a `PodConfig` in order, each with its problem if it is invalid.
pub fn attachments(spec: &PodConfigSpec) -> Vec<Result<Attachment, Problem>> {
    let all = &spec.network_attachments;
    let mut names = BTreeSet::new();
    let mut checked: Vec<_> =
        all.iter().take(LIMIT).enumerate().map(|(place, one)| check(place, one, &mut names)).collect();
    if all.len() > LIMIT {
        let message = format!(
            "spec.networkAttachments has {} entries, but only the first {LIMIT} are used: remove the others",
            all.len()
        );
        checked.push(Err(Problem::fault(Component::Whole, reason::INVALID_ATTACHMENT, message)));
    }
    checked
}

fn check<'a>(
    place: usize,
    attachment: &'a NetworkAttachment,
    names: &mut BTreeSet<&'a str>,
) -> Result<Attachment, Problem> {
    let NetworkAttachment { name, link_type, master, cidr, .. } = attachment;
    let path = format!("spec.networkAttachments[{place}]");
    let invalid = |field: &str, text: &str, why: &str| {
        let message = format!("{path}.{field} {} {why}", shown(text));
        Problem::fault(Component::Whole, reason::INVALID_ATTACHMENT, message)
    };
    if let Some(why) = link_name_fault(name) {
        return Err(invalid("name", name, why));
    }
    if name.len() + 2 > LONGEST_NAME {
        // A prefix `h` and at least one digit of a process ID are added to it.
        let message = format!(
            "{path}.name {} is too long: with the process ID of the pod, the names of its links have at most \
             {LONGEST_NAME} bytes; use at most 7 characters",
            shown(name)
        );
        return Err(Problem::fault(Component::Whole, reason::NAME_TOO_LONG, message));
    }
    if !names.insert(name) {
        return Err(invalid("name", name, "is the name of an earlier attachment: use a different name"));
    }
    if let Some(why) = link_name_fault(master) {
        return Err(invalid("master", master, why));
    }
    if master.len() > LONGEST_NAME {
        return Err(invalid("master", master, "is longer than 15 bytes, the maximum for the name of a link"));
    }
    if !["", "veth"].contains(&link_type.as_str()) {
        let message = format!("{path}.linkType {} is not supported: write veth", shown(link_type));
        return Err(Problem::fault(Component::Whole, reason::UNSUPPORTED_LINK_TYPE, message));
    }
    let range = Range::parse(cidr).map_err(|why| {
        let message =
            format!("{path}.cidr {} {why}: write a range such as 10.77.0.0/24 or fd00:77::/64", shown(cidr));
        Problem::fault(Component::Whole, reason::INVALID_CIDR, message)
    })?;
    Ok(Attachment { name: name.clone(), bridge: master.clone(), range })
}

/// A user's text in quotation marks, truncated and without control characters.
pub fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{:?}", format!("{cut}{more}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(attachments: &Value) -> PodConfigSpec {
        serde_json::from_value(json!({"networkAttachments": attachments})).expect("a spec")
    }

    /// The result for the second of two attachments: its reason and message if it is invalid. The first one is valid.
    fn second(attachment: &Value) -> Result<Attachment, (String, String)> {
        let mut second =
            json!({"name": "mgmt", "linkType": "veth", "parent": "", "master": "br1", "cidr": "10.2.0.9/24"});
        crate::runtime::merge::apply(&mut second, attachment);
        let first = json!({"name": "data", "linkType": "veth", "parent": "x", "master": "br0", "cidr": "10.1.0.0/24"});
        let mut found = attachments(&spec(&json!([first, second])));
        assert!(found[0].is_ok());
        found.remove(1).map_err(|problem| {
            assert!(problem.stalled);
            (problem.reason.to_string(), problem.message)
        })
    }

    #[test]
    fn each_attachment_is_checked_separately() {
        let range = Range::parse("10.2.0.0/24").expect("a range");
        let right = Attachment { name: "mgmt".to_owned(), bridge: "br1".to_owned(), range };
        assert_eq!(second(&json!({})), Ok(right.clone()));
        assert_eq!(second(&json!({"linkType": ""})), Ok(right.clone()));
        assert_eq!(second(&json!({"parent": "../x"})), Ok(right), "it is ignored");
        for (attachment, reason, part) in [
            (json!({"name": ""}), "InvalidAttachment", "[1].name \"\" is empty"),
            (json!({"name": "data"}), "InvalidAttachment", "an earlier attachment"),
            (json!({"name": "a/b"}), "InvalidAttachment", "has a character"),
            (json!({"name": "a b"}), "InvalidAttachment", "has a character"),
            (json!({"name": "a\nb"}), "InvalidAttachment", "\"a\\nb\" has a character"),
            (json!({"name": ".."}), "InvalidAttachment", "is not a valid link name"),
            (json!({"name": "veth%d"}), "InvalidAttachment", "has a character"),
            (json!({"name": "a".repeat(14)}), "NameTooLong", "at most 7"),
            (json!({"name": "a".repeat(10_000)}), "NameTooLong", "…\" is too long"),
            (json!({"master": ""}), "InvalidAttachment", "[1].master \"\" is empty"),
            (json!({"master": "a:b"}), "InvalidAttachment", "has a character"),
            (json!({"master": "a".repeat(16)}), "InvalidAttachment", "15 bytes"),
            (json!({"master": "ä".repeat(8)}), "InvalidAttachment", "15 bytes"),
            (json!({"linkType": "vlan"}), "UnsupportedLinkType", "[1].linkType \"vlan\" is not supported"),
            (json!({"cidr": ""}), "InvalidCIDR", "[1].cidr \"\" is not an address range"),
            (json!({"cidr": "10.0.0.0/31"}), "InvalidCIDR", "1 to 30"),
        ] {
            let (found, message) = second(&attachment).expect_err("it is wrong");
            assert!(found == reason && message.contains(part), "{attachment}: {found} {message}");
        }
        assert!(second(&json!({"name": "a".repeat(13), "master": "a".repeat(15)})).is_ok());
    }

    #[test]
    fn there_is_a_limit() {
        let all: Vec<Value> = (0..=LIMIT)
            .map(|n| json!({"name": format!("a{n}"), "master": "br", "cidr": "10.1.0.0/24"}))
            .collect();
        let found = attachments(&spec(&json!(all)));
        assert_eq!((found.len(), found.iter().filter(|one| one.is_err()).count()), (LIMIT + 1, 1));
    }
}
