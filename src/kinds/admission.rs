//! Configurations of admission webhooks.

use macro_rules_attribute::apply;

use super::{Unread, foreign_part, kind};

/// The fields of a webhook's client configuration that we read.
#[apply(foreign_part)]
pub struct WebhookClientConfig {
    /// The CA certificates that the API server trusts, in PEM, encoded in base64.
    pub ca_bundle: Option<String>,
}

/// The fields of a webhook that we read.
#[apply(foreign_part)]
pub struct WebhookEntry {
    /// The name of the webhook.
    pub name: String,
    /// How the API server connects to the webhook.
    pub client_config: WebhookClientConfig,
}

/// The fields of a webhook configuration that we read.
#[apply(foreign_part)]
pub struct WebhookEntries {
    /// The webhooks of the configuration.
    pub webhooks: Vec<WebhookEntry>,
}

kind!(/// A `MutatingWebhookConfiguration`.
    MutatingWebhookConfigurationKind, MutatingWebhookConfiguration, "admissionregistration.k8s.io", "v1",
    "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced: false, WebhookEntries, Unread,
    body: "", largest: 1 << 20);

kind!(/// A `ValidatingWebhookConfiguration`.
    ValidatingWebhookConfigurationKind, ValidatingWebhookConfiguration, "admissionregistration.k8s.io", "v1",
    "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced: false, WebhookEntries, Unread,
    body: "", largest: 1 << 20);
