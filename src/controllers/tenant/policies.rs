//! The network policies of a Tenant's namespaces: the personal namespace and the sandbox.

use serde_json::{Value, json};

use super::children::{Children, PERSONAL, SANDBOX};
use crate::api::labels;
use crate::controllers::shared::children::{Child, Parent};
use crate::controllers::shared::egress;
use crate::kinds::NetworkPolicyKind;
use crate::runtime::component::Component;

const DENY_INGRESS: &str = "crownlabs-deny-ingress-traffic";
const ALLOW_TRUSTED_INGRESS: &str = "crownlabs-allow-trusted-ingress-traffic";

/// The network policies of a namespace, each with whether it is wanted.
pub type Policies<'a> = [(Child<'a>, bool); 3];

impl<'a> Children<'a> {
    /// The network policies of the personal namespace.
    pub fn policies(self) -> Policies<'a> {
        self.policies_within(&self.parent(), &PERSONAL, true, self.unrestricted())
    }

    /// The network policies of the sandbox. They select all pods, because a Tenant could give the label of an exam to its
    /// own pods there.
    pub fn sandbox_policies(self) -> Policies<'a> {
        let is_wanted = self.settings.config.sandbox_network_policies;
        self.policies_within(&self.in_sandbox([].into()), &SANDBOX, is_wanted, json!({}))
    }

    /// The network policies of a namespace. Its pods accept traffic from namespaces with a label that administrators set.
    /// The pods that `selector` selects also accept traffic from the namespace itself, and a third policy restricts their own
    /// traffic, if that is configured.
    fn policies_within(
        self,
        parent: &Parent<'a>,
        component: &Component,
        is_wanted: bool,
        selector: Value,
    ) -> Policies<'a> {
        let policy = |name: &str, spec: Box<dyn FnOnce() -> Value + 'a>| {
            let body = move || json!({"spec": spec()});
            parent.child::<NetworkPolicyKind>(name, component, 1, body).enforced()
        };
        let pods = selector.clone();
        let own = move || ingress(&pods, &json!({"podSelector": {}}));
        let trusted = || {
            let labels = json!({labels::ALLOW_INSTANCE_ACCESS: "true"});
            ingress(&json!({}), &json!({"namespaceSelector": {"matchLabels": labels}}))
        };
        let outgoing =
            move || json!({"podSelector": selector, "egress": self.egress(), "policyTypes": ["Egress"]});
        let has_egress = is_wanted && self.settings.config.egress.enabled;
        [
            (policy(DENY_INGRESS, Box::new(own)), is_wanted),
            (policy(ALLOW_TRUSTED_INGRESS, Box::new(trusted)), is_wanted),
            (policy(egress::POLICY, Box::new(outgoing)), has_egress),
        ]
    }

    /// The selector of the pods of a personal namespace that are not in an exam. Policies add up, so a policy that allows
    /// more than that of the exam must not select the pods of the exam.
    fn unrestricted(self) -> Value {
        if self.settings.restricts_exams {
            json!({"matchExpressions": [{"key": labels::EXAM, "operator": "DoesNotExist"}]})
        } else {
            json!({})
        }
    }

    /// The rules of the outgoing traffic.
    fn egress(self) -> Vec<Value> {
        let config = &self.settings.config.egress;
        let configured = [
            egress::nfs(&self.observed.nfs_servers),
            egress::networks(&config.allow),
            egress::world(&config.deny),
        ];
        [egress::dns(), egress::same_namespace()]
            .into_iter()
            .chain(configured.into_iter().flatten())
            .collect()
    }
}

/// The spec of a policy that lets these pods accept traffic from a peer.
fn ingress(pods: &Value, from: &Value) -> Value {
    json!({"podSelector": pods, "ingress": [{"from": [from]}], "policyTypes": ["Ingress"]})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::controllers::tenant::Settings;
    use crate::controllers::tenant::fixtures::{observed, owners, settings};
    use crate::controllers::tenant::observe::Observed;
    use crate::controllers::tenant::plan::plan;
    use crate::fixtures::{at, object};

    fn with_sandbox() -> Observed {
        observed(&json!({"createSandbox": true}), &[])
    }

    /// The specs of the planned new policies, by `namespace/name`.
    fn policies(observed: &Observed, settings: &Settings) -> BTreeMap<String, Value> {
        let plan = plan(observed, settings, at(0));
        let made = plan.ensure.iter().filter(|desired| desired.kind.kind == "NetworkPolicy");
        let specs = made.filter_map(|desired| {
            let spec = desired.manifest.as_ref()?.json()["spec"].clone();
            Some((format!("{}/{}", desired.key.namespace, desired.key.name), spec))
        });
        specs.collect()
    }

    /// The settings with the egress policy and these denied networks.
    fn restricted(denied: &[&str]) -> Settings {
        let mut settings = settings();
        settings.config.egress.enabled = true;
        settings.config.egress.deny = denied.iter().map(|text| text.parse().expect("a network")).collect();
        settings
    }

    #[test]
    fn a_sandbox_gets_the_policies_of_the_personal_namespace_if_they_are_on() {
        let names = |settings: &Settings| policies(&with_sandbox(), settings).into_keys().collect::<Vec<_>>();
        let (trusted, deny) = ("crownlabs-allow-trusted-ingress-traffic", "crownlabs-deny-ingress-traffic");
        let of = |place: &str, name: &str| format!("{place}-ada-rossi/{name}");
        let personal = [of("tenant", trusted), of("tenant", deny)];
        assert_eq!(names(&settings()), personal);
        let mut settings = restricted(&[]);
        assert_eq!(
            names(&settings),
            [of("tenant", trusted), of("tenant", deny), of("tenant", "crownlabs-egress")]
        );
        settings.config.sandbox_network_policies = true;
        let found = policies(&with_sandbox(), &settings);
        assert_eq!(found.len(), 6);
        for name in [trusted, deny, "crownlabs-egress"] {
            assert_eq!(found[&of("sandbox", name)], found[&of("tenant", name)], "{name}");
        }
        assert_eq!(policies(&observed(&json!({}), &[]), &settings).len(), 3, "there is no sandbox");
    }

    #[test]
    fn outgoing_traffic_is_restricted_to_the_configured_networks() {
        let mut settings = restricted(&["10.0.0.0/8"]);
        settings.config.egress.allow = vec!["10.1.0.5/32".parse().expect("a network")];
        let mut observed = observed(&json!({}), &[]);
        observed.nfs_servers = ["10.0.0.9".to_owned()].into();
        let found = policies(&observed, &settings);
        let spec = &found["tenant-ada-rossi/crownlabs-egress"];
        assert_eq!((&spec["podSelector"], &spec["policyTypes"]), (&json!({}), &json!(["Egress"])));
        let rules = spec["egress"].as_array().expect("rules");
        let expected = [
            egress::dns(),
            json!({"to": [{"podSelector": {}}]}),
            json!({"to": [{"ipBlock": {"cidr": "10.0.0.9/32"}}], "ports": [{"port": 2049, "protocol": "TCP"}]}),
            json!({"to": [{"ipBlock": {"cidr": "10.1.0.5/32"}}]}),
            json!({"to": [
                {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "169.254.0.0/16"]}},
                {"ipBlock": {"cidr": "::/0", "except": ["fd00:ec2::254/128", "fd20:ce::254/128"]}},
            ]}),
        ];
        assert_eq!(*rules, expected);
    }

    #[test]
    fn policies_that_allow_more_than_an_exam_do_not_select_its_pods() {
        let mut settings = Settings { restricts_exams: true, ..restricted(&[]) };
        settings.config.sandbox_network_policies = true;
        let found = policies(&with_sandbox(), &settings);
        let others =
            json!({"matchExpressions": [{"key": "crownlabs.polito.it/exam", "operator": "DoesNotExist"}]});
        let selector = |name: &str| &found[&format!("tenant-ada-rossi/{name}")]["podSelector"];
        assert_eq!(selector("crownlabs-deny-ingress-traffic"), &others);
        assert_eq!(selector("crownlabs-egress"), &others);
        assert_eq!(selector("crownlabs-allow-trusted-ingress-traffic"), &json!({}), "the Ingress controller");
        // A Tenant could give this label to its own pods in the sandbox.
        for name in ["crownlabs-deny-ingress-traffic", "crownlabs-egress"] {
            assert_eq!(found[&format!("sandbox-ada-rossi/{name}")]["podSelector"], json!({}), "{name}");
        }
    }

    #[test]
    fn a_setting_that_is_switched_off_removes_its_policies_and_repairs_the_others() {
        let mut observed = with_sandbox();
        let existing = |namespace: &str, name: &str, spec: &Value| {
            object::<NetworkPolicyKind>(json!({
                "metadata": {
                    "name": name, "namespace": namespace, "uid": format!("{namespace}-{name}"), "resourceVersion": "1",
                    "ownerReferences": owners("u1"),
                },
                "spec": spec,
            }))
        };
        let mut on = Settings { restricts_exams: true, ..restricted(&[]) };
        on.config.sandbox_network_policies = true;
        let former = policies(&observed, &on);
        let objects = former.iter().filter_map(|(key, spec)| {
            let (namespace, name) = key.split_once('/')?;
            Some(existing(namespace, name, spec))
        });
        observed.children.set::<NetworkPolicyKind>(objects.collect::<Vec<_>>());
        let written = |settings: &Settings| {
            let plan = plan(&observed, settings, at(0));
            let is_policy = |kind: &str| kind == "NetworkPolicy";
            let repaired = plan
                .ensure
                .iter()
                .filter(|desired| is_policy(desired.kind.kind) && !desired.fields.is_null());
            let repaired: Vec<String> = repaired.map(|desired| desired.key.to_string()).collect();
            let removed = plan.remove.iter().filter(|removal| is_policy(removal.kind.kind));
            (repaired, removed.map(|removal| removal.key.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(written(&on), (Vec::new(), Vec::new()), "nothing differs");
        let (repaired, removed) = written(&settings());
        assert_eq!(repaired, ["tenant-ada-rossi/crownlabs-deny-ingress-traffic"]);
        let expected = [
            "tenant-ada-rossi/crownlabs-egress",
            "sandbox-ada-rossi/crownlabs-deny-ingress-traffic",
            "sandbox-ada-rossi/crownlabs-allow-trusted-ingress-traffic",
            "sandbox-ada-rossi/crownlabs-egress",
        ];
        assert_eq!(removed, expected);
    }
}
