//! The keys of the file that do not belong to a single loop. The doc comment of a key becomes its comment in the
//! default file and its description in the schema, so it is written for administrators.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bound::{Bound, POSITIVE};
use super::integrations::Integrations;
use super::keys::keys;
use super::listen_address::ListenAddress;
use super::loops::for_each_loop;
use super::pod_config::PodConfigConfig;
use super::template::TemplateConfig;
use super::tenant::WorkspaceConfig;
use super::{
    BastionConfig, ConfigDuration, DashboardConfig, ExamAgentConfig, ExpirationConfig, ImageListConfig,
    InactivityConfig, InstanceConfig, InstanceMetricsConfig, Log, LoginConfig, PodConfigNodeConfig,
    PublicExposureConfig, PvcMirrorConfig, SharedVolumeConfig, SnapshotConfig, SshTrackerConfig, Storage,
    SubmissionConfig, TenantConfig, TerminationConfig, WebSshConfig, WebhookConfig, formats,
};
use crate::api::labels::OPERATOR_SELECTOR;

/// The bound of a duration that is written into a Lease.
const WHOLE: Bound = Bound::TimeIf(
    |time| time.get().subsec_nanos() == 0 && !time.get().is_zero(),
    "cannot be written into a Lease",
    "whole seconds, at least 1s",
);

keys! {
    /// The configuration of the control loops of a CrownLabs cluster. Only `apiVersion` and `kind` are required. Any
    /// other omitted key has the value that `crownlabs config default` prints.
    #[schemars(title = "CrownLabs controller manager", extend("required" = ["apiVersion", "kind"]))]
    pub struct Config {
        /// The version of the format of this file.
        pub api_version: ApiVersion,
        /// The kind of configuration that this file contains.
        pub kind: Kind,
        /// The labels of the namespaces, Tenants and Workspaces that the daemon manages; it ignores all others.
        #[schemars(transform = formats::labels, extend("minProperties" = 1))]
        pub selector: BTreeMap<String, String> = BTreeMap::from([(OPERATOR_SELECTOR.to_owned(), "production".to_owned())]),
        /// The periodic reconciliation of objects that do not change, which repairs changes that no watch reports.
        pub resync: Resync,
        /// The leader election: only one of several replicas writes to the cluster.
        pub leader_election: LeaderElection,
        /// The addresses where the daemon serves metrics, probes, webhooks and events.
        pub server: Server,
        /// The log, which is written to standard error.
        pub log: Log,
        /// The control loops, one key for each.
        pub controllers: Controllers,
        /// The external services that the loops use, one key for each.
        pub integrations: Integrations,
        /// How environments reach personal and shared volumes.
        pub storage: Storage,
    }

    /// The periodic reconciliation: each object is reconciled again after a random time between `min` and `max`.
    pub struct Resync {
        /// The shortest time between two reconciliations of an object that does not change, at least `1m`.
        pub min: ConfigDuration where "1m".. = ConfigDuration::from_secs(3_600),
        /// The longest time between two reconciliations of an object that does not change.
        pub max: ConfigDuration = ConfigDuration::from_secs(7_200),
    }

    /// The leader election.
    pub struct LeaderElection {
        /// Whether the loops run only while the replica holds the Lease; if false, run a single replica.
        pub enabled: bool = true,
        /// The namespace of the Lease.
        pub namespace: String as formats::DNS_LABEL = "crownlabs-system".to_owned(),
        /// The name of the Lease; daemons that run different loops need different names.
        pub name: String as formats::OBJECT_NAME = "crownlabs-controller-manager".to_owned(),
        /// How long after the last renewal another replica takes over, in whole seconds.
        pub lease_duration: ConfigDuration where WHOLE = ConfigDuration::from_secs(15),
        /// How long after the last renewal the leader exits; it must be below `leaseDuration`.
        pub renew_deadline: ConfigDuration = ConfigDuration::from_secs(10),
        /// The time between two renewals or attempts; 1.2 times this time must be below `renewDeadline`.
        pub retry_period: ConfigDuration where POSITIVE = ConfigDuration::from_secs(2),
        /// The Leases of other installations, as `namespace/name`, that do not prevent this one from leading although
        /// they manage objects of the same selector. For any other Lease of this kind, this replica waits until that
        /// installation ends.
        pub ignored_leases: Vec<String> as [formats::NAMESPACED_NAME],
    }

    /// The servers of the daemon.
    pub struct Server {
        /// The address and port of `/metrics`; empty to turn it off.
        pub metrics: ListenAddress = ListenAddress::port(8080),
        /// The address and port of `/healthz`, `/readyz` and `/status`; empty to turn them off.
        pub health: ListenAddress = ListenAddress::port(8081),
        /// The admission webhooks, which the API server calls before it stores a CrownLabs object.
        pub webhook: WebhookConfig,
        /// The endpoint for Keycloak's events about accounts. It is served if the tenant loop is enabled, even if
        /// another program manages the accounts.
        pub keycloak_events: KeycloakEvents,
    }

    /// The endpoint `/tenant-webhook` for events of Keycloak's extension `ext-event-webhook`.
    pub struct KeycloakEvents {
        /// The address and port of `/tenant-webhook`; empty to turn it off.
        pub listen: ListenAddress = ListenAddress::port(8082),
        /// The file with the secret that events are signed with; empty to accept events without a signature.
        pub secret_file: String,
    }
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

macro_rules! controllers {
    ($(#[doc = $description:literal] $key:ident: $config:ident => $place:ident $loop:ident;)*) => {
        keys! {
            /// The control loops.
            pub struct Controllers {
                $(#[doc = $description] pub $key: $config,)*
            }
        }
    };
}
for_each_loop!(controllers);
