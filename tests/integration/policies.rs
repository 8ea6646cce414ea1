//! The admission policies that the security model recommends, as printed there.

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;
use cluster::assets::is_oldest;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/samples");
const DAEMON: &str = "system:serviceaccount:crownlabs-system:crownlabs";
/// The account of the nodes.
const NODES: &str = "system:serviceaccount:crownlabs-pod-networks:crownlabs-pod-networks";
/// A manager of the course of the samples, and a manager of another course.
const MANAGER: [&str; 2] = ["carlo.verdi", "kubernetes:workspace-netlab:manager"];
const OTHER: [&str; 2] = ["eve", "kubernetes:workspace-other:manager"];

/// The policies of the page.
fn policies() -> String {
    let page = include_str!("../../docs/security-model.md");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| {
        let block = rest.split("```").next()?;
        let indentation = block.len() - block.trim_start().len();
        let lines = block.lines().map(|line| line.get(indentation..).unwrap_or_default());
        Some(lines.collect::<Vec<_>>().join("\n"))
    });
    let found: Vec<String> = blocks.filter(|block| block.contains("ValidatingAdmissionPolicy\n")).collect();
    assert_eq!(found.len(), 3, "one for managers, one for nodes and one for the daemon");
    found.join("\n---\n")
}

/// Tries a request as a user, alone or in a group, as a dry run. Returns the rejection.
fn attempt(lab: &Lab, who: &[&str], arguments: &[&str], input: &str) -> Result<(), String> {
    let mut all = [arguments, &["--dry-run=server"]].concat();
    for (option, value) in ["--as", "--as-group"].iter().zip(who) {
        all.extend([*option, *value]);
    }
    lab.try_kubectl(&all, input).map(|_| ())
}

/// Stops and deletes a machine.
fn end(lab: &Lab, who: &[&str]) -> Result<(), String> {
    let patch = r#"{"spec": {"running": false}}"#;
    let change = ["patch", "instance", "desktop-1", "-n", "tenant-ada-rossi", "--type=merge", "-p", patch];
    attempt(lab, who, &change, "")?;
    attempt(lab, who, &["delete", "instance", "desktop-1", "-n", "tenant-ada-rossi"], "")
}

/// Creates a Secret as the daemon.
fn secret(lab: &Lab, namespace: &str, name: &str) -> Result<(), String> {
    let metadata = format!("{{name: {name}, namespace: {namespace}}}");
    let object = format!("apiVersion: v1\nkind: Secret\nmetadata: {metadata}\n");
    attempt(lab, &[DAEMON], &["create", "-f", "-"], &object)
}

/// Lets the account of the nodes write the objects that the chart lets it write, and read them, as kubectl does first.
fn grant_nodes(lab: &Lab) {
    lab.apply(&format!(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: nodes, namespace: crownlabs-system}}
rules: [{{apiGroups: [\"\"], resources: [configmaps], verbs: [get, create, patch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: nodes, namespace: crownlabs-system}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: nodes}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: \"{NODES}\"}}]
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: configuration, namespace: crownlabs-system}}}}
"
    ));
}

/// Creates a ConfigMap from the pod of a node; if `node` is empty, from no pod.
fn from_node(lab: &Lab, node: &str, name: &str) -> Result<(), String> {
    let extra = format!("--as-user-extra=authentication.kubernetes.io/node-name={node}");
    let arguments = ["create", "configmap", name, "-n", "crownlabs-system", &extra];
    attempt(lab, &[NODES], if node.is_empty() { &arguments[..5] } else { &arguments }, "")
}

/// Changes the configuration of the daemon from the pod of a node.
fn reconfigure(lab: &Lab) -> Result<(), String> {
    let patch = r#"{"data": {"crownlabs.yaml": "x"}}"#;
    let extra = "--as-user-extra=authentication.kubernetes.io/node-name=n1";
    let arguments =
        ["patch", "configmap", "configuration", "-n", "crownlabs-system", "--type=merge", "-p", patch, extra];
    attempt(lab, &[NODES], &arguments, "")
}

/// A node writes its own report, and nothing else.
fn assert_nodes_are_kept_apart(lab: &Lab) {
    let tag = "0123456789abcdef";
    let own = |node: &str| format!("podnet-node-{node}-{tag}");
    from_node(lab, "n1", &own("n1")).expect("its own report");
    let others = [own("n2"), own("n1-2"), format!("podnet-lab-10-1-0-0-24-{tag}"), "crownlabs".to_owned()];
    for name in others {
        let refusal = from_node(lab, "n1", &name).expect_err(&name);
        assert!(refusal.contains("its own report"), "{name}: {refusal}");
    }
    from_node(lab, "", &own("n1")).expect_err("a token that is of no pod");
    let refusal = reconfigure(lab).expect_err("the configuration");
    assert!(refusal.contains("its own report"), "{refusal}");
}

#[test]
fn policies_reject_the_documented_requests_and_none_of_the_daemon() {
    let lab = Lab::start(ClusterOptions::default());
    let policies = policies();
    lab.apply(&policies);
    grant_nodes(&lab);
    // The policies take effect with a short delay.
    wait_until(PATIENCE, || match secret(&lab, "kube-system", "anything") {
        Err(refusal) if refusal.contains("has nothing to do in this namespace") => Ok(()),
        other => Err(format!("a refusal of the policy, is {other:?}")),
    });
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "production", config: "" });
    lab.kubectl(&["apply", "-f", SAMPLES]);
    lab.apply(
        "apiVersion: crownlabs.polito.it/v1alpha1
kind: Workspace
metadata: {name: other, labels: {crownlabs.polito.it/operator-selector: production}}
spec: {prettyName: Another course, quota: {cpu: 1, memory: 1Gi, instances: 1}}
",
    );
    // The daemon creates all objects that the samples need.
    for name in ["desktop-1", "server-1", "wireshark-1", "notebook-1", "pair-1"] {
        lab.await_phase("tenant-ada-rossi", name, "Ready");
    }
    lab.await_value("sharedvolumes", "workspace-netlab", "materials", "/status/phase", "Ready");
    for (kind, name) in [("tenants", "carlo.verdi"), ("workspaces", "other")] {
        lab.await_ready(kind, name);
    }

    for who in [&MANAGER[..], &["ada.rossi"], &["ada.rossi", OTHER[1]]] {
        end(&lab, who).unwrap_or_else(|refusal| panic!("{who:?}: {refusal}"));
    }
    let refusal = end(&lab, &OTHER).expect_err("the manager of another course");
    assert!(refusal.contains("of a course that you do not manage"), "{refusal}");
    secret(&lab, "crownlabs-system", "anything").expect_err("a Secret other than the one of the webhooks");
    for (namespace, name) in [("crownlabs-system", "crownlabs-webhook"), ("tenant-ada-rossi", "anything")] {
        secret(&lab, namespace, name).expect(namespace);
    }

    // Tokens name the node of their pod since Kubernetes 1.32.
    if !is_oldest() {
        assert_nodes_are_kept_apart(&lab);
    }

    // Without the policies, RBAC allows all of it.
    lab.try_kubectl(&["delete", "-f", "-"], &policies).expect("they are there");
    wait_until(PATIENCE, || end(&lab, &OTHER));
    wait_until(PATIENCE, || secret(&lab, "kube-system", "anything"));
    if !is_oldest() {
        wait_until(PATIENCE, || reconfigure(&lab));
    }
}
