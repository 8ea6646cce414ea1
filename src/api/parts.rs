//! The parts of an Instance: its environments, and the parts that are not environments. Their objects share one
//! namespace, so the names of two parts must differ if they have objects of the same kind.

use std::collections::BTreeMap;

use super::labels::{
    COMPONENT, COMPONENT_OAUTH2_PROXY, COMPONENT_PUBLIC_EXPOSURE, COMPONENT_SUBMITTER, ENVIRONMENT,
};
use super::meta::TextMap;

/// A part of an Instance that is not an environment.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// The suffix of the names of its objects, `<c>-<suffix>`, which is also the value of their label [`COMPONENT`].
    pub suffix: &'static str,
    /// The kinds of its objects that have such a name.
    pub kinds: &'static [&'static str],
    /// Its name for use in a sentence.
    pub called: &'static str,
}

/// The public exposure of an Instance.
pub const PUBLIC_EXPOSURE: Part =
    Part { suffix: COMPONENT_PUBLIC_EXPOSURE, kinds: &["Service"], called: "the public exposure" };
/// The OAuth2 proxy of an Instance.
pub const OAUTH2_PROXY: Part = Part {
    suffix: COMPONENT_OAUTH2_PROXY,
    kinds: &["Deployment", "Ingress", "Secret", "Service"],
    called: "the OAuth2 proxy",
};
/// The upload of the content of an Instance.
pub const SUBMITTER: Part =
    Part { suffix: COMPONENT_SUBMITTER, kinds: &["Job"], called: "the upload of the content" };
/// All parts that are not environments.
pub const PARTS: [&Part; 3] = [&PUBLIC_EXPOSURE, &OAUTH2_PROXY, &SUBMITTER];

/// The kinds of the objects of an environment, `<c>-<environment>`.
pub const ENVIRONMENT_KINDS: [&str; 10] = [
    "DataVolume",
    "Deployment",
    "HTTPRoute",
    "Ingress",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "Secret",
    "Service",
    "VirtualMachine",
    "VirtualMachineInstance",
];

/// Returns the part whose objects would have the same names and kinds as the objects of an environment with this
/// name. Such a name is reserved.
pub fn reserved_for(environment: &str) -> Option<&'static Part> {
    let shares_kind = |part: &Part| part.kinds.iter().any(|kind| ENVIRONMENT_KINDS.contains(kind));
    PARTS.into_iter().find(|part| part.suffix == environment && shares_kind(part))
}

/// Returns the part of an Instance that may have an object of this kind with this name. Other objects of the
/// kind must have other names.
pub fn reserving(kind: &str, name: &str) -> Option<&'static Part> {
    // Canonical names have no dots.
    let is_canonical = |begin: &str| begin.ends_with('-') && !begin.contains('.');
    let has_suffix = |part: &Part| name.strip_suffix(part.suffix).is_some_and(is_canonical);
    PARTS.into_iter().find(|part| part.kinds.contains(&kind) && has_suffix(part))
}

/// Returns the label that distinguishes an object from objects with the labels `wanted`, which belong to another part
/// of the same owner; `None` if they belong to the same part. An object that has lost its labels counts as the same
/// part.
pub fn other_part(found: &TextMap, wanted: &BTreeMap<String, String>) -> Option<String> {
    let said = |key: &str| found.get(key).map(|value| format!("{key}: {value}"));
    match (found.get(COMPONENT), wanted.get(COMPONENT)) {
        (Some(component), wanted) if wanted.is_none_or(|wanted| wanted != component) => said(COMPONENT),
        (None, Some(_)) => said(ENVIRONMENT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_name_is_reserved_where_a_part_has_objects_of_the_same_kind() {
        assert_eq!(reserved_for("pe"), Some(&PUBLIC_EXPOSURE));
        assert_eq!(reserved_for("oauth2-proxy"), Some(&OAUTH2_PROXY));
        // An environment has no Job, and its Ingress has another name in the layout with `-gui` and `-app`.
        for free in ["submitter", "gui", "app", "desktop", "pe2", ""] {
            assert_eq!(reserved_for(free), None, "{free}");
        }
    }

    #[test]
    fn a_name_with_the_suffix_of_a_part_is_reserved_for_its_kinds() {
        assert_eq!(reserving("Job", "exam-1-submitter"), Some(&SUBMITTER));
        assert_eq!(reserving("Service", "exam-1-pe"), Some(&PUBLIC_EXPOSURE));
        for (kind, free) in [
            ("Job", "exam-1-pe"),
            ("Job", "exam-1"),
            ("Job", "submitter"),
            ("Job", "exam.1-submitter"),
            ("Job", "exam-1-submitter-2"),
            ("Service", "exam-1-submitter"),
        ] {
            assert_eq!(reserving(kind, free), None, "{kind} {free}");
        }
    }

    #[test]
    fn labels_distinguish_the_parts_of_an_instance() {
        let (desktop, pe) = (json!({ENVIRONMENT: "pe"}), json!({COMPONENT: "pe"}));
        let both = json!({ENVIRONMENT: "pe", COMPONENT: "pe"});
        let none = json!({});
        for (found, wanted, expected) in [
            (&none, &none, None),
            (&none, &desktop, None),
            (&none, &pe, None),
            (&desktop, &desktop, None),
            // A label that was changed by hand is repaired.
            (&json!({ENVIRONMENT: "other"}), &desktop, None),
            (&desktop, &pe, Some("crownlabs.polito.it/environment: pe")),
            (&pe, &pe, None),
            (&pe, &none, Some("crownlabs.polito.it/component: pe")),
            (&pe, &desktop, Some("crownlabs.polito.it/component: pe")),
            (&both, &desktop, Some("crownlabs.polito.it/component: pe")),
            (&json!({COMPONENT: "submitter"}), &pe, Some("crownlabs.polito.it/component: submitter")),
        ] {
            let labels: TextMap = serde_json::from_value(found.clone()).expect("labels");
            let wanted_labels = |wanted: &Value| serde_json::from_value(wanted.clone()).expect("labels");
            let found_part = other_part(&labels, &wanted_labels(wanted));
            assert_eq!(found_part.as_deref(), expected, "{found} {wanted}");
        }
    }
}
