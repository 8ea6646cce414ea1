//! The keys of the file that do not belong to one loop. The doc comment of a key is its comment in the
//! default file and its description in the schema, so it is one sentence for administrators.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::automation::{ExpirationConfig, InactivityConfig};
use super::bastion::BastionConfig;
use super::duration::ConfigDuration;
use super::exam_agent::ExamAgentConfig;
use super::exposure::PublicExposureConfig;
use super::formats;
use super::image_list::ImageListConfig;
use super::instance::InstanceConfig;
use super::instance_metrics::InstanceMetricsConfig;
use super::integrations::Integrations;
use super::log::Log;
use super::loops::for_each_loop;
use super::pod_config::PodConfigConfig;
use super::pod_config_node::PodConfigNodeConfig;
use super::shared_volume::SharedVolumeConfig;
use super::snapshot::SnapshotConfig;
use super::ssh_tracker::SshTrackerConfig;
use super::submission::SubmissionConfig;
use super::tenant::{TenantConfig, WorkspaceConfig};
use super::termination::TerminationConfig;
use super::web_ssh::WebSshConfig;
use super::webhook::WebhookConfig;

/// The configuration of the control loops of a CrownLabs cluster. Only `apiVersion` and `kind` are
/// required; any other key that is left out has the value that `crownlabs config default` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "CrownLabs controller manager", extend("required" = ["apiVersion", "kind"]))]
pub struct Config {
    /// The version of the format of this file.
    pub api_version: ApiVersion,
    /// The kind of configuration that this file contains.
    pub kind: Kind,
    /// The labels of the namespaces, Tenants and Workspaces that the daemon manages; it ignores all others.
    #[schemars(extend(
        "minProperties" = 1,
        "propertyNames" = {"format": formats::LABEL_KEY.name},
        "additionalProperties" = {"type": "string", "format": formats::LABEL_VALUE.name},
    ))]
    pub selector: BTreeMap<String, String>,
    /// The periodic reconciliation of objects that do not change, which repairs what no watch reports.
    pub resync: Resync,
    /// The leader election, by which only one of several replicas writes to the cluster.
    pub leader_election: LeaderElection,
    /// The addresses on which the daemon serves metrics, probes, webhooks and events.
    pub server: Server,
    /// The log, which is written to standard error.
    pub log: Log,
    /// The control loops, one key for each.
    pub controllers: Controllers,
    /// The external services that the loops use, one key for each.
    pub integrations: Integrations,
}

/// The version of the format of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first version.
    #[default]
    #[serde(rename = "config.crownlabs.polito.it/v1alpha1")]
    V1alpha1,
}

/// The kind of configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// The configuration of the daemon that runs the control loops.
    #[default]
    ControllerManagerConfiguration,
}

/// The periodic reconciliation: each object is reconciled again after a random time between the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resync {
    /// The shortest time between two reconciliations of an object that does not change, at least `1m`.
    pub min: ConfigDuration,
    /// The longest time between two reconciliations of an object that does not change.
    pub max: ConfigDuration,
}

/// The leader election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElection {
    /// Whether the loops only run while the replica holds the Lease; if false, run a single replica.
    pub enabled: bool,
    /// The namespace of the Lease.
    #[schemars(extend("format" = formats::DNS_LABEL.name))]
    pub namespace: String,
    /// The name of the Lease; daemons that run different loops need different names.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub name: String,
    /// The time after the last renewal at which another replica takes over, in whole seconds.
    pub lease_duration: ConfigDuration,
    /// The time after the last renewal at which the leader exits; it must be below `leaseDuration`.
    pub renew_deadline: ConfigDuration,
    /// The time between two renewals or attempts; 1.2 times this time must be below `renewDeadline`.
    pub retry_period: ConfigDuration,
}

/// The servers of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Server {
    /// The address and port of `/metrics`; empty to turn it off.
    pub metrics: ListenAddress,
    /// The address and port of the probes `/healthz` and `/readyz`; empty to turn them off.
    pub health: ListenAddress,
    /// The admission webhooks, which the API server calls before it stores a Tenant or an Instance.
    pub webhook: WebhookConfig,
    /// The endpoint for Keycloak's events about accounts. It is served if the tenant loop is enabled, also
    /// where another program manages the accounts.
    pub keycloak_events: KeycloakEvents,
}

/// The endpoint `/tenant-webhook` for events of Keycloak's extension `ext-event-webhook`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KeycloakEvents {
    /// The address and port of `/tenant-webhook`; empty to turn it off.
    pub listen: ListenAddress,
    /// The file with the secret that events are signed with; empty to accept events without a signature.
    pub secret_file: String,
}

macro_rules! controllers {
    ($(#[doc = $description:literal] $key:ident: $config:ident => $place:ident $loop:ident;)*) => {
        /// The control loops.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Controllers {
            $(#[doc = $description] pub $key: $config,)*
        }
    };
}
for_each_loop!(controllers);

/// The address on which a server listens, written as `ADDRESS:PORT`; empty if the server is turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub Option<SocketAddr>);

impl ListenAddress {
    /// The address; `None` if the server is turned off.
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
