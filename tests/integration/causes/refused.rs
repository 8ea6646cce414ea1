//! Pods that the API server rejects because of real rules in their namespace.

use super::condition;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// Rules of a namespace that make the API server reject pods, and its messages.
const RULES: [(&str, &str, &str, &str); 5] = [
    (
        "apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: NAMESPACE}
spec: {hard: {pods: 0}}
",
        "ResourceQuotaExceeded",
        "ResourceQuotaExceeded",
        "exceeded quota: none",
    ),
    (
        "apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: NAMESPACE}
spec: {limits: [{type: Container, max: {memory: 1Mi}}]}
",
        "CreationLoopBackoff",
        "PodRefused",
        "maximum memory usage per Container is 1Mi",
    ),
    (
        // It mounts the volume of its user by NFS, which this rule does not allow.
        "apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE, labels: {pod-security.kubernetes.io/enforce: restricted}}
",
        "CreationLoopBackoff",
        "PodRefused",
        "violates PodSecurity \"restricted:latest\"",
    ),
    (
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-pods-in-NAMESPACE}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: \"false\", message: no pods on Thursdays}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-pods-in-NAMESPACE}
spec:
  policyName: no-pods-in-NAMESPACE
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}}
",
        "CreationLoopBackoff",
        "PodRefused",
        "no pods on Thursdays",
    ),
    (
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: absent-for-NAMESPACE}
webhooks:
- name: absent.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {url: \"https://127.0.0.1:1/\"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
  rules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
",
        "CreationLoopBackoff",
        "PodRefused",
        "failed calling webhook \"absent.example.org\"",
    ),
];

#[test]
fn a_rejected_pod_is_reported_with_the_message_of_the_api_server() {
    let lab = Lab::shared_unsimulated();
    let admin = lab.admin();
    let name = |number: usize| format!("refused{number}");
    let _courses: Vec<_> = (0..RULES.len()).map(|number| lab.course(&name(number))).collect();
    for (number, (rule, ..)) in RULES.iter().enumerate() {
        let name = name(number);
        let label = "crownlabs.polito.it/operator-selector=refused";
        for namespace in [format!("tenant-{name}"), format!("workspace-{name}")] {
            lab.kubectl(&["label", "--overwrite", "namespace", &namespace, label]);
        }
        let namespace = format!("tenant-{name}");
        lab.apply(&rule.replace("NAMESPACE", &namespace));
        // Some rules take effect with a short delay.
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: probe}\nspec:\n  volumes: [{name: n, nfs: {server: s, path: /}}]\n  containers: [{name: a, image: i, resources: {limits: {memory: 2Mi, cpu: 1}}}]\n";
        let create = ["create", "--dry-run=server", "-n", &namespace, "-f", "-"];
        wait_until(PATIENCE, || match lab.try_kubectl(&create, pod) {
            Err(_) => Ok(()),
            Ok(made) => Err(format!("a refusal of {namespace}, is {made}")),
        });
    }
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "refused", config: "" });
    for number in 0..RULES.len() {
        lab.apply(&instance(&name(number), "web", "standalone"));
    }
    for (number, (_, phase, reason, words)) in RULES.iter().enumerate() {
        let namespace = format!("tenant-{}", name(number));
        wait_until(PATIENCE, || {
            let instance = lab.get("instances", &namespace, "web").ok_or("it")?;
            let ready = condition(&instance, "Ready").unwrap_or_default();
            let message = ready["message"].as_str().unwrap_or_default();
            let says = message.starts_with("Deployment web: ") && message.contains(words);
            let is_it = instance["status"]["phase"] == *phase && ready["reason"] == *reason;
            if is_it && says { Ok(()) } else { Err(format!("{phase}, {reason}, {words}: {ready}")) }
        });
    }
    for (number, (rule, ..)) in RULES.iter().enumerate() {
        let rule = rule.replace("NAMESPACE", &format!("tenant-{}", name(number)));
        lab.try_kubectl(&["delete", "--wait=false", "-f", "-"], &rule).expect("it is there");
    }
}
