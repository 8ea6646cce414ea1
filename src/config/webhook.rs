//! The keys of the admission webhooks.

use super::formats::{self, formats};
use super::keys::keys;
use super::listen_address::ListenAddress;

formats! {
    GROUP = "crownlabs-group", |text| !text.trim().is_empty(), "the name of a group", "[^ ]";
}

keys! {
    /// The admission webhooks, which the API server calls before it stores a CrownLabs object.
    pub struct WebhookConfig {
        /// Whether the webhooks are served; `manifests/40-webhooks.yaml` registers them in the API server.
        pub enabled: bool,
        /// The address and port of the HTTPS server.
        pub listen: ListenAddress = ListenAddress::port(9443),
        /// The folder with `tls.crt` and `tls.key`, reloaded when they change. If empty, the daemon uses its own
        /// certificate authority, which the leader creates, renews and registers.
        pub certificate_dir: String,
        /// The PEM file with the certificate authorities of clients, reloaded when it changes. Only clients with a
        /// certificate from one of these authorities are served; empty to serve every client. The API server presents a
        /// certificate if its `AdmissionConfiguration` says so.
        pub client_ca_file: String,
        /// The name of the Service and the Secret, in the namespace of the Lease, and of the webhook configurations.
        pub service_name: String as formats::DNS_LABEL = "crownlabs-webhook".to_owned(),
        /// The groups whose members may change Tenants without restrictions. The default lists the administrators'
        /// groups of Kubernetes and of kubeadm.
        pub bypass_groups: Vec<String> as [GROUP] =
            vec!["system:masters".to_owned(), "kubeadm:cluster-admins".to_owned()],
        /// Whether an Instance is rejected if it exceeds the quota that its Workspace grants to each user.
        pub instance_quota: bool = true,
        /// Whether the Tenant of an Instance must be enrolled in the Workspace of its Template, as user or manager, or
        /// the Template must be in the Tenant's personal workspace. It requires `instanceQuota`.
        pub require_enrolment: bool = true,
    }
}
