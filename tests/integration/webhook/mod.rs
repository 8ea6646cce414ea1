//! The admission webhooks behind a real API server, with its own verification of certificates.

mod certificate;
mod rules;

use std::time::Duration;

use serde_json::Value;

use crate::cluster::Options as ClusterOptions;
use crate::daemon::{Daemon, Options, free_port};
use crate::lab::{Lab, PATIENCE, wait_until};

/// The selector of the daemons here; each test has a control plane of its own.
const SELECTOR: &str = "guarded";

/// A control plane without anybody who plays.
fn lab() -> Lab {
    let lab = Lab::start(ClusterOptions { play: false, kubevirt: false, ..ClusterOptions::default() });
    grant_everybody(&lab);
    lab
}

/// Everybody may try everything with custom resources: what is refused is refused by the webhooks.
pub fn grant_everybody(lab: &Lab) {
    lab.apply(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: testers},
rules: [{apiGroups: [crownlabs.polito.it], resources: ['*'], verbs: ['*']}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: testers},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: testers},
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}]}",
    );
}

/// The configurations that the project ships, for a server at that port of this machine instead of
/// a Service; with `trusted`, for a server whose authorities the daemon does not take care of.
pub fn configurations(selector: &str, port: u16, trusted: Option<&str>) -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/40-webhooks.yaml");
    let text = std::fs::read_to_string(file).expect("the manifest");
    let ca = trusted.map(|ca| format!("\n    caBundle: {ca}")).unwrap_or_default();
    let service = "service: {name: crownlabs-webhook, namespace: crownlabs-system, path: ";
    let lines = text.lines().map(|line| match line.trim_start().strip_prefix(service) {
        Some(path) => format!("    url: \"https://127.0.0.1:{port}{}\"{ca}", path.trim_end_matches('}')),
        None => line.replace("operator-selector: production", &format!("operator-selector: {selector}")),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let documents: Vec<&str> = text.split("\n---\n").filter(|part| !part.contains("kind: Service")).collect();
    assert_eq!(documents.len(), 2, "a configuration each for defaulter and validators");
    assert_eq!(text.matches("https://127.0.0.1").count(), 3, "three webhooks");
    documents.join("\n---\n")
}

/// A further validator, asked under its older path by an API server that trusts these authorities.
fn validator(name: &str, port: u16, trusted: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {name}}}
webhooks:
- name: {name}.crownlabs.polito.it
  clientConfig: {{url: \"https://127.0.0.1:{port}/validate-v1alpha2-tenant\", caBundle: {trusted}}}
  rules: [{{apiGroups: [crownlabs.polito.it], apiVersions: [v1alpha2], resources: [tenants], operations: [UPDATE]}}]
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 5
"
    )
}

/// The daemon with webhooks at that port.
fn daemon(lab: &Lab, port: u16, webhook: &str, more: &str) -> Daemon {
    let config = format!("webhook: {{enabled: true, listen: \"127.0.0.1:{port}\"{webhook}}}\n{more}");
    let kubeconfig = lab.service_account();
    Daemon::start(&Options { kubeconfig: &kubeconfig, selector: SELECTOR, config: &config })
}

/// The authorities that the configurations trust, base64.
fn trusted(lab: &Lab) -> Vec<String> {
    let kinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let objects = kinds.map(|kind| lab.get(kind, "default", "crownlabs-webhook").unwrap_or_default());
    let webhooks = objects.iter().flat_map(|object| object["webhooks"].as_array().into_iter().flatten());
    webhooks.map(|each| each["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Installs the shipped configurations and waits until the API server asks and is answered.
pub fn install(lab: &Lab, selector: &str, port: u16) {
    lab.apply(&configurations(selector, port, None));
    wait_until(PATIENCE, || {
        let bundles = trusted(lab);
        let complete = bundles.len() == 3 && bundles.iter().all(|bundle| !bundle.is_empty());
        complete.then_some(()).ok_or_else(|| format!("the authorities in the configurations: {bundles:?}"))
    });
    // The API server hears of the configurations by a watch of its own.
    lab.apply(&crate::tenants::tenant(selector, "probe", ""));
    wait_until(PATIENCE, || {
        let patch = r#"{"spec": {"firstName": "X"}}"#;
        match act(
            lab,
            "stranger",
            &["patch", "tenant", "probe", "--type=merge", "-p", patch, "--dry-run=server"],
            "",
        ) {
            Err(refusal) if refusal.contains("\"stranger\" not found") => Ok(()),
            other => Err(format!("the refusal of a stranger: {other:?}")),
        }
    });
}

/// Runs kubectl as a user; everything that it prints.
fn act(lab: &Lab, user: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let arguments = [&["--as", user], arguments].concat();
    lab.try_kubectl(&arguments, input)
}

/// Merge-patches a Tenant as a user.
fn edit(lab: &Lab, user: &str, tenant: &str, patch: &Value) -> Result<String, String> {
    act(lab, user, &["patch", "tenant", tenant, "--type=merge", "-p", &patch.to_string()], "")
}

/// Waits for a line of the metrics to say more than 0.
fn await_metric(daemon: &Daemon, series: &str) {
    wait_until(Duration::from_mins(1), || {
        let metrics = daemon.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix(series)).unwrap_or("0");
        let value = line.trim().to_owned();
        if value == "0" { Err(format!("{series}:\n{metrics}")) } else { Ok(()) }
    });
}
