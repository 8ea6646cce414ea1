//! The keys of the image list loop; see `docs/image-lists.md`.

use macro_rules_attribute::apply;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bound::Bound;
use super::duration::ConfigDuration;
use super::formats::{self, formats};
use super::keys::{choice, keys};
use crate::api::image::is_repository;

/// The type of Harbor's artifacts that Templates can use.
const IMAGE: &str = "IMAGE";

formats! {
    REGISTRY_URL = "crownlabs-registry-url", |text| !text.is_empty() && (formats::SERVER_URL.accepts)(text),
        "the URL of a registry such as https://registry.example.com, without user, query or fragment",
        concat!("^", pattern!(url), "$");
    REGISTRY_NAME = "crownlabs-registry-name", |text| !text.is_empty() && (formats::REGISTRY.accepts)(text),
        "a registry as written in image names, such as registry.example.com or registry.example.com:5000, without \
         scheme",
        concat!("^", pattern!(authority), "(/", pattern!(repository), ")?$");
    PROJECT = "crownlabs-project", |text| text.is_empty() || is_repository(text),
        "a project such as crownlabs, in lower case and without a slash at its ends, or \"\" for none",
        concat!("^(", pattern!(repository), ")?$");
    ARTIFACT_TYPE = "crownlabs-artifact-type", is_artifact_type, "a type of artifact such as IMAGE, in upper case",
        "^[A-Z0-9._-]{1,64}$";
}

fn is_artifact_type(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(fits)
}

/// The maximum number of registries; each is a task with a bounded amount of memory.
const FEW: Bound = Bound::Count(0, 64, "at most 64");

keys! {
    /// The image list loop.
    pub struct ImageListConfig {
        /// Whether this loop runs; if so, `registries` must have at least one entry. If not, it watches nothing and
        /// needs no RBAC permissions.
        pub enabled: bool,
        /// The number of image lists that are reconciled at the same time, from 1 to 256. It does not limit the number
        /// of registries that are queried.
        pub concurrency: usize as 1..=256 = 4,
        /// The time between two queries of a registry, with a jitter of 10 %, from `5s` to `1d`. A failed query is
        /// repeated after 30 s, with increasing delays up to this time.
        pub update_interval: ConfigDuration where "5s"..="1d" = ConfigDuration::from_secs(300),
        /// The registries, each with the `ImageList` that is made from it. If a registry is removed, its list is kept
        /// unchanged.
        pub registries: Vec<RegistryConfig> where FEW,
    }
}

/// A registry, and the `ImageList` that is made from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegistryConfig {
    /// The name of the `ImageList`.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub image_list_name: String,
    /// The API of the registry: `docker` for the API of the OCI distribution specification, or `harbor`.
    #[serde(default, rename = "type")]
    pub type_: RegistryType,
    /// The URL that the daemon uses to reach the registry. With `https`, its certificate is verified.
    #[schemars(extend("format" = REGISTRY_URL.name))]
    pub url: String,
    /// The registry as written in image names. It becomes `registryName` of the `ImageList`.
    #[schemars(extend("format" = REGISTRY_NAME.name))]
    pub registry_name: String,
    /// The project whose repositories are listed, by their names without the project. It is required for `harbor`. With
    /// `docker`, it is the first component of repository names; empty for all repositories.
    #[serde(default)]
    #[schemars(extend("format" = PROJECT.name))]
    pub project: String,
    /// The user name for the login; empty for no login, or if `usernameFile` is set.
    #[serde(default)]
    pub username: String,
    /// The file with the user name for the login, read again for each query.
    #[serde(default)]
    pub username_file: String,
    /// The file with the password of this user, read again for each query.
    #[serde(default)]
    pub password_file: String,
    /// The URL of the token server, if it differs from the registry, such as `https://auth.example.com/token`. Only
    /// this server and the registry receive the password.
    #[serde(default)]
    #[schemars(extend("format" = formats::SERVER_URL.name))]
    pub token_url: String,
    /// The PEM file with the certificate authorities to trust, reloaded when it changes; if empty, the operating
    /// system's authorities are trusted.
    #[serde(default)]
    pub ca_file: String,
    /// The types of artifacts to list, for `harbor` only: the API `docker` does not report them.
    #[serde(default = "images")]
    #[schemars(extend("items" = {"type": "string", "format": ARTIFACT_TYPE.name}))]
    pub artifact_types: Vec<String>,
}

/// The API of a registry.
#[apply(choice)]
pub enum RegistryType {
    /// The API of the OCI distribution specification, which began as Docker's API.
    #[default]
    Docker,
    /// The API of Harbor, version 2.0.
    Harbor,
}

pub(super) fn images() -> Vec<String> {
    vec![IMAGE.to_owned()]
}

impl RegistryConfig {
    /// Whether the registry requires a login.
    pub fn has_credentials(&self) -> bool {
        !self.password_file.is_empty()
    }
}
