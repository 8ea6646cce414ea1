//! Ingresses, their path types, and whether they have an address.

use k8s_openapi::api::networking::v1::{HTTPIngressPath, IngressRule};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Unread, kind};
use crate::api::text::Text;

/// The type of a path that the Ingress controller interprets, for example as a regular expression.
pub const IMPLEMENTATION_SPECIFIC: &str = "ImplementationSpecific";

/// The fields of an Ingress's spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressSpec {
    /// Its class; the API server sets the default class if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_class_name: Option<Text>,
    /// All rules if any of their paths has a type to correct ([`has_wrong_type`]); otherwise empty, to save memory.
    #[serde(deserialize_with = "faulty_rules")]
    pub rules: Vec<IngressRule>,
}
/// The fields of an Ingress's status that we read: whether its controller has published an address. Controllers that do
/// not publish addresses never write it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressStatus {
    /// Whether an address is published.
    #[serde(rename = "loadBalancer", with = "published")]
    pub is_published: bool,
}

/// Reduces the addresses of an Ingress to whether there are any.
mod published {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Value, json};

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct LoadBalancer {
        ingress: Option<Vec<Value>>,
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        let balancer = Option::<LoadBalancer>::deserialize(deserializer)?.unwrap_or_default();
        Ok(balancer.ingress.is_some_and(|addresses| !addresses.is_empty()))
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub fn serialize<S: Serializer>(is_published: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        let balancer = if *is_published { json!({"ingress": [{}]}) } else { json!({}) };
        balancer.serialize(serializer)
    }
}

kind!(/// An Ingress.
    IngressKind, Ingress, "networking.k8s.io", "v1", "Ingress", "ingresses", namespaced: true, IngressSpec, IngressStatus);
kind!(/// An Ingress class. Only the metadata is read: an annotation marks the default class.
    IngressClassKind, IngressClass, "networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced: false,
    Unread, Unread);

/// Whether a path is a regular expression: it contains a special character other than a dot. The NGINX Ingress
/// controller rejects such a path if its type is `Exact` or `Prefix` (`strict-validate-path-type`, on by default since
/// version 1.12).
pub fn is_regex_path(path: &str) -> bool {
    path.contains(['(', ')', '[', ']', '{', '}', '*', '+', '?', '^', '$', '|', '\\'])
}

/// Whether a path is a regular expression but its type does not allow one.
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
    fn an_ingress_with_an_address_is_published() {
        for (status, expected) in [
            (json!({}), false),
            (json!({"loadBalancer": null}), false),
            (json!({"loadBalancer": {}}), false),
            (json!({"loadBalancer": {"ingress": []}}), false),
            (json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}), true),
            (json!({"loadBalancer": {"ingress": [{"hostname": "lb.example.org"}]}}), true),
        ] {
            let read: IngressStatus = serde_json::from_value(status.clone()).expect("a status");
            assert_eq!(read.is_published, expected, "{status}");
            let again = serde_json::to_value(read).expect("JSON");
            assert_eq!(serde_json::from_value::<IngressStatus>(again).expect("a status"), read);
        }
    }

    #[test]
    fn rules_are_kept_only_if_one_needs_correction() {
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
