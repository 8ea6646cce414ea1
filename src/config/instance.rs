//! The keys of the Instance loop: the flags of 02 §11.1, and those that its chapters add.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;

/// The hash of the password `crownlabs` that the images of the baseline know (02 §5.1). Public.
const PUBLIC_PASSWORD_HASH: &str = "$6$rounds=4096$tBS1sNBpnw6feehB$lS9b7VKH6WMAFOB0SrHCgjD2BKs9CegDe51EiMRWbxQeCVnoGL4u0jNaRsYhvVoBFaRlXZkNsxfFhXvCBaNeQ.";

/// The loop over Instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InstanceConfig {
    /// Whether the loop runs; one that is off costs nothing and needs no rights.
    pub enabled: bool,
    /// How many Instances are worked on at the same time, 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The host name that Instances are reached under, without scheme or path; exams and exercises
    /// have `exam.` and `exercise.` before it.
    #[schemars(extend("format" = formats::HOST.name))]
    pub website_base_url: String,
    /// The URL of the OAuth2 proxy that guards Instances, without a slash at the end.
    #[schemars(extend("format" = formats::HTTP_URL.name))]
    pub instances_auth_url: String,
    /// The file with the public SSH key of the web terminal, which enters every virtual machine;
    /// empty for none. It is read again when it changes.
    pub webssh_master_key_file: String,
    /// The images of what runs beside a container environment.
    pub container_images: ContainerImages,
    /// Who may open an Instance in a browser.
    pub access: Access,
    /// The user `crownlabs` in virtual machines.
    pub vm_login: VmLogin,
    /// `HTTPRoutes` instead of Ingresses, where the Gateway API is installed.
    pub gateway_api: GatewayApi,
    /// Virtual machines whose disk is a clone of a volume in the cluster.
    pub local_vm: LocalVm,
}

/// The images of the containers beside the user's, by name without tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContainerImages {
    /// The tag of all images below.
    #[schemars(extend("format" = formats::IMAGE_TAG.name))]
    pub tag: String,
    /// The X server with VNC, without tag.
    #[schemars(extend("format" = formats::IMAGE_NAME.name))]
    pub x_vnc: String,
    /// The bridge from the browser to VNC, without tag.
    #[schemars(extend("format" = formats::IMAGE_NAME.name))]
    pub websockify: String,
    /// What fetches the content that an Instance starts from, without tag.
    #[schemars(extend("format" = formats::IMAGE_NAME.name))]
    pub content_downloader: String,
    /// What sends the content that an exam hands in, without tag.
    #[schemars(extend("format" = formats::IMAGE_NAME.name))]
    pub content_uploader: String,
    /// The host and port that the usage of containers is asked from.
    #[schemars(extend("format" = formats::HOST_PORT.name))]
    pub instmetrics_server_endpoint: String,
}

/// Who may open an Instance.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Access {
    /// Either `shared`, one OAuth2 proxy for all Instances at `instancesAuthUrl`, or `none`, where
    /// something else guards them.
    pub mode: AccessMode,
}

/// What guards Instances in the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AccessMode {
    /// One OAuth2 proxy for all, named in annotations of the Ingress.
    #[default]
    Shared,
    /// Nothing of ours.
    None,
}

/// How the user `crownlabs` of a virtual machine logs in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VmLogin {
    /// The crypt(3) hash of the password for console and desktop; the default is the hash of
    /// `crownlabs`, which everybody knows.
    #[schemars(extend("format" = formats::PASSWORD_HASH.name, "writeOnly" = true))]
    pub password_hash: String,
    /// Whether the password also opens SSH; leave it off while the password is a known one.
    pub ssh_password: bool,
}

/// `HTTPRoutes` instead of Ingresses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GatewayApi {
    /// Whether Instances are exposed by `HTTPRoutes`; authentication is then the gateway's.
    pub enabled: bool,
    /// The Gateways that the routes attach to, each as `{name, namespace}`; needed when enabled.
    pub parent_refs: Vec<ParentRef>,
}

/// A Gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ParentRef {
    /// Its name.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub name: String,
    /// Its namespace.
    #[schemars(extend("format" = formats::DNS_LABEL.name))]
    pub namespace: String,
}

/// Virtual machines from volumes of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LocalVm {
    /// Whether Templates may have environments of the type `LocalVM`.
    pub enabled: bool,
    /// The namespaces whose volumes any Template may clone, beside the Template's own.
    #[schemars(extend("items" = {"type": "string", "format": formats::DNS_LABEL.name}))]
    pub namespaces: Vec<String>,
}

/// The hash of a password of the administrator's own is not for logs.
impl fmt::Debug for VmLogin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = if self.password_hash == PUBLIC_PASSWORD_HASH { "(the default)" } else { "(set)" };
        formatter
            .debug_struct("VmLogin")
            .field("password_hash", &format_args!("{hash}"))
            .field("ssh_password", &self.ssh_password)
            .finish()
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
            content_uploader: "crownlabs/content-uploader".to_owned(),
            instmetrics_server_endpoint: "instmetrics:9090".to_owned(),
        }
    }
}

impl Default for VmLogin {
    fn default() -> Self {
        Self { password_hash: PUBLIC_PASSWORD_HASH.to_owned(), ssh_password: false }
    }
}
