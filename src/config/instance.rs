//! The keys of the instance loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats::{self, Format};
use super::rules::Rule;
use super::types::Config;
use crate::api::quantity::Quantity;

/// The hash of the password `crownlabs`, which the Go operators set as well. It is not a secret.
const PUBLIC_PASSWORD_HASH: &str = "$6$rounds=4096$tBS1sNBpnw6feehB$lS9b7VKH6WMAFOB0SrHCgjD2BKs9CegDe51EiMRWbxQeCVnoGL4u0jNaRsYhvVoBFaRlXZkNsxfFhXvCBaNeQ.";

/// The format of an amount of which there may be none.
pub(super) const OPTIONAL_QUANTITY: Format = Format::new(
    "crownlabs-optional-quantity",
    "an amount such as 500M or 10Gi, above 0, or \"\" for none",
    |text| text.is_empty() || text.parse::<Quantity>().is_ok_and(|amount| amount > Quantity::from_int(0)),
);
pub(super) const FORMATS: [&Format; 1] = [&OPTIONAL_QUANTITY];

/// The instance loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InstanceConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of Instances that are reconciled at the same time, from 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The host name of the URLs of Instances, without scheme and path; exams and exercises get the prefixes
    /// `exam.` and `exercise.`.
    #[schemars(extend("format" = formats::HOST.name))]
    pub website_base_url: String,
    /// The URL of the OAuth2 proxy that authenticates users of Instances, without a slash at the end.
    #[schemars(extend("format" = formats::HTTP_URL.name))]
    pub instances_auth_url: String,
    /// The file with the public SSH key of the web terminal, which can log in to every virtual machine;
    /// empty for none; it is read again when it changes.
    pub webssh_master_key_file: String,
    /// The images of the containers that run beside the container of an environment.
    pub container_images: ContainerImages,
    /// How much of the disk of its node a container of an environment may use, and the same for the work in an environment
    /// that is not persistent, such as `10Gi`: Kubernetes ends a pod that uses more. Empty for no limit. Pods that
    /// exist keep theirs. A `ResourceQuota` for `ephemeral-storage` needs a `LimitRange` with a default all the same: without, it
    /// refuses the pods of `KubeVirt` and `CDI`.
    #[schemars(extend("format" = OPTIONAL_QUANTITY.name))]
    pub ephemeral_storage: String,
    /// The authentication of users who open an Instance in a browser.
    pub access: Access,
    /// The login of the user `crownlabs` in virtual machines.
    pub vm_login: VmLogin,
    /// The Gateway API, which can be used instead of Ingresses where it is installed.
    pub gateway_api: GatewayApi,
    /// Virtual machines of type `LocalVM`, whose disk is a clone of a volume in the cluster.
    pub local_vm: LocalVm,
}

/// The images of the containers that run beside the container of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContainerImages {
    /// The tag of all images below.
    #[schemars(extend("format" = formats::IMAGE_TAG.name))]
    pub tag: String,
    /// The image of the X server with VNC, without tag.
    #[schemars(extend("format" = formats::IMAGE_NAME.name))]
    pub x_vnc: String,
    /// The image of the proxy between browser and VNC, without tag.
    #[schemars(extend("format" = formats::IMAGE_NAME.name))]
    pub websockify: String,
    /// The image that downloads the initial content of an Instance, without tag.
    #[schemars(extend("format" = formats::IMAGE_NAME.name))]
    pub content_downloader: String,
    /// The host and port of the server that tells how much CPU and memory containers use.
    #[schemars(extend("format" = formats::HOST_PORT.name))]
    pub instmetrics_server_endpoint: String,
}

/// The authentication of users who open an Instance in a browser.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OAuth2Proxy {
    /// The image of the proxy.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub image: String,
    /// The URL of the realm in which users log in, such as `https://auth.example.com/realms/crownlabs`.
    #[schemars(extend("format" = formats::SERVER_URL.name))]
    pub issuer_url: String,
    /// The client of the realm that the proxies log in users with.
    pub client_id: String,
    /// The file with the secret of this client, which is read again when it changes.
    pub client_secret_file: String,
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

/// The login of the user `crownlabs` in virtual machines.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, derive_more::Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VmLogin {
    /// The crypt(3) hash of the password for console and desktop; the default is the hash of the
    /// publicly known password `crownlabs`.
    #[schemars(extend("format" = formats::PASSWORD_HASH.name, "writeOnly" = true))]
    // A configuration may be logged.
    #[debug("({})", if password_hash == PUBLIC_PASSWORD_HASH { "the default" } else { "set" })]
    pub password_hash: String,
    /// Whether the password can be used over SSH; leave it off while the password is publicly known.
    pub ssh_password: bool,
}

/// The use of the Gateway API instead of Ingresses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GatewayApi {
    /// Whether Instances get an `HTTPRoute` instead of an Ingress; the Gateway then authenticates users.
    pub enabled: bool,
    /// The Gateways that the routes attach to, each as `{name, namespace}`; at least one if enabled.
    pub parent_refs: Vec<ParentRef>,
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

/// Virtual machines whose disk is a clone of a volume in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LocalVm {
    /// Whether Templates may have environments of type `LocalVM`.
    pub enabled: bool,
    /// The namespaces whose volumes every Template may clone, in addition to its own namespace.
    #[schemars(extend("items" = {"type": "string", "format": formats::DNS_LABEL.name}))]
    pub namespaces: Vec<String>,
}

impl InstanceConfig {
    /// How much of the disk of its node a container may use; `None` for no limit.
    pub fn storage_limit(&self) -> Option<&str> {
        Some(self.ephemeral_storage.as_str()).filter(|limit| !limit.is_empty())
    }
}

impl Default for InstanceConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            concurrency: 16,
            website_base_url: "crownlabs.example.com".to_owned(),
            instances_auth_url: "https://crownlabs.example.com/auth".to_owned(),
            webssh_master_key_file: String::new(),
            container_images: ContainerImages::default(),
            ephemeral_storage: String::new(),
            access: Access::default(),
            vm_login: VmLogin::default(),
            gateway_api: GatewayApi::default(),
            local_vm: LocalVm::default(),
        }
    }
}

impl Default for ContainerImages {
    fn default() -> Self {
        Self {
            tag: "latest".to_owned(),
            x_vnc: "crownlabs/tigervnc".to_owned(),
            websockify: "crownlabs/websockify".to_owned(),
            content_downloader: "crownlabs/content-downloader".to_owned(),
            instmetrics_server_endpoint: "instmetrics:9090".to_owned(),
        }
    }
}

impl Default for OAuth2Proxy {
    fn default() -> Self {
        Self {
            image: "quay.io/oauth2-proxy/oauth2-proxy:v7.13.0".to_owned(),
            issuer_url: String::new(),
            client_id: String::new(),
            client_secret_file: String::new(),
        }
    }
}

impl Default for VmLogin {
    fn default() -> Self {
        Self { password_hash: PUBLIC_PASSWORD_HASH.to_owned(), ssh_password: false }
    }
}

/// The rules about these keys.
pub(super) const RULES: &[Rule] = &[
    Rule {
        keys: &["controllers.instance.gatewayApi.parentRefs", "controllers.instance.gatewayApi.enabled"],
        broken: |config| {
            let gateway = &config.controllers.instance.gateway_api;
            (gateway.enabled && gateway.parent_refs.is_empty())
                .then(|| "gatewayApi is enabled and parentRefs is empty".to_owned())
        },
        expected: "expected at least one Gateway as {name, namespace}",
    },
    Rule {
        keys: &["controllers.instance.access.oauth2Proxy.issuerUrl", "controllers.instance.access.mode"],
        broken: |config| lacks(config, "issuerUrl", |proxy| &proxy.issuer_url),
        expected: "expected the URL of the realm",
    },
    Rule {
        keys: &["controllers.instance.access.oauth2Proxy.clientId", "controllers.instance.access.mode"],
        broken: |config| lacks(config, "clientId", |proxy| &proxy.client_id),
        expected: "expected the client that users are logged in with",
    },
    Rule {
        keys: &[
            "controllers.instance.access.oauth2Proxy.clientSecretFile",
            "controllers.instance.access.mode",
        ],
        broken: |config| lacks(config, "clientSecretFile", |proxy| &proxy.client_secret_file),
        expected: "expected the file with the client's secret",
    },
    Rule {
        keys: &["controllers.instance.access.mode", "controllers.instance.gatewayApi.enabled"],
        broken: |config| {
            let instance = &config.controllers.instance;
            (instance.access.mode == AccessMode::PerInstance && instance.gateway_api.enabled)
                .then(|| "access.mode is perInstance and gatewayApi is enabled".to_owned())
        },
        expected: "expected one of them: the proxies guard Ingresses, the Gateway has to guard the routes itself",
    },
];

/// The problem that each Instance is to have a proxy and a key for it is empty; `None` if it is not so.
fn lacks(config: &Config, key: &str, value: fn(&OAuth2Proxy) -> &str) -> Option<String> {
    let access = &config.controllers.instance.access;
    (access.mode == AccessMode::PerInstance && value(&access.oauth2_proxy).is_empty())
        .then(|| format!("access.mode is perInstance and {key} is empty"))
}
