//! What a `PodConfig` asks for. What is wrong with an attachment by itself (its name, its bridge, the type of its link, its range)
//! is found here; what others have already, in [`super::claims`].

use std::collections::BTreeSet;

use super::ranges::Range;
use crate::api::pod_config::{NetworkAttachment, PodConfig, PodConfigSpec};
use crate::api::reason;
use crate::controllers::pod_network::{LONGEST_NAME, link_name_fault};
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The most attachments of one `PodConfig`: more than any pod has, and few enough to name them in a message.
pub const LIMIT: usize = 64;
/// How much of a user's text a message repeats, in characters.
const SHOWN: usize = 40;

/// An attachment that can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name, with which the names of both links begin.
    pub name: String,
    /// The bridge.
    pub bridge: String,
    /// The range.
    pub range: Range,
}

/// What is decided about an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Pods get it.
    Granted(Attachment),
    /// Pods get it once what has its range or bridge now is removed; those that have it keep it.
    Waiting(Attachment, Problem),
    /// Pods do not get it.
    Refused(Problem),
}

/// What is decided about the attachments of a `PodConfig`, in the order of its spec.
pub type Verdicts = Vec<Verdict>;

/// What a `PodConfig` asks for, once it was checked: plan and report take it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validated {
    /// The attachments that its pods get, in the order of its spec, each with whether further pods may get it now.
    pub attachments: Vec<(Attachment, bool)>,
    /// Whether there are others, which they do not get.
    pub is_refused: bool,
    /// What is wrong with its spec, or in its way.
    pub problems: Vec<Problem>,
}

/// What a `PodConfig` asks for, about whose attachments this is decided.
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

/// The attachments of a `PodConfig`, in order, or what is wrong with each.
pub fn attachments(spec: &PodConfigSpec) -> Vec<Result<Attachment, Problem>> {
    let all = &spec.network_attachments;
    let mut names = BTreeSet::new();
    let mut checked: Vec<_> =
        all.iter().take(LIMIT).enumerate().map(|(place, one)| check(place, one, &mut names)).collect();
    if all.len() > LIMIT {
        let message = format!(
            "spec.networkAttachments has {} entries, of which the first {LIMIT} are made: use no more",
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
        // With an `h` before it and at least one digit of a process ID behind it.
        let message = format!(
            "{path}.name {} is too long: with the process ID of the pod, the names of its links have at most \
             {LONGEST_NAME} bytes; use at most 7 characters",
            shown(name)
        );
        return Err(Problem::fault(Component::Whole, reason::NAME_TOO_LONG, message));
    }
    if !names.insert(name) {
        return Err(invalid("name", name, "is the name of an attachment before it: give each its own"));
    }
    if let Some(why) = link_name_fault(master) {
        return Err(invalid("master", master, why));
    }
    if master.len() > LONGEST_NAME {
        return Err(invalid(
            "master",
            master,
            "is longer than the 15 bytes that the name of a link may have",
        ));
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

/// A text of a user in quotation marks, cut off and without control characters.
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

    /// Reason and message of the second of two attachments; the first is right.
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
    fn each_attachment_is_checked_by_itself() {
        let range = Range::parse("10.2.0.0/24").expect("a range");
        let right = Attachment { name: "mgmt".to_owned(), bridge: "br1".to_owned(), range };
        assert_eq!(second(&json!({})), Ok(right.clone()));
        assert_eq!(second(&json!({"linkType": ""})), Ok(right.clone()));
        assert_eq!(second(&json!({"parent": "../x"})), Ok(right), "it is ignored");
        for (attachment, reason, part) in [
            (json!({"name": ""}), "InvalidAttachment", "[1].name \"\" is empty"),
            (json!({"name": "data"}), "InvalidAttachment", "an attachment before it"),
            (json!({"name": "a/b"}), "InvalidAttachment", "has a character"),
            (json!({"name": "a b"}), "InvalidAttachment", "has a character"),
            (json!({"name": "a\nb"}), "InvalidAttachment", "\"a\\nb\" has a character"),
            (json!({"name": ".."}), "InvalidAttachment", "is no name"),
            (json!({"name": "veth%d"}), "InvalidAttachment", "has a character"),
            (json!({"name": "a".repeat(14)}), "NameTooLong", "at most 7"),
            (json!({"name": "a".repeat(10_000)}), "NameTooLong", "…\" is too long"),
            (json!({"master": ""}), "InvalidAttachment", "[1].master \"\" is empty"),
            (json!({"master": "a:b"}), "InvalidAttachment", "has a character"),
            (json!({"master": "a".repeat(16)}), "InvalidAttachment", "15 bytes"),
            (json!({"master": "ä".repeat(8)}), "InvalidAttachment", "15 bytes"),
            (json!({"linkType": "vlan"}), "UnsupportedLinkType", "[1].linkType \"vlan\" is not supported"),
            (json!({"cidr": ""}), "InvalidCIDR", "[1].cidr \"\" is no range"),
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
