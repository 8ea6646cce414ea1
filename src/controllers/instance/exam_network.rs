//! The network of a machine in an exam, if it is restricted: a `NetworkPolicy` for its pods, and the label by which the
//! policies of the personal namespace exclude them.
//!
//! The policy selects the pods by the labels of the environment, so it also applies to machines that were created before
//! the restriction was configured. They do not have the label of an exam, because a new label would recreate them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::environment::EnvironmentContext;
use super::plan::Plan;
use crate::api::environment::EnvironmentMode;
use crate::api::labels;
use crate::controllers::shared::egress;

/// Whether the network of an environment is restricted.
fn is_restricted(context: &EnvironmentContext<'_>) -> bool {
    context.config.exam_egress.enabled && context.environment.mode == EnvironmentMode::Exam
}

/// Plans the policy, or its removal. A new machine is not created if its policy cannot be written.
pub fn plan(context: &EnvironmentContext<'_>, plan: &mut Plan) {
    let policy = context.policy();
    if is_restricted(context) {
        plan.stop_at_failure |= !policy.is_own();
        policy.ensure(plan);
    } else {
        policy.remove(plan);
    }
}

/// The conflict of the policy with the one of the Tenant that restricts outgoing traffic, even if that does not exist yet: an
/// Instance must not take its name.
pub fn conflict(context: &EnvironmentContext<'_>) -> Option<String> {
    let has_its_name = is_restricted(context) && *context.name == *egress::POLICY;
    has_its_name.then(|| format!("NetworkPolicy {} belongs to the Tenant of the namespace", egress::POLICY))
}

/// The labels of the pods of an environment.
pub fn pod_labels(context: &EnvironmentContext<'_>) -> BTreeMap<String, String> {
    let exam = is_restricted(context).then(|| (labels::EXAM.to_owned(), "true".to_owned()));
    context.selector().into_iter().chain(exam).collect()
}

/// The spec of the policy. The pods send traffic only to DNS and the configured networks, and accept it only from
/// namespaces with the label that administrators set. Volumes of containers are mounted by the node, and the machines of
/// exams have no other ones.
pub fn policy(context: &EnvironmentContext<'_>) -> Value {
    let trusted = json!({"matchLabels": {labels::ALLOW_INSTANCE_ACCESS: "true"}});
    let allowed = egress::networks(&context.config.exam_egress.allow);
    let egress: Vec<Value> = std::iter::once(egress::dns()).chain(allowed).collect();
    json!({"spec": {
        "podSelector": {"matchLabels": context.selector()},
        "ingress": [{"from": [{"namespaceSelector": trusted}]}],
        "egress": egress,
        "policyTypes": ["Ingress", "Egress"],
    }})
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::api::reason;
    use crate::config::{ExamEgress, InstanceConfig};
    use crate::controllers::instance::observe::Observed;
    use crate::controllers::instance::plan::tests::{environment, observed, owned, plan};
    use crate::fixtures::object;
    use crate::kinds::{NetworkPolicyKind, VirtualMachineKind};

    /// A configuration that restricts exams to these networks.
    fn restricted(allowed: &[&str]) -> InstanceConfig {
        let allow = allowed.iter().map(|text| text.parse().expect("a network")).collect();
        InstanceConfig { exam_egress: ExamEgress { enabled: true, allow }, ..InstanceConfig::classic() }
    }

    fn machine(kind: &str, mode: &str, is_persistent: bool) -> Observed {
        let fields = json!({"mode": mode, "persistent": is_persistent});
        observed(json!([environment("main", kind, fields)]))
    }

    fn planned(observed: &Observed, config: &InstanceConfig) -> Plan {
        plan(observed, config, Timestamp::UNIX_EPOCH)
    }

    fn has_policy(plan: &Plan) -> bool {
        plan.ensure.iter().any(|desired| desired.kind.kind == "NetworkPolicy")
    }

    #[test]
    fn only_an_exam_gets_a_policy_and_only_if_exams_are_restricted() {
        for (mode, config, expected) in [
            ("Exam", restricted(&[]), true),
            ("Exercise", restricted(&[]), false),
            ("Standard", restricted(&[]), false),
            ("Exam", InstanceConfig::classic(), false),
        ] {
            let plan = planned(&machine("CloudVM", mode, true), &config);
            assert_eq!((has_policy(&plan), plan.stop_at_failure), (expected, expected), "{mode}");
        }
    }

    #[test]
    fn an_exam_cannot_have_the_name_of_the_policy_of_its_tenant() {
        let named = |name: &str, config: &InstanceConfig| {
            let mut observed = machine("CloudVM", "Exam", true);
            Arc::make_mut(&mut observed.instance).metadata.name = name.into();
            let plan = planned(&observed, config);
            plan.problems.iter().any(|problem| problem.reason == reason::NAME_CONFLICT)
        };
        assert!(named("crownlabs-egress", &restricted(&[])) && named("crownlabs.egress", &restricted(&[])));
        assert!(!named("crownlabs-egress-1", &restricted(&[])));
        assert!(!named("crownlabs-egress", &InstanceConfig::classic()), "it has no policy");
    }

    #[test]
    fn the_policy_is_written_before_the_machine_and_allows_only_the_list() {
        let plan = planned(&machine("CloudVM", "Exam", true), &restricted(&["192.0.2.10/32"]));
        let find =
            |kind: &str| plan.ensure.iter().find(|desired| desired.kind.kind == kind).expect("planned");
        let policy = find("NetworkPolicy");
        assert_eq!(policy.key.to_string(), "tenant-ada/my-lab");
        assert!(policy.wave < find("VirtualMachine").wave);
        let expected = json!({
            "podSelector": {"matchLabels": {
                "crownlabs.polito.it/instance": "my.lab",
                "crownlabs.polito.it/template": "t",
                "crownlabs.polito.it/tenant": "ada",
            }},
            "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {
                "crownlabs.polito.it/allow-instance-access": "true",
            }}}]}],
            "egress": [egress::dns(), {"to": [{"ipBlock": {"cidr": "192.0.2.10/32"}}]}],
            "policyTypes": ["Ingress", "Egress"],
        });
        assert_eq!(policy.manifest.as_ref().expect("new").json()["spec"], expected);
    }

    #[test]
    fn the_pods_of_a_new_exam_have_the_label() {
        let label = |kind: &str, is_persistent: bool, mode: &str| {
            let plan = planned(&machine(kind, mode, is_persistent), &restricted(&[]));
            let workload = plan.ensure.last().expect("a workload").manifest.clone().expect("new");
            let labels = match workload.json()["kind"].as_str() {
                Some("VirtualMachineInstance") => "/metadata/labels",
                _ => "/spec/template/metadata/labels",
            };
            let labels = workload.json().pointer(labels).expect("labels").clone();
            assert_eq!(labels["crownlabs.polito.it/instance"], "my.lab", "{kind}");
            labels["crownlabs.polito.it/exam"].clone()
        };
        for (kind, is_persistent) in
            [("Container", false), ("Standalone", true), ("CloudVM", true), ("VirtualMachine", false)]
        {
            assert_eq!(label(kind, is_persistent, "Exam"), "true", "{kind}");
            assert_eq!(label(kind, is_persistent, "Standard"), Value::Null, "{kind}");
        }
    }

    #[test]
    fn a_change_of_the_setting_does_not_change_an_existing_machine() {
        let mut observed = machine("CloudVM", "Exam", true);
        observed.children.set::<VirtualMachineKind>([owned::<VirtualMachineKind>("my-lab", json!({}))]);
        let machine_of = |plan: &Plan| {
            plan.ensure.iter().find(|desired| desired.kind.kind == "VirtualMachine").expect("planned").clone()
        };
        let before = planned(&observed, &InstanceConfig::classic());
        let after = planned(&observed, &restricted(&[]));
        assert_eq!(machine_of(&before), machine_of(&after));
        assert!(has_policy(&after) && !has_policy(&before));

        let policy = owned::<NetworkPolicyKind>("my-lab", json!({"podSelector": {}}));
        observed.children.set::<NetworkPolicyKind>([policy]);
        let plan = planned(&observed, &restricted(&[]));
        assert!(!plan.stop_at_failure, "the machine has a policy, which is repaired");
        let mut taken = machine("CloudVM", "Exam", true);
        let metadata = json!({"name": "my-lab", "namespace": "tenant-ada"});
        taken.children.set::<NetworkPolicyKind>([object(json!({"metadata": metadata}))]);
        assert!(
            planned(&taken, &restricted(&[])).stop_at_failure,
            "a policy without the owner does not count"
        );
        let removed = planned(&observed, &InstanceConfig::classic()).remove;
        let removed: Vec<&str> = removed.iter().map(|removal| removal.kind.kind).collect();
        assert_eq!(removed, ["NetworkPolicy"]);
    }
}
