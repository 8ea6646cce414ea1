//! The keys of the image list loop; see `docs/image-lists.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats::{self, Format};
use super::keys::keys;
use crate::api::image::is_repository;

/// The type of Harbor's artifacts that Templates can use.
const IMAGE: &str = "IMAGE";

pub(super) const REGISTRY_URL: Format = Format::new(
    "crownlabs-registry-url",
    "the URL of a registry such as https://registry.example.com, without user, query or fragment",
    |text| !text.is_empty() && (formats::SERVER_URL.accepts)(text),
);
pub(super) const REGISTRY_NAME: Format = Format::new(
    "crownlabs-registry-name",
    "a registry as it stands in names of images, such as registry.example.com or registry.example.com:5000, without \
     scheme",
    |text| !text.is_empty() && (formats::REGISTRY.accepts)(text),
);
pub(super) const PROJECT: Format = Format::new(
    "crownlabs-project",
    "a project such as crownlabs, in lower case and without a slash at its ends, or \"\" for none",
    |text| text.is_empty() || is_repository(text),
);
pub(super) const ARTIFACT_TYPE: Format =
    Format::new("crownlabs-artifact-type", "a type of artifact such as IMAGE, in upper case", |text| {
        !text.is_empty()
            && text.len() <= 64
            && text
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
    });

/// The formats of these keys.
pub(super) const FORMATS: [&Format; 4] = [&REGISTRY_URL, &REGISTRY_NAME, &PROJECT, &ARTIFACT_TYPE];

keys! {
    /// The image list loop.
    pub struct ImageListConfig {
        /// Whether this loop runs; if so, `registries` has at least one entry; if not, it watches nothing and needs no
        /// RBAC permissions.
        pub enabled: bool,
        /// The number of image lists that are reconciled at the same time, from 1 to 256; it does not limit the number
        /// of registries that are read.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 4,
        /// The time from one query of a registry to the next, give or take a tenth, from `5s` to `1d`; a query that
        /// fails is repeated after 30 s, later after longer, but after this time at the latest.
        pub update_interval: ConfigDuration = ConfigDuration::from_secs(300),
        /// The registries, each with the `ImageList` that is made of it; lists that are taken out stay as they are.
        pub registries: Vec<RegistryConfig>,
    }
}

/// A registry, and the `ImageList` that is made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegistryConfig {
    /// The name of the `ImageList`.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub image_list_name: String,
    /// The API of the registry: `docker`, that of the OCI distribution specification, or `harbor`.
    #[serde(default, rename = "type")]
    pub type_: RegistryType,
    /// The URL at which the daemon reaches the registry; with `https`, its certificate is checked.
    #[schemars(extend("format" = REGISTRY_URL.name))]
    pub url: String,
    /// The registry as it stands in names of images, which the `ImageList` has as `registryName`.
    #[schemars(extend("format" = REGISTRY_NAME.name))]
    pub registry_name: String,
    /// The project whose repositories are listed, by their names without it; required for `harbor`, and with `docker` the
    /// first part of their names; empty for all.
    #[serde(default)]
    #[schemars(extend("format" = PROJECT.name))]
    pub project: String,
    /// The user who logs in; empty for nobody, or if `usernameFile` names a file.
    #[serde(default)]
    pub username: String,
    /// The file with the user who logs in, which is read again for each query.
    #[serde(default)]
    pub username_file: String,
    /// The file with the password of this user, which is read again for each query.
    #[serde(default)]
    pub password_file: String,
    /// The URL of the server that issues tokens, if that is another one than the registry, such as
    /// `https://auth.example.com/token`; it alone gets the password beside the registry.
    #[serde(default)]
    #[schemars(extend("format" = formats::SERVER_URL.name))]
    pub token_url: String,
    /// The file with the certificates of the authorities to trust, in PEM, which is read again when it
    /// changes; empty for those of the operating system.
    #[serde(default)]
    pub ca_file: String,
    /// The types of artifacts that are listed, with `harbor` only: the API `docker` does not tell them.
    #[serde(default = "images")]
    #[schemars(extend("items" = {"type": "string", "format": ARTIFACT_TYPE.name}))]
    pub artifact_types: Vec<String>,
}

/// The API of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RegistryType {
    /// That of the OCI distribution specification, which began as Docker's.
    #[default]
    Docker,
    /// Harbor's, version 2.0.
    Harbor,
}

pub(super) fn images() -> Vec<String> {
    vec![IMAGE.to_owned()]
}

impl RegistryConfig {
    /// Whether somebody logs in.
    pub fn has_credentials(&self) -> bool {
        !self.password_file.is_empty()
    }
}
