//! The keys of the file that are not a loop's own. A key's comment here is its comment in the
//! default file and its description in the schema: one sentence for an administrator.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::duration::ConfigDuration;
use super::exposure::PublicExposureConfig;
use super::formats;
use super::instance::InstanceConfig;
use super::integrations::Integrations;
use super::loops::for_each_loop;
use super::shared_volume::SharedVolumeConfig;
use super::snapshot::SnapshotConfig;
use super::tenant::{TenantConfig, WorkspaceConfig};
use super::webhook::WebhookConfig;

/// The configuration of the control loops of a CrownLabs cluster. A key that is left out has the
/// value that `crownlabs config default` prints for it; only `apiVersion` and `kind` must be there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "CrownLabs controller manager", extend("required" = ["apiVersion", "kind"]))]
pub struct Config {
    /// The version of the format of this file.
    pub api_version: ApiVersion,
    /// What this file configures.
    pub kind: Kind,
    /// The labels of the namespaces, Tenants and Workspaces that are ours; others are left alone.
    #[schemars(extend(
        "minProperties" = 1,
        "propertyNames" = {"format": formats::LABEL_KEY.name},
        "additionalProperties" = {"type": "string", "format": formats::LABEL_VALUE.name},
    ))]
    pub selector: BTreeMap<String, String>,
    /// The periodic pass over objects that did not change, which finds what no watch reports.
    pub resync: Resync,
    /// The lease that lets one replica of several write to the cluster.
    pub leader_election: LeaderElection,
    /// Where the process listens.
    pub server: Server,
    /// The log on standard error.
    pub log: Log,
    /// The control loops; each is a key of its own.
    pub controllers: Controllers,
    /// The services outside of the cluster that the loops use; each is a key of its own.
    pub integrations: Integrations,
}

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first.
    #[default]
    #[serde(rename = "config.crownlabs.polito.it/v1alpha1")]
    V1alpha1,
}

/// The kind of configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// That of the daemon which runs the control loops.
    #[default]
    ControllerManagerConfiguration,
}

/// The periodic pass: each object is looked at again after a random time between the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resync {
    /// The shortest time between two passes over an object, at least `1m`.
    pub min: ConfigDuration,
    /// The longest time between two passes over an object.
    pub max: ConfigDuration,
}

/// The election of the replica that writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElection {
    /// Whether the loops wait for the lease; without it, run one replica only.
    pub enabled: bool,
    /// The namespace of the Lease.
    #[schemars(extend("format" = formats::DNS_LABEL.name))]
    pub namespace: String,
    /// The name of the Lease; two daemons with other loops need two names.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub name: String,
    /// How long after the last renewal a standby takes over, in whole seconds.
    pub lease_duration: ConfigDuration,
    /// How long after the last renewal the leader gives up and ends; below `leaseDuration`.
    pub renew_deadline: ConfigDuration,
    /// The time between two renewals or attempts; 1.2 times it is below `renewDeadline`.
    pub retry_period: ConfigDuration,
}

/// The servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Server {
    /// The address and port of `/metrics`; empty for none.
    pub metrics: ListenAddress,
    /// The address and port of the probes `/healthz` and `/readyz`; empty for none.
    pub health: ListenAddress,
    /// The admission webhooks, which the API server asks before it stores a Tenant or an Instance.
    pub webhook: WebhookConfig,
    /// Where Keycloak's events about accounts arrive; served while Keycloak is enabled.
    pub keycloak_events: KeycloakEvents,
}

/// The endpoint for events of Keycloak's plugin `ext-event-webhook`, at `/tenant-webhook`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KeycloakEvents {
    /// The address and port; empty for none.
    pub listen: ListenAddress,
    /// The file with the secret that events are signed with; empty takes unsigned ones.
    pub secret_file: String,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Log {
    /// The form of a line: `text` for people, `json` for machines.
    pub format: LogFormat,
    /// A level, and others for single modules: `info,crownlabs::runtime=debug`. It may change while
    /// the daemon runs.
    #[schemars(extend("format" = formats::LOG_FILTER.name))]
    pub filter: String,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

macro_rules! controllers {
    ($(#[doc = $description:literal] $key:ident: $config:ident => $reconciler:ident;)*) => {
        /// The control loops.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Controllers {
            $(#[doc = $description] pub $key: $config,)*
        }
    };
}
for_each_loop!(controllers);

/// Where a server listens; written as `ADDRESS:PORT`, or empty for a server that is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub Option<SocketAddr>);

impl ListenAddress {
    /// The address, unless the server is off.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.0
    }
}

impl Serialize for ListenAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(address) => serializer.collect_str(&address),
            None => serializer.serialize_str(""),
        }
    }
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match &*Cow::<str>::deserialize(deserializer)? {
            "" => Ok(Self(None)),
            text => text.parse().map(|address| Self(Some(address))).map_err(de::Error::custom),
        }
    }
}

impl JsonSchema for ListenAddress {
    fn schema_name() -> Cow<'static, str> {
        "ListenAddress".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": formats::LISTEN_ADDRESS.name})
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            api_version: ApiVersion::default(),
            kind: Kind::default(),
            selector: BTreeMap::from([(
                "crownlabs.polito.it/operator-selector".to_owned(),
                "production".to_owned(),
            )]),
            resync: Resync::default(),
            leader_election: LeaderElection::default(),
            server: Server::default(),
            log: Log::default(),
            controllers: Controllers::default(),
            integrations: Integrations::default(),
        }
    }
}

impl Default for Resync {
    fn default() -> Self {
        Self { min: ConfigDuration::from_secs(3_600), max: ConfigDuration::from_secs(7_200) }
    }
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            enabled: true,
            namespace: "crownlabs-system".to_owned(),
            name: "crownlabs-controller-manager".to_owned(),
            lease_duration: ConfigDuration::from_secs(15),
            renew_deadline: ConfigDuration::from_secs(10),
            retry_period: ConfigDuration::from_secs(2),
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            metrics: ListenAddress(Some(([0, 0, 0, 0], 8080).into())),
            health: ListenAddress(Some(([0, 0, 0, 0], 8081).into())),
            webhook: WebhookConfig::default(),
            keycloak_events: KeycloakEvents::default(),
        }
    }
}

impl Default for KeycloakEvents {
    fn default() -> Self {
        Self { listen: ListenAddress(Some(([0, 0, 0, 0], 8082).into())), secret_file: String::new() }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::default(), filter: "info".to_owned() }
    }
}
