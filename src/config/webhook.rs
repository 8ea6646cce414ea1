//! The keys of the admission webhooks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;
use super::types::ListenAddress;

/// The admission webhooks, which the API server calls before it stores a Tenant or an Instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebhookConfig {
    /// Whether the webhooks are served; `manifests/40-webhooks.yaml` registers them in the API server.
    pub enabled: bool,
    /// The address and port of the HTTPS server.
    pub listen: ListenAddress,
    /// The folder with `tls.crt` and `tls.key`, which are read again when they change; empty to use a
    /// certificate authority of the daemon, which the leader creates, renews and registers.
    pub certificate_dir: String,
    /// The file with the certificate authorities of the clients, in PEM, which is read again when it changes: only clients
    /// that show a certificate of theirs are served; empty to serve every client. The API server shows one if its
    /// `AdmissionConfiguration` says so.
    pub client_ca_file: String,
    /// The name of the Service and the Secret, in the namespace of the Lease, and of the webhook
    /// configurations.
    #[schemars(extend("format" = formats::DNS_LABEL.name))]
    pub service_name: String,
    /// The groups whose members may change Tenants without restrictions.
    pub bypass_groups: Vec<String>,
    /// Whether an Instance is refused if it exceeds the quota that its Workspace grants to each user.
    pub instance_quota: bool,
    /// Whether the Tenant of an Instance must be enrolled in the Workspace of its Template, as user or manager, or the
    /// Template be in the own personal workspace. It needs `instanceQuota`.
    pub require_enrolment: bool,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            listen: ListenAddress(Some(([0, 0, 0, 0], 9443).into())),
            certificate_dir: String::new(),
            client_ca_file: String::new(),
            service_name: "crownlabs-webhook".to_owned(),
            bypass_groups: vec!["system:masters".to_owned()],
            instance_quota: true,
            require_enrolment: true,
        }
    }
}
