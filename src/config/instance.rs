//! The keys of the instance loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats::{self, Format};
use super::keys::keys;

/// The hash of the password `crownlabs`, which the Go operators set as well. It is not a secret.
const PUBLIC_PASSWORD_HASH: &str = "$6$rounds=4096$tBS1sNBpnw6feehB$lS9b7VKH6WMAFOB0SrHCgjD2BKs9CegDe51EiMRWbxQeCVnoGL4u0jNaRsYhvVoBFaRlXZkNsxfFhXvCBaNeQ.";

/// The format of hashes of passwords.
pub(super) const PASSWORD_HASH: Format = Format {
    secret: true,
    ..Format::new(
        "crownlabs-password-hash",
        "the hash of a password as `openssl passwd -6` prints it, or \"!\" for none",
        is_password_hash,
    )
};
/// The formats of these keys.
pub(super) const FORMATS: [&Format; 1] = [&PASSWORD_HASH];

/// Whether a text is a hash `$id$salt$hash` of crypt(3) as in `/etc/shadow`, or `!` or `*` for an account
/// without password.
fn is_password_hash(text: &str) -> bool {
    let fits = |text: &str| text.chars().all(|c| c.is_ascii_graphic() && c != ':' && c != '*' && c != '!');
    match text {
        "!" | "*" => true,
        _ => {
            text.starts_with('$')
                && text.split('$').filter(|part| !part.is_empty()).count() >= 3
                && fits(text)
        }
    }
}

keys! {
    /// The instance loop.
    pub struct InstanceConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Instances that are reconciled at the same time, from 1 to 256.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 16,
        /// The host name of the URLs of Instances, without scheme and path; exams and exercises get the prefixes
        /// `exam.` and `exercise.`.
        pub website_base_url: String as formats::HOST = "crownlabs.example.com".to_owned(),
        /// The URL of the OAuth2 proxy that authenticates users of Instances, without a slash at the end.
        pub instances_auth_url: String as formats::HTTP_URL = "https://crownlabs.example.com/auth".to_owned(),
        /// The file with the public SSH key of the web terminal, which can log in to every virtual machine;
        /// empty for none; it is read again when it changes.
        pub webssh_master_key_file: String,
        /// The images of the containers that run beside the container of an environment.
        pub container_images: ContainerImages,
        /// How much of the disk of its node a container of an environment may use, and the same for the work in an
        /// environment that is not persistent, such as `10Gi`: Kubernetes ends a pod that uses more. Empty for no
        /// limit. Pods that exist keep theirs. A `ResourceQuota` for `ephemeral-storage` needs a `LimitRange` with a
        /// default all the same: without, it refuses the pods of `KubeVirt` and `CDI`.
        pub ephemeral_storage: String as formats::OPTIONAL_QUANTITY,
        /// The authentication of users who open an Instance in a browser.
        pub access: Access,
        /// The login of the user `crownlabs` in virtual machines.
        pub vm_login: VmLogin,
        /// The Gateway API, which can be used instead of Ingresses where it is installed.
        pub gateway_api: GatewayApi,
        /// Virtual machines of type `LocalVM`, whose disk is a clone of a volume in the cluster.
        pub local_vm: LocalVm,
        /// How a new `VirtualMachine` is started and stopped: `runStrategy`, or `running`, the older member of its spec. Those
        /// that exist keep theirs. The Go operators can only stop machines that have `running`.
        pub vm_power: VmPower,
        /// How the objects of a new Instance whose Template has one environment are named, and where it is opened:
        /// `perEnvironment`, as those of several are (`<instance>-<environment>`, `/instance/<uid>/<environment>/`), or
        /// `classic`, after the Instance alone (`<instance>`, `/instance/<uid>/app/`). An Instance that has objects keeps
        /// theirs. Dashboards since 2025-11 expect `perEnvironment`, older ones `classic`.
        pub layout: Layout,
        /// How long something that needs a person, such as an image that cannot be pulled, has to last until the Instance
        /// is called `Stalled`.
        pub stalled_after: ConfigDuration = ConfigDuration::from_secs(120),
    }

    /// The images of the containers that run beside the container of an environment.
    pub struct ContainerImages {
        /// The tag of all images below.
        pub tag: String as formats::IMAGE_TAG = "latest".to_owned(),
        /// The image of the X server with VNC, without tag.
        pub x_vnc: String as formats::IMAGE_NAME = "crownlabs/tigervnc".to_owned(),
        /// The image of the proxy between browser and VNC, without tag.
        pub websockify: String as formats::IMAGE_NAME = "crownlabs/websockify".to_owned(),
        /// The image that downloads the initial content of an Instance, without tag.
        pub content_downloader: String as formats::IMAGE_NAME = "crownlabs/content-downloader".to_owned(),
        /// The host and port of the server that tells how much CPU and memory containers use.
        pub instmetrics_server_endpoint: String as formats::HOST_PORT = "instmetrics:9090".to_owned(),
    }

    /// The authentication of users who open an Instance in a browser.
    pub struct Access {
        /// Either `shared`, the OAuth2 proxy at `instancesAuthUrl` for all Instances, `perInstance`, an OAuth2 proxy
        /// for each Instance, which admits its Tenant and the managers of the Workspace, or `none`, if authentication
        /// is done elsewhere.
        pub mode: AccessMode,
        /// The OAuth2 proxies of `perInstance`, which needs `issuerUrl`, `clientId` and `clientSecretFile`; see
        /// `docs/access.md`.
        pub oauth2_proxy: OAuth2Proxy,
    }

    /// The OAuth2 proxies of single Instances.
    pub struct OAuth2Proxy {
        /// The image of the proxy.
        pub image: String as formats::IMAGE = "quay.io/oauth2-proxy/oauth2-proxy:v7.13.0".to_owned(),
        /// The URL of the realm in which users log in, such as `https://auth.example.com/realms/crownlabs`.
        pub issuer_url: String as formats::SERVER_URL,
        /// The client of the realm that the proxies log in users with.
        pub client_id: String,
        /// The file with the secret of this client, which is read again when it changes.
        pub client_secret_file: String,
    }

    /// The use of the Gateway API instead of Ingresses.
    pub struct GatewayApi {
        /// Whether Instances get an `HTTPRoute` instead of an Ingress; the Gateway then has to authenticate users.
        pub enabled: bool,
        /// The Gateways that the routes attach to, each as `{name, namespace}`; at least one if enabled.
        pub parent_refs: Vec<ParentRef>,
        /// Whether somebody logs in the users of these routes, such as a policy of the Gateway: the daemon does not, and warns
        /// in `config check` until this says so.
        pub authenticated: bool,
    }

    /// Virtual machines whose disk is a clone of a volume in the cluster.
    pub struct LocalVm {
        /// Whether Templates may have environments of type `LocalVM`.
        pub enabled: bool,
        /// The namespaces whose volumes every Template may clone, in addition to its own namespace.
        #[schemars(extend("items" = {"type": "string", "format": formats::DNS_LABEL.name}))]
        pub namespaces: Vec<String>,
    }
}

/// How users of Instances are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AccessMode {
    /// By one OAuth2 proxy, which annotations of the Ingress refer to.
    #[default]
    Shared,
    /// By an OAuth2 proxy for each Instance, which annotations of its Ingresses refer to.
    PerInstance,
    /// Not by the daemon's Ingresses.
    None,
}

/// How new virtual machines are started and stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VmPower {
    /// By `spec.runStrategy`.
    #[default]
    RunStrategy,
    /// By `spec.running`.
    Running,
}

#[cfg(test)]
impl InstanceConfig {
    /// The default configuration, but with the layout of the older Go operators.
    pub fn classic() -> Self {
        Self { layout: Layout::Classic, ..Self::default() }
    }
}

/// How the objects of an Instance with one environment are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Layout {
    /// After the Instance and the environment, as those of several environments are.
    #[default]
    PerEnvironment,
    /// After the Instance alone.
    Classic,
}

/// The login of the user `crownlabs` in virtual machines.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, derive_more::Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VmLogin {
    /// The crypt(3) hash of the password for console and desktop; the default is the hash of the
    /// publicly known password `crownlabs`.
    #[schemars(extend("format" = PASSWORD_HASH.name, "writeOnly" = true))]
    // A configuration may be logged.
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
    /// How much of the disk of its node a container may use; `None` for no limit.
    pub fn storage_limit(&self) -> Option<&str> {
        Some(self.ephemeral_storage.as_str()).filter(|limit| !limit.is_empty())
    }
}

impl Default for VmLogin {
    fn default() -> Self {
        Self { password_hash: PUBLIC_PASSWORD_HASH.to_owned(), ssh_password: false }
    }
}
