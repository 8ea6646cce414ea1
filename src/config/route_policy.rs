//! The template of the policy that guards each `HTTPRoute`.

use serde_json::{Map, Value};

use super::keys::keys;
use crate::api::names::{check_dns_label, check_object_name, is_label_key};

keys! {
    /// The policy of the Gateway's implementation that authenticates the users of each `HTTPRoute`, such as a
    /// `SecurityPolicy` of Envoy Gateway.
    pub struct RoutePolicy {
        /// The plural name of the kind in the API, such as `securitypolicies`; empty for no policy.
        pub resource: String,
        /// The policy, as an object with `apiVersion`, `kind` and `spec`, and `labels` and `annotations` in `metadata`.
        /// Each route gets one with its own name. `${route}`, `${namespace}`, `${uid}`, `${environment}`, `${host}` and
        /// `${path}` in a text of `spec` stand for the names of the route and its namespace, the uid of the Instance,
        /// the environment, and the host name and the path of the URL. `spec` must refer to `${route}`.
        pub template: Map<String, Value>,
    }
}

/// The values of the placeholders for one route.
#[derive(Debug, Clone, Copy)]
pub struct Placeholders<'a> {
    /// The name of the route.
    pub route: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The uid of its Instance.
    pub uid: &'a str,
    /// The name of its environment.
    pub environment: &'a str,
    /// The host name of the URL.
    pub host: &'a str,
    /// The path of the URL, without a slash at the end.
    pub path: &'a str,
}

/// The names of an API, as the template has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyNames<'a> {
    /// The API group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The plural name.
    pub plural: &'a str,
}

/// A description of a valid policy, to be read after "expected".
pub(super) const EXPECTED: &str =
    "the plural name of the kind, and a template with apiVersion, kind and a spec that refers to ${route}";

/// The groups and resources of a machine's other objects, which no policy can be.
const OWN: [(&str, &str); 4] = [
    ("apps", "deployments"),
    ("gateway.networking.k8s.io", "httproutes"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
];

/// The maximum size of the template, in bytes of JSON: each route gets a copy.
const LARGEST: usize = 16 << 10;

impl RoutePolicy {
    /// Whether routes have a policy.
    pub fn is_set(&self) -> bool {
        !self.resource.is_empty()
    }

    /// The names of the kind; `None` without a policy.
    pub fn names(&self) -> Option<PolicyNames<'_>> {
        let text = |key: &str| self.template.get(key).and_then(Value::as_str);
        let (group, version) = text("apiVersion")?.split_once('/')?;
        let names = PolicyNames { group, version, kind: text("kind")?, plural: &self.resource };
        self.is_set().then_some(names)
    }

    /// The labels (`labels`) or annotations (`annotations`) of the template.
    pub fn metadata(&self, member: &str) -> impl Iterator<Item = (&String, &str)> {
        let members = self.template.get("metadata").and_then(|metadata| metadata.get(member));
        let entries = members.and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key, value.as_str()?)))
    }

    /// The spec of the policy of one route.
    pub fn spec(&self, placeholders: &Placeholders<'_>) -> Value {
        let mut spec = self.template.get("spec").cloned().unwrap_or_default();
        each_text(&mut spec, &mut |text| *text = placeholders.filled(text));
        spec
    }

    /// The problem of the keys; `None` if they are valid.
    pub(super) fn problem(&self) -> Option<String> {
        if !self.is_set() {
            let is_given = !self.template.is_empty();
            return is_given.then(|| "policy.template is set and policy.resource is empty".to_owned());
        }
        if check_dns_label(&self.resource).is_err() {
            return Some(format!("policy.resource is {:?}", self.resource));
        }
        let Some(PolicyNames { group, version, kind, .. }) = self.names() else {
            return Some("policy.template has no apiVersion GROUP/VERSION, or no kind".to_owned());
        };
        if check_object_name(group).is_err() || check_dns_label(version).is_err() || !is_kind(kind) {
            return Some(format!("policy.template is a {group}/{version} {kind}"));
        }
        if OWN.contains(&(group, &*self.resource)) {
            return Some(format!("policy.template is a {kind}, which the daemon creates itself"));
        }
        let known = ["apiVersion", "kind", "metadata", "spec"];
        if let Some(other) = self.template.keys().find(|key| !known.contains(&key.as_str())) {
            return Some(format!("policy.template.{other} is not copied"));
        }
        self.wrong_metadata().or_else(|| self.wrong_spec())
    }

    /// The problem of the metadata. Names and owners come from the daemon.
    fn wrong_metadata(&self) -> Option<String> {
        let metadata = self.template.get("metadata")?;
        let Some(metadata) = metadata.as_object() else {
            return Some("policy.template.metadata is not a mapping".to_owned());
        };
        if let Some(other) = metadata.keys().find(|key| !["labels", "annotations"].contains(&key.as_str())) {
            return Some(format!("policy.template.metadata.{other} is not copied: the daemon sets it"));
        }
        metadata.iter().find_map(|(member, entries)| {
            let entries = entries.as_object();
            let is_ours = |key: &str| key.starts_with("crownlabs.polito.it/");
            let is_valid = |(key, value): (&String, &Value)| {
                is_label_key(key) && !is_ours(key) && value.is_string()
            };
            let is_sound = entries.is_some_and(|entries| entries.iter().all(is_valid));
            (!is_sound).then(|| {
                format!(
                    "policy.template.metadata.{member} has an invalid key, a key of CrownLabs, or a value that is \
                     not text"
                )
            })
        })
    }

    fn wrong_spec(&self) -> Option<String> {
        let spec = self.template.get("spec").filter(|spec| spec.is_object());
        let Some(mut spec) = spec.cloned() else {
            return Some("policy.template.spec is missing, or not a mapping".to_owned());
        };
        let (mut has_route, mut unknown) = (false, None);
        each_text(&mut spec, &mut |text| {
            for name in placeholders(text) {
                has_route |= name == "route";
                if unknown.is_none() && !Placeholders::NAMES.contains(&name) {
                    unknown = Some(name.to_owned());
                }
            }
        });
        if let Some(unknown) = unknown {
            let known = Placeholders::NAMES.map(|name| format!("${{{name}}}")).join(", ");
            return Some(format!("policy.template.spec has ${{{unknown}}}, which is none of {known}"));
        }
        if !has_route {
            return Some("policy.template.spec does not refer to ${route}, so it guards no route".to_owned());
        }
        let size = Value::Object(self.template.clone()).to_string().len();
        (size > LARGEST).then(|| format!("policy.template has {size} bytes of JSON, more than {LARGEST}"))
    }
}

impl Placeholders<'_> {
    const NAMES: [&'static str; 6] = ["route", "namespace", "uid", "environment", "host", "path"];

    /// A text with the values in place of the placeholders, which are not searched again.
    fn filled(&self, text: &str) -> String {
        let values = [self.route, self.namespace, self.uid, self.environment, self.host, self.path];
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, name, after)) = next(rest) {
            filled.push_str(before);
            match Self::NAMES.iter().position(|known| *known == name) {
                Some(index) => filled.push_str(values[index]),
                // The check of the configuration rejects it.
                None => filled.push_str(&rest[before.len()..rest.len() - after.len()]),
            }
            rest = after;
        }
        filled + rest
    }
}

/// The first placeholder of a text: the text before it, its name, and the text after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// The names of the placeholders in a text.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, name, after) = next(rest)?;
        rest = after;
        Some(name)
    })
}

/// Calls `change` for each text in a value, except keys.
fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| each_text(member, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a text is the name of a kind.
fn is_kind(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.len() <= 63
        && text.chars().all(|letter| letter.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A policy as in the documentation.
    fn policy() -> Value {
        json!({
            "resource": "securitypolicies",
            "template": {
                "apiVersion": "gateway.envoyproxy.io/v1alpha1",
                "kind": "SecurityPolicy",
                "metadata": {"labels": {"example.org/part": "login"}},
                "spec": {
                    "targetRefs": [
                        {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "${route}"},
                    ],
                    "oidc": {"redirectURL": "https://${host}${path}/oauth2/callback", "scopes": ["openid"]},
                },
            },
        })
    }

    fn read(policy: Value) -> RoutePolicy {
        serde_json::from_value(policy).expect("a policy")
    }

    #[test]
    fn placeholders_are_filled_in_once_in_every_text() {
        let values = Placeholders {
            route: "lab-main",
            namespace: "tenant-ada",
            uid: "u1",
            environment: "main",
            host: "x.labs.example.org",
            path: "/instance/u1/main",
        };
        assert_eq!(
            read(policy()).spec(&values),
            json!({
                "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "lab-main"}],
                "oidc": {
                    "redirectURL": "https://x.labs.example.org/instance/u1/main/oauth2/callback",
                    "scopes": ["openid"],
                },
            })
        );
        let odd = Placeholders { route: "${uid}", ..values };
        for (text, expected) in [
            ("${route}-${namespace}-${environment}", "${uid}-tenant-ada-main"),
            ("${", "${"),
            ("a$b{c}", "a$b{c}"),
            ("${other}${uid}", "${other}u1"),
            ("é${uid}é", "éu1é"),
        ] {
            assert_eq!(odd.filled(text), expected);
        }
    }

    #[test]
    fn the_names_of_the_kind_come_from_the_template() {
        let names = PolicyNames {
            group: "gateway.envoyproxy.io",
            version: "v1alpha1",
            kind: "SecurityPolicy",
            plural: "securitypolicies",
        };
        assert_eq!(read(policy()).names(), Some(names));
        assert_eq!(RoutePolicy::default().names(), None);
        let labels: Vec<_> =
            read(policy()).metadata("labels").map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(labels, ["example.org/part=login"]);
    }

    #[test]
    fn a_policy_that_could_not_guard_a_route_is_a_problem() {
        assert_eq!(read(policy()).problem(), None);
        assert_eq!(RoutePolicy::default().problem(), None);
        let without = |key: &str| {
            let mut policy = policy();
            policy["template"].as_object_mut().expect("members").remove(key);
            policy
        };
        let with = |pointer: &str, value: Value| {
            let mut policy = policy();
            *policy.pointer_mut(pointer).expect("a member") = value;
            policy
        };
        for (policy, expected) in [
            (with("/resource", json!("")), "policy.template is set and policy.resource is empty"),
            (with("/resource", json!("Security")), "policy.resource is \"Security\""),
            (without("kind"), "policy.template has no apiVersion GROUP/VERSION, or no kind"),
            (with("/template/apiVersion", json!("v1")), "policy.template has no apiVersion GROUP/VERSION"),
            (with("/template/apiVersion", json!("a b/v1")), "policy.template is a a b/v1 SecurityPolicy"),
            (
                with("/template/kind", json!("security")),
                "policy.template is a gateway.envoyproxy.io/v1alpha1 security",
            ),
            (with("/template/metadata", json!({"name": "x"})), "policy.template.metadata.name is not copied"),
            (with("/template/metadata", json!([])), "policy.template.metadata is not a mapping"),
            (
                with("/template/metadata/labels", json!({"crownlabs.polito.it/instance": "x"})),
                "policy.template.metadata.labels has an invalid key",
            ),
            (
                with("/template/metadata/labels", json!({"a": 1})),
                "policy.template.metadata.labels has an invalid key",
            ),
            (without("spec"), "policy.template.spec is missing"),
            (with("/template/spec", json!({"a": "b"})), "policy.template.spec does not refer to ${route}"),
            (
                with("/template/spec/oidc", json!({"clientID": "${user}"})),
                "policy.template.spec has ${user}, which is none of ${route}, ${namespace}",
            ),
            (with("/template/spec/oidc", json!({"clientID": "x".repeat(17_000)})), "policy.template has 17"),
        ] {
            let problem = read(policy).problem().unwrap_or_default();
            assert!(problem.starts_with(expected), "{problem} instead of {expected}");
        }
        let mut own = with("/resource", json!("networkpolicies"));
        own["template"]["apiVersion"] = json!("networking.k8s.io/v1");
        own["template"]["kind"] = json!("NetworkPolicy");
        let expected = "policy.template is a NetworkPolicy, which the daemon creates itself";
        assert_eq!(read(own).problem().as_deref(), Some(expected));
        let mut extra = policy();
        extra["template"]["status"] = json!({});
        assert_eq!(read(extra).problem().as_deref(), Some("policy.template.status is not copied"));
    }
}
