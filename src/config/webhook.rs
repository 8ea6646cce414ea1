//! The keys of the admission webhooks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;
use super::types::ListenAddress;

/// The admission webhooks, which the API server asks before it stores a Tenant or an Instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebhookConfig {
    /// Whether they are served; `manifests/40-webhooks.yaml` makes the API server ask.
    pub enabled: bool,
    /// The address and port of the HTTPS server.
    pub listen: ListenAddress,
    /// The folder with `tls.crt` and `tls.key`, which are read again when they change; empty for a
    /// certificate of our own authority, which the leader renews and makes the API server trust.
    pub certificate_dir: String,
    /// The name of the Service in the namespace of the Lease, and of the Secret and the webhook
    /// configurations that go with it.
    #[schemars(extend("format" = formats::DNS_LABEL.name))]
    pub service_name: String,
    /// The groups whose members change Tenants without being asked by what right.
    pub bypass_groups: Vec<String>,
    /// Whether an Instance starts only within what its Workspace lends to each user.
    pub instance_quota: bool,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            listen: ListenAddress(Some(([0, 0, 0, 0], 9443).into())),
            certificate_dir: String::new(),
            service_name: "crownlabs-webhook".to_owned(),
            bypass_groups: vec!["system:masters".to_owned()],
            instance_quota: true,
        }
    }
}
