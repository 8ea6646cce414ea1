//! Ingresses, and the types of their paths.

use k8s_openapi::api::networking::v1::{HTTPIngressPath, IngressRule};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Unread, kind};

/// The type of a path that means what the Ingress controller makes of it, such as a regular expression.
pub const IMPLEMENTATION_SPECIFIC: &str = "ImplementationSpecific";

/// The fields that we read of the spec of an Ingress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressSpec {
    /// All rules, if the type of a path of one has to be corrected ([`has_wrong_type`]); else none, to save memory.
    #[serde(deserialize_with = "faulty_rules")]
    pub rules: Vec<IngressRule>,
}
kind!(/// An Ingress.
    IngressKind, Ingress, "networking.k8s.io", "v1", "Ingress", "ingresses", namespaced: true, IngressSpec, Unread);

/// Whether a path is a regular expression: it has characters that mean something in one, a dot excepted. The NGINX Ingress
/// controller refuses such a path of type `Exact` or `Prefix` (`strict-validate-path-type`, which is on by default since its
/// version 1.12).
pub fn is_regex_path(path: &str) -> bool {
    path.contains(['(', ')', '[', ']', '{', '}', '*', '+', '?', '^', '$', '|', '\\'])
}

/// Whether a path is a regular expression and its type does not say so.
pub fn has_wrong_type(path: &HTTPIngressPath) -> bool {
    path.path.as_deref().is_some_and(is_regex_path) && path.path_type != IMPLEMENTATION_SPECIFIC
}

fn faulty_rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IngressRule>, D::Error> {
    let mut rules = Option::<Vec<IngressRule>>::deserialize(deserializer)?.unwrap_or_default();
    let mut paths = rules.iter().filter_map(|rule| rule.http.as_ref()).flat_map(|http| &http.paths);
    if !paths.any(has_wrong_type) {
        rules = Vec::new();
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_with_operators_is_a_regular_expression() {
        for path in ["/", "/instance/0a1b-2c/app", "/instance/u1/_oauth2", "/a.b", "/<a uid>/app", "/a%20b"] {
            assert!(!is_regex_path(path), "{path}");
        }
        for path in ["/instance/u1/app(/|$)(.*)", "/instance/u1/vm/(.*)", "/a+", "/[a-z]", "/a\\d"] {
            assert!(is_regex_path(path), "{path}");
        }
    }

    #[test]
    fn only_rules_that_have_to_be_corrected_are_kept() {
        let kept = |path: &str, type_: &str| {
            let paths = json!([{"path": "/", "pathType": "Prefix", "backend": {}},
                {"path": path, "pathType": type_, "backend": {}}]);
            let spec = json!({"rules": [{"host": "a"}, {"host": "b", "http": {"paths": paths}}], "tls": []});
            let spec: IngressSpec = serde_json::from_value(spec).expect("a spec");
            spec.rules.len()
        };
        assert_eq!(kept("/a(/|$)(.*)", "Prefix"), 2);
        assert_eq!(kept("/a(/|$)(.*)", "Exact"), 2);
        assert_eq!(kept("/a(/|$)(.*)", "ImplementationSpecific"), 0);
        assert_eq!(kept("/a", "Prefix"), 0);
        let none: IngressSpec = serde_json::from_value(json!({"rules": null})).expect("a spec");
        assert_eq!(none, IngressSpec::default());
    }
}
