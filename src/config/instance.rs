//! The keys of the instance loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;

/// The hash of the password `crownlabs`, which the Go operators set as well. It is not a secret.
const PUBLIC_PASSWORD_HASH: &str = "$6$rounds=4096$tBS1sNBpnw6feehB$lS9b7VKH6WMAFOB0SrHCgjD2BKs9CegDe51EiMRWbxQeCVnoGL4u0jNaRsYhvVoBFaRlXZkNsxfFhXvCBaNeQ.";

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
    /// Either `shared`, the OAuth2 proxy at `instancesAuthUrl` for all Instances, or `none`, if
    /// authentication is done elsewhere.
    pub mode: AccessMode,
}

/// How users of Instances are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AccessMode {
    /// By one OAuth2 proxy, which annotations of the Ingress refer to.
    #[default]
    Shared,
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

impl Default for InstanceConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            concurrency: 16,
            website_base_url: "crownlabs.example.com".to_owned(),
            instances_auth_url: "https://crownlabs.example.com/auth".to_owned(),
            webssh_master_key_file: String::new(),
            container_images: ContainerImages::default(),
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

impl Default for VmLogin {
    fn default() -> Self {
        Self { password_hash: PUBLIC_PASSWORD_HASH.to_owned(), ssh_password: false }
    }
}
