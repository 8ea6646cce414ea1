//! The keys of the admission webhooks.

use super::formats;
use super::keys::keys;
use super::listen_address::ListenAddress;

keys! {
    /// The admission webhooks, which the API server calls before it stores an object of CrownLabs.
    pub struct WebhookConfig {
        /// Whether the webhooks are served; `manifests/40-webhooks.yaml` registers them in the API server.
        pub enabled: bool,
        /// The address and port of the HTTPS server.
        pub listen: ListenAddress = ListenAddress::port(9443),
        /// The folder with `tls.crt` and `tls.key`, which are read again when they change; empty to use a
        /// certificate authority of the daemon, which the leader creates, renews and registers.
        pub certificate_dir: String,
        /// The file with the certificate authorities of the clients, in PEM, which is read again when it changes: only
        /// clients that show a certificate of theirs are served; empty to serve every client. The API server shows one
        /// if its `AdmissionConfiguration` says so.
        pub client_ca_file: String,
        /// The name of the Service and the Secret, in the namespace of the Lease, and of the webhook
        /// configurations.
        pub service_name: String as formats::DNS_LABEL = "crownlabs-webhook".to_owned(),
        /// The groups whose members may change Tenants without restrictions. The default has those of the administrators that
        /// Kubernetes knows, and that kubeadm makes.
        pub bypass_groups: Vec<String> =
            vec!["system:masters".to_owned(), "kubeadm:cluster-admins".to_owned()],
        /// Whether an Instance is refused if it exceeds the quota that its Workspace grants to each user.
        pub instance_quota: bool = true,
        /// Whether the Tenant of an Instance must be enrolled in the Workspace of its Template, as user or manager, or
        /// the Template be in the own personal workspace. It needs `instanceQuota`.
        pub require_enrolment: bool = true,
    }
}
