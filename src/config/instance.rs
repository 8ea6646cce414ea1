//! The keys of the instance loop.

use macro_rules_attribute::apply;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats::{self, formats};
use super::keys::{choice, keys};
use super::network::Network;
use super::route_policy::RoutePolicy;

/// The hash of the password `crownlabs`, which the Go operators also set. It is not a secret.
const PUBLIC_PASSWORD_HASH: &str = "$6$rounds=4096$tBS1sNBpnw6feehB$lS9b7VKH6WMAFOB0SrHCgjD2BKs9CegDe51EiMRWbxQeCVnoGL4u0jNaRsYhvVoBFaRlXZkNsxfFhXvCBaNeQ.";

formats! {
    PASSWORD_HASH = "crownlabs-password-hash", is_password_hash,
        "the hash of a password as `openssl passwd -6` prints it, or \"!\" for none",
        r##"^([!*]|[$]+["#%-)+-9;-~]+([$]+["#%-)+-9;-~]+){2,}[$]*)$"##;
}

/// Whether a text is a hash `$id$salt$hash` of crypt(3) as in `/etc/shadow`, or `!` or `*` for an account
/// without password.
fn is_password_hash(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_graphic() && !":*!".contains(c);
    let parts = text.split('$').filter(|part| !part.is_empty()).count();
    matches!(text, "!" | "*") || text.starts_with('$') && parts >= 3 && text.chars().all(fits)
}

keys! {
    /// The instance loop.
    pub struct InstanceConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Instances that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 16,
        /// The host name in the URLs of Instances, without scheme and path. Exams and exercises get the prefixes
        /// `exam.` and `exercise.`.
        pub website_base_url: String as formats::HOST = "crownlabs.example.com".to_owned(),
        /// The host names in the URLs of Instances. `path` uses `websiteBaseUrl` for all Instances. `host` gives each
        /// environment a host name of its own directly below `websiteBaseUrl`, so that pages of one machine cannot read
        /// data of another. It needs a wildcard DNS record and a wildcard certificate; see `docs/access.md`.
        pub urls: Urls,
        /// The URL of the OAuth2 proxy that authenticates users of Instances, without a slash at the end.
        pub instances_auth_url: String as formats::HTTP_URL = "https://crownlabs.example.com/auth".to_owned(),
        /// The file with the public SSH key of the web terminal, which can log in to every virtual machine. It is
        /// reloaded when it changes; empty for none.
        pub webssh_master_key_file: String,
        /// The images of the containers that run beside the container of an environment.
        pub container_images: ContainerImages,
        /// The limit of disk space on the node for each container of an environment, and for the data of an environment
        /// that is not persistent, such as `10Gi`. Kubernetes evicts pods that exceed it. Empty for no limit. Existing
        /// pods keep their limit. A `ResourceQuota` for `ephemeral-storage` still needs a `LimitRange` with a default:
        /// otherwise it rejects the pods of `KubeVirt` and `CDI`.
        pub ephemeral_storage: String as formats::OPTIONAL_QUANTITY,
        /// The authentication of users who open an Instance in a browser.
        pub access: Access,
        /// Whether uploads of any size pass the Ingress controller, as they arrive: the Ingresses get the annotations
        /// `proxy-body-size: "0"` and `proxy-request-buffering: "off"` of ingress-nginx. Otherwise its own limit applies,
        /// usually 1 MiB. The values of the chart turn this on; the Go operators had no such annotations.
        pub large_uploads: bool,
        /// The network of machines during an exam.
        pub exam_egress: ExamEgress,
        /// The login of the user `crownlabs` in virtual machines.
        pub vm_login: VmLogin,
        /// The Gateway API, which can replace Ingresses where it is installed.
        pub gateway_api: GatewayApi,
        /// Virtual machines of type `LocalVM`, whose disk is a clone of a volume in the cluster.
        pub local_vm: LocalVm,
        /// The field that starts and stops a new `VirtualMachine`: `runStrategy`, or `running`, the older field of its
        /// spec. Existing ones keep their field. The Go operators can only stop machines that have `running`.
        pub vm_power: VmPower,
        /// The names and the paths of a new Instance whose Template has one environment. `perEnvironment` uses the form
        /// of Instances with several environments (`<instance>-<environment>`, `/instance/<uid>/<environment>/`);
        /// `classic` uses only the Instance (`<instance>`, `/instance/<uid>/app/`). An Instance that already has
        /// objects keeps its form. Dashboards since 2025-11 expect `perEnvironment`, older ones `classic`.
        pub layout: Layout,
        /// How long a problem that needs a change elsewhere must persist before an Instance or another object becomes
        /// `Stalled`. Examples are an image that cannot be pulled and a Template that does not exist. It is also how
        /// long an Instance waits without a known cause before the daemon lists the events of its namespace, at most
        /// every two minutes.
        pub stalled_after: ConfigDuration = ConfigDuration::from_secs(120),
    }

    /// The images of the containers that run beside the container of an environment.
    pub struct ContainerImages {
        /// The tag of all images below.
        pub tag: String as formats::IMAGE_TAG = "latest".to_owned(),
        /// The image of the X server with VNC, without tag.
        pub x_vnc: String as formats::IMAGE_NAME = "crownlabs/tigervnc".to_owned(),
        /// The image of the proxy between browser and VNC server, without tag.
        pub websockify: String as formats::IMAGE_NAME = "crownlabs/websockify".to_owned(),
        /// The image that downloads the initial content of an Instance, without tag.
        pub content_downloader: String as formats::IMAGE_NAME = "crownlabs/content-downloader".to_owned(),
        /// The host and port of the server that reports how much CPU and memory containers use.
        pub instmetrics_server_endpoint: String as formats::HOST_PORT = "instmetrics:9090".to_owned(),
    }

    /// The authentication of users who open an Instance in a browser.
    pub struct Access {
        /// `shared` uses the OAuth2 proxy at `instancesAuthUrl` for all Instances. `perInstance` adds an OAuth2 proxy
        /// to each Instance, which admits its Tenant and the managers of the Workspace. `daemon` admits the same users
        /// with the daemon's own login, and needs `urls: host`. `none` leaves authentication to other components.
        pub mode: AccessMode,
        /// The same for environments with the mode `Exam` or `Exercise`.
        pub exams: ExamAccess,
        /// The daemon's own login, which `daemon` needs.
        pub daemon: DaemonLogin,
        /// The OAuth2 proxies of `perInstance`, which needs `issuerUrl`, `clientId` and `clientSecretFile`; see
        /// `docs/access.md`.
        pub oauth2_proxy: OAuth2Proxy,
    }

    /// The daemon's own login to machines.
    pub struct DaemonLogin {
        /// The URL that the Ingress controller asks whether a request may pass, such as
        /// `http://crownlabs-login.crownlabs-system.svc.cluster.local/auth`. The host name must be complete, because
        /// NGINX uses no search domains. The label of the machine's host is appended.
        pub auth_url: String as formats::SERVER_URL,
        /// The page of the dashboard that logs users in to machines, such as
        /// `https://labs.example.com/login/machine`.
        pub sign_in_url: String as formats::SERVER_URL,
    }

    /// The OAuth2 proxies of single Instances.
    pub struct OAuth2Proxy {
        /// The image of the proxy.
        pub image: String as formats::IMAGE = "quay.io/oauth2-proxy/oauth2-proxy:v7.13.0".to_owned(),
        /// The URL of the realm that users log in to, such as `https://auth.example.com/realms/crownlabs`.
        pub issuer_url: String as formats::SERVER_URL,
        /// The client ID that the proxies use to log users in.
        pub client_id: String,
        /// The file with the secret of this client, reloaded when it changes.
        pub client_secret_file: String,
    }

    /// The network of machines during an exam: of environments with the mode `Exam`.
    pub struct ExamEgress {
        /// Whether a `NetworkPolicy` lets these machines connect only to DNS and `allow`, and accept connections only
        /// from trusted namespaces, not from other machines of their namespace. Their volumes need no rule, because the
        /// node mounts them. The values of the chart turn this on; the Go operators had no such policy.
        pub enabled: bool,
        /// The networks that these machines may reach, such as the network of the exam server.
        pub allow: Vec<Network>,
    }

    /// The use of the Gateway API instead of Ingresses.
    pub struct GatewayApi {
        /// Whether Instances get an `HTTPRoute` instead of an Ingress. The Gateway must then authenticate users.
        pub enabled: bool,
        /// The Gateways that the routes attach to, each as `{name, namespace}`; at least one is required if `enabled`
        /// is true.
        pub parent_refs: Vec<ParentRef>,
        /// Whether another component, such as a policy of the Gateway, authenticates the users of these routes. The
        /// daemon does not authenticate them, and `config check` warns until this is true, or `policy` is set.
        pub authenticated: bool,
        /// The policy that guards each route; see `docs/platform.md`. The URL of a machine is shown only while the
        /// Gateway has accepted the route and its policy. If it has not after `stalledAfter`, the route is removed, and
        /// tried again later.
        pub policy: RoutePolicy,
    }

    /// Virtual machines whose disk is a clone of a volume in the cluster.
    pub struct LocalVm {
        /// Whether Templates may have environments of type `LocalVM`.
        pub enabled: bool,
        /// The namespaces whose volumes every Template may clone, in addition to its own namespace.
        pub namespaces: Vec<String> as [formats::DNS_LABEL],
    }
}

/// How users of Instances are authenticated.
#[apply(choice)]
pub enum AccessMode {
    /// One OAuth2 proxy for all Instances, referenced by annotations of the Ingress.
    #[default]
    Shared,
    /// An OAuth2 proxy for each Instance, referenced by annotations of its Ingresses.
    PerInstance,
    /// The daemon's own login, referenced by annotations of the Ingress.
    Daemon,
    /// No authentication by the daemon's Ingresses.
    None,
}

/// How users of exams and exercises are authenticated.
#[apply(choice)]
pub enum ExamAccess {
    /// No authentication by the daemon's Ingresses.
    #[default]
    None,
    /// The OAuth2 proxy of all Instances.
    Shared,
    /// The daemon's own login.
    Daemon,
}

/// The host names in the URLs of Instances.
#[apply(choice)]
pub enum Urls {
    /// One host name for all Instances, which differ in the path.
    #[default]
    Path,
    /// A host name for each environment.
    Host,
}

/// How new virtual machines are started and stopped.
#[apply(choice)]
pub enum VmPower {
    /// By `spec.runStrategy`.
    #[default]
    RunStrategy,
    /// By `spec.running`.
    Running,
}

#[cfg(test)]
impl InstanceConfig {
    /// The default configuration with the layout of the older Go operators.
    pub fn classic() -> Self {
        Self { layout: Layout::Classic, ..Self::default() }
    }
}

/// How the objects of an Instance with one environment are named.
#[apply(choice)]
pub enum Layout {
    /// After the Instance and the environment, as for Instances with several environments.
    #[default]
    PerEnvironment,
    /// After the Instance only.
    Classic,
}

/// The login of the user `crownlabs` in virtual machines.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, derive_more::Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VmLogin {
    /// The crypt(3) hash of the password for console and desktop; the default is the hash of the
    /// publicly known password `crownlabs`.
    #[schemars(extend("format" = PASSWORD_HASH.name, "writeOnly" = true))]
    // The configuration may be logged, so this value is hidden.
    #[debug("({})", if password_hash == PUBLIC_PASSWORD_HASH { "the default" } else { "set" })]
    pub password_hash: String,
    /// Whether the password can be used over SSH; leave it off while the password is publicly known.
    pub ssh_password: bool,
}

/// A Gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ParentRef {
    /// The name of the Gateway.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub name: String,
    /// The namespace of the Gateway.
    #[schemars(extend("format" = formats::DNS_LABEL.name))]
    pub namespace: String,
}

impl InstanceConfig {
    /// The limit of disk space on the node for a container; `None` for no limit.
    pub fn storage_limit(&self) -> Option<&str> {
        Some(self.ephemeral_storage.as_str()).filter(|limit| !limit.is_empty())
    }
}

impl Default for VmLogin {
    fn default() -> Self {
        Self { password_hash: PUBLIC_PASSWORD_HASH.to_owned(), ssh_password: false }
    }
}
