//! The permissions of a user in a namespace, as listed by the API server.

use serde::Deserialize;

/// The response to a `SelfSubjectRulesReview`.
#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) status: Rules,
}

/// The permissions of a user in a namespace. Pages use them to decide which actions to offer; the API server still
/// checks each request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Rules {
    #[serde(default, rename = "resourceRules")]
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    /// The names of the objects that it applies to; all objects if empty.
    resource_names: Vec<String>,
}

impl Rules {
    /// Whether the rules allow a verb. `resource` is the plural name, with a subresource after a slash
    /// (`instances/status`). `name` is the name of the object; empty if it does not exist yet (`create`), or for all
    /// objects (`list`).
    pub fn allow(&self, verb: &str, group: &str, resource: &str, name: &str) -> bool {
        self.rules.iter().any(|rule| {
            has(&rule.verbs, verb)
                && has(&rule.api_groups, group)
                && rule.is_of(resource)
                && (rule.resource_names.is_empty() || rule.resource_names.iter().any(|known| known == name))
        })
    }

    /// Whether any rule has a verb for a resource, for all objects or for some.
    pub(super) fn mention(&self, verb: &str, group: &str, resource: &str) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| has(&rule.verbs, verb) && has(&rule.api_groups, group) && rule.is_of(resource))
    }
}

impl Rule {
    /// Whether the rule covers a resource, with RBAC's semantics: `*` matches each resource and each subresource,
    /// `*/status` that subresource of each resource, and `instances` none of its subresources.
    fn is_of(&self, resource: &str) -> bool {
        let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
        has(&self.resources, resource)
            || subresource.is_some_and(|wanted| {
                self.resources.iter().any(|known| known.strip_prefix("*/") == Some(wanted))
            })
    }
}

/// Whether a value is listed, or all values are.
fn has(listed: &[String], value: &str) -> bool {
    listed.iter().any(|known| known == "*" || known == value)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const GROUP: &str = "crownlabs.polito.it";

    fn rules(rules: &Value) -> Rules {
        let answer = json!({"status": {"incomplete": false, "nonResourceRules": [], "resourceRules": rules}});
        serde_json::from_value::<Answer>(answer).expect("an answer").status
    }

    /// Whether a rule with these resources and names allows to `get` an object called `vm`.
    fn gets(resources: &Value, names: &Value, resource: &str) -> bool {
        let rule =
            json!([{"verbs": ["get"], "apiGroups": [GROUP], "resources": resources, "resourceNames": names}]);
        rules(&rule).allow("get", GROUP, resource, "vm")
    }

    #[test]
    fn a_rule_allows_its_verbs_groups_resources_and_names() {
        let rules = rules(&json!([
            {"verbs": ["get", "list"], "apiGroups": [GROUP], "resources": ["instances", "templates"]},
            {"verbs": ["update"], "apiGroups": [GROUP], "resources": ["instances"], "resourceNames": ["vm"]},
            {"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["watch"], "apiGroups": ["*"], "resources": ["*"]},
        ]));
        for (verb, group, resource, name, expected) in [
            ("get", GROUP, "instances", "vm", true),
            ("list", GROUP, "templates", "", true),
            // The verb of one rule with the group or resource of another.
            ("update", GROUP, "templates", "vm", false),
            ("get", "", "instances", "vm", false),
            ("get", GROUP, "pods", "vm", false),
            ("delete", GROUP, "instances", "vm", false),
            // Names: an empty name matches no listed name.
            ("update", GROUP, "instances", "vm", true),
            ("update", GROUP, "instances", "vm2", false),
            ("update", GROUP, "instances", "", false),
            // Wildcards for verb, group and resource.
            ("delete", "", "pods", "a", true),
            ("watch", "apps", "deployments/scale", "", true),
            ("", GROUP, "instances", "vm", false),
        ] {
            assert_eq!(
                rules.allow(verb, group, resource, name),
                expected,
                "{verb} {group}/{resource} {name}"
            );
        }
        assert!(!Rules::default().allow("get", GROUP, "instances", "vm"));
    }

    #[test]
    fn subresources_need_their_own_entry() {
        for (resources, resource, expected) in [
            (json!(["instances"]), "instances/status", false),
            (json!(["instances/status"]), "instances", false),
            (json!(["instances/status"]), "instances/status", true),
            (json!(["*/status"]), "instances/status", true),
            (json!(["*/status"]), "instances/terminal", false),
            (json!(["*/status"]), "instances", false),
            (json!(["*/"]), "instances", false),
            (json!(["*"]), "instances/status", true),
            (json!([]), "instances", false),
        ] {
            assert_eq!(gets(&resources, &json!([]), resource), expected, "{resources} {resource}");
        }
    }

    #[test]
    fn a_wildcard_is_not_a_resource_name() {
        for (names, expected) in
            [(json!([]), true), (json!(["vm"]), true), (json!(["*"]), false), (json!(["other"]), false)]
        {
            assert_eq!(gets(&json!(["instances"]), &names, "instances"), expected, "{names}");
        }
    }
}
