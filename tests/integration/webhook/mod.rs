//! The admission webhooks, called by a real API server that verifies their certificate.

mod certificate;
mod hostile;
mod managers;
mod ports;
mod quota;
mod rules;
mod sharing;
mod switched_off;
mod templates;

use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;

/// The value of the selector label of the daemons here. Each test has its own control plane.
const SELECTOR: &str = "guarded";

/// The number of entries in the webhook configurations: one for users and one for administrators for each webhook.
const ENTRIES: usize = 14;

/// A control plane without simulation, where every user may change custom resources.
fn lab() -> Lab {
    lab_with(ClusterOptions::default())
}

/// The same with further options.
fn lab_with(options: ClusterOptions) -> Lab {
    let lab = Lab::start(ClusterOptions { simulate: false, kubevirt: false, ..options });
    grant_everybody(&lab);
    lab
}

/// Gives every user all rights on custom resources, so that only the webhooks reject requests.
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

/// The project's webhook configurations, for a server at that port of this machine instead of a Service. With `trusted`,
/// they contain this CA bundle (base64); without, the daemon writes it.
pub fn configurations(selector: &str, port: u16, trusted: Option<&str>) -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/40-webhooks.yaml");
    let text = std::fs::read_to_string(file).expect("the manifest");
    let ca = trusted.map(|ca| format!("\n    caBundle: {ca}")).unwrap_or_default();
    let service = "service: {name: crownlabs-webhook, namespace: crownlabs-system, path: ";
    let lines = text.lines().map(|line| match line.trim_start().strip_prefix(service) {
        Some(path) => format!("    url: \"https://127.0.0.1:{port}{}\"{ca}", path.trim_end_matches('}')),
        None => line.replace("operator-selector=production", &format!("operator-selector={selector}")),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let documents: Vec<&str> = text.split("\n---\n").filter(|part| !part.contains("kind: Service")).collect();
    assert_eq!(documents.len(), 2, "one configuration for the defaulter and one for the validators");
    assert_eq!(text.matches("https://127.0.0.1").count(), ENTRIES, "seven webhooks, of two entries each");
    documents.join("\n---\n")
}

/// The configuration of a further validator under its older path, with the CA bundle `trusted` (base64).
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

/// Starts the daemon with webhooks at that port; `webhook` and `more` are further configuration.
fn daemon(lab: &Lab, port: u16, webhook: &str, more: &str) -> Daemon {
    let config = format!("webhook: {{enabled: true, listen: \"127.0.0.1:{port}\"{webhook}}}\n{more}");
    let kubeconfig = lab.service_account();
    Daemon::start(&Options { kubeconfig: &kubeconfig, selector: SELECTOR, config: &config })
}

/// The CA bundles in the webhook configurations, in base64.
fn trusted(lab: &Lab) -> Vec<String> {
    let kinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let objects = kinds.map(|kind| lab.get(kind, "default", "crownlabs-webhook").unwrap_or_default());
    let webhooks = objects.iter().flat_map(|object| object["webhooks"].as_array().into_iter().flatten());
    webhooks.map(|each| each["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Installs the project's webhook configurations and waits until the API server calls the daemon.
pub fn install(lab: &Lab, selector: &str, port: u16) {
    lab.apply(&configurations(selector, port, None));
    wait_until(PATIENCE, || {
        let bundles = trusted(lab);
        let complete = bundles.len() == ENTRIES && bundles.iter().all(|bundle| !bundle.is_empty());
        complete.then_some(()).ok_or_else(|| format!("CA bundles in the configurations: {bundles:?}"))
    });
    // The API server uses the configurations after a short delay.
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
            other => Err(format!("the refusal of an unknown user: {other:?}")),
        }
    });
}

/// Runs `kubectl` as a user. Returns its output; the error is its standard error.
fn act(lab: &Lab, user: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let arguments = [&["--as", user], arguments].concat();
    let mut answer = lab.try_kubectl(&arguments, input);
    for _ in 0..3 {
        if !answer.as_ref().is_err_and(|refusal| is_late(refusal)) {
            break;
        }
        answer = lab.try_kubectl(&arguments, input);
    }
    answer
}

/// Whether a call of the webhook timed out: the API server gives it five seconds, which a busy machine may take. Such
/// a request is sent again.
fn is_late(refusal: &str) -> bool {
    refusal.contains("failed calling webhook") && refusal.contains("deadline exceeded")
}

/// A user who changes Tenants without starting a process.
struct Editor {
    runtime: Runtime,
    tenants: Api<DynamicObject>,
}

impl Editor {
    fn new(lab: &Lab, user: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = runtime.block_on(lab.cluster.client_as(user)).expect("a client");
        let kind = GroupVersionKind::gvk("crownlabs.polito.it", "v1alpha2", "Tenant");
        Self { tenants: Api::all_with(client, &ApiResource::from_gvk(&kind)), runtime }
    }

    /// Merge-patches a Tenant.
    fn edit(&self, tenant: &str, patch: &Value) -> Result<(), String> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let answer = self.runtime.block_on(self.tenants.patch(tenant, &params, &patch));
        answer.map(drop).map_err(|error| error.to_string())
    }
}

/// Merge-patches a Tenant as a user.
fn edit(lab: &Lab, user: &str, tenant: &str, patch: &Value) -> Result<String, String> {
    act(lab, user, &["patch", "tenant", tenant, "--type=merge", "-p", &patch.to_string()], "")
}

/// Waits until a series of the metrics is greater than 0.
fn await_metric(daemon: &Daemon, series: &str) {
    wait_until(Duration::from_mins(1), || {
        let metrics = daemon.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix(series)).unwrap_or("0");
        let value = line.trim().to_owned();
        if value == "0" { Err(format!("{series}:\n{metrics}")) } else { Ok(()) }
    });
}
