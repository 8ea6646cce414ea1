//! What tells the API server which webhooks to ask.

use serde::{Deserialize, Serialize};

use super::{Unread, kind};

/// How a webhook is reached, as far as we read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookClientConfig {
    /// The authorities that its certificate is checked by, in PEM, base64 as on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

/// A webhook, as far as we read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookEntry {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub client_config: WebhookClientConfig,
}

/// The webhooks of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebhookEntries {
    /// Each of them.
    pub webhooks: Vec<WebhookEntry>,
}

kind!(/// The webhooks that may change objects.
    MutatingWebhookConfigurationKind, MutatingWebhookConfiguration, "admissionregistration.k8s.io", "v1",
    "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced: false, WebhookEntries, Unread,
    body: "");

kind!(/// The webhooks that may refuse objects.
    ValidatingWebhookConfigurationKind, ValidatingWebhookConfiguration, "admissionregistration.k8s.io", "v1",
    "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced: false, WebhookEntries, Unread,
    body: "");
