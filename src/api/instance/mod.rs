//! Instances: the lab machines of users, each made from a Template.

mod effective;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON};
use super::object::kind;
use super::promise::Promise;
use super::reference::GenericRef;
use super::template::Selector;
use super::wire::{self, wire_enum};

kind!(
    /// An Instance as it is stored in the API server.
    InstanceKind, Instance, super::GROUP, "v1alpha2", "Instance", "instances", namespaced: true,
    InstanceSpec, InstanceStatus
);

impl CustomResource for InstanceKind {
    const SHORT_NAMES: &'static [&'static str] = &["inst"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Pretty Name", ".spec.prettyName"),
        Column::text("Running", ".spec.running"),
        Column::text("Phase", ".status.phase"),
        Column {
            name: "Exposition Accepted",
            type_: "boolean",
            json_path: ".status.environments[0].expositionAccepted",
            priority: 10,
        },
        Column::wide("URL", ".status.url"),
        Column::wide("IP Address", ".status.ip"),
        Column::text("Ready In", ".status.initialReadyTime"),
        REASON,
        MESSAGE,
        AGE,
    ];
    const DESCRIPTION: &'static str = "A lab machine of a user: the virtual machines and \
        containers that a template describes, started for one tenant.";
}

wire_enum!(
    /// The phase of an Instance, or of one of its environments.
    InstancePhase, default "", {
        /// The state is not known yet.
        Unset = "",
        /// The disk of a virtual machine is being imported.
        Importing = "Importing",
        /// The workload is starting, or waits for something that it needs.
        Starting = "Starting",
        /// The quota of the namespace does not allow the workload; it is retried automatically.
        ResourceQuotaExceeded = "ResourceQuotaExceeded",
        /// The virtual machine runs, and its readiness probe does not succeed yet.
        Running = "Running",
        /// The readiness probe succeeds: the environment can be used.
        Ready = "Ready",
        /// The workload is shutting down.
        Stopping = "Stopping",
        /// The workload is stopped.
        Off = "Off",
        /// The workload has failed; the condition `Ready` says why.
        Failed = "Failed",
        /// An object cannot be created; the condition `Reconciled` says why.
        CreationLoopBackoff = "CreationLoopBackoff",
    }
);

wire_enum!(
    /// The phase of a public exposure.
    ExposurePhase, default "", {
        /// The state is not known yet.
        Unset = "",
        /// The load balancer has not assigned the address yet.
        Provisioning = "Provisioning",
        /// The ports are exposed.
        Ready = "Ready",
        /// The request cannot be fulfilled; the message says why.
        Error = "Error",
    }
);

wire_enum!(
    /// The transport protocol of a port.
    Protocol, default "TCP", {
        /// Transmission Control Protocol.
        Tcp = "TCP",
        /// User Datagram Protocol.
        Udp = "UDP",
        /// Stream Control Transmission Protocol: accepted by the schema, refused by the exposure loop.
        Sctp = "SCTP",
    }
);

// `Default` describes an Instance without a spec: stopped, with empty references. In a spec that is
// present, an absent `running` means true, as the schema says.
/// Desired state of the instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InstanceSpec {
    /// Template that the instance is made from: its name and its namespace, for example
    /// `{name: desktop, namespace: workspace-netlab}`. Required.
    #[serde(rename = "template.crownlabs.polito.it/TemplateRef")]
    pub template_ref: GenericRef,
    /// Tenant that the instance belongs to, for example `{name: ada.rossi}`. Required. Only the name is
    /// used; a namespace is accepted and ignored.
    #[serde(rename = "tenant.crownlabs.polito.it/TenantRef")]
    pub tenant_ref: GenericRef,
    /// Whether the instance should run. Defaults to true. Setting it to false removes the URL and the
    /// cluster address, and shuts persistent environments down; their disks are kept.
    #[serde(default = "wire::on")]
    pub running: bool,
    /// Name shown to users, for example `Exercise 3`. If it is empty, the controller writes two random
    /// words, such as `Swift Otter`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub pretty_name: String,
    /// Labels of the nodes that the instance may run on, for example `{disk: fast}`. Only used where the
    /// node selector of the template is present and empty; otherwise the template decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub node_selector: Option<Selector>,
    /// Ports of the instance to expose on a public IP address. Default: none. The template must allow it
    /// (`spec.allowPublicExposure`) and have exactly one environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub public_exposure: Option<PublicExposure>,
    /// Deprecated: use `statusCheckUrl` and `contentUrls`, which take precedence where they are set. URLs for
    /// the automation of the first environment. Default: none.
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default)]
    pub customization_urls: CustomizationUrls,
    /// URL that is queried periodically to find out whether the instance is still needed: a 2xx answer
    /// keeps it, 404 and 410 terminate it, any other answer is retried. Default: empty, no check.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub status_check_url: String,
    /// URLs of the archives with the content of each environment; the keys are names of environments, for
    /// example `{desktop: {origin: "https://files.example.org/start.zip"}}`, and `default` stands for the first
    /// environment. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub content_urls: BTreeMap<String, ContentUrls>,
}

/// Ports of the instance to expose on a public IP address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct PublicExposure {
    /// Ports to expose. Default: none. All ports of an instance get the same address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub ports: Vec<ExposedPort>,
}

/// A port that is exposed on a public IP address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ExposedPort {
    /// Name of the port, unique in the list: up to 15 lower-case letters, digits and dashes, such as `ssh`.
    #[schemars(extend("pattern" = "^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$"))]
    pub name: String,
    /// Port number on the public address, from 1 to 65535. The default 0 means that a free port is
    /// assigned; `status.publicExposure` has the assigned one.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 0, max = 65535), extend("default" = 0))]
    pub port: i32,
    /// Port number inside the instance, from 1 to 65535, for example 22. Required.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 1, max = 65535))]
    pub target_port: i32,
    /// Transport protocol: `TCP` (default) or `UDP`. `SCTP` is refused by the controller.
    #[schemars(default)]
    pub protocol: Protocol,
}

/// URLs for the automation of the first environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct CustomizationUrls {
    /// URL of an archive to unpack before the container starts. Default: empty, that of the template.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub content_origin: String,
    /// URL to which the content is uploaded when the instance is terminated. Default: empty, no upload.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub content_destination: String,
    /// URL of the status check, as in `statusCheckUrl`. Default: empty, no check.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub status_check: String,
}

/// URLs of the archives with the content of an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ContentUrls {
    /// URL of an archive to unpack before the container starts. Default: empty, that of the template.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub origin: String,
    /// URL to which the content is uploaded when the instance is terminated. Default: empty, no upload.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub destination: String,
}

/// Observed state of the instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InstanceStatus {
    /// Generation of the spec that the status is about: while it is less than `metadata.generation`, a change has not
    /// been looked at yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Phase of the instance: that of its environment, or a summary if there are several. `Importing`: a
    /// disk is being imported. `Starting`: the workload is starting. `ResourceQuotaExceeded`: the quota
    /// does not allow it now, and it is retried. `Running`: it runs and is not ready yet. `Ready`: it can
    /// be used. `Stopping` and `Off`: it is shutting down, or stopped. `Failed`: the workload has failed.
    /// `CreationLoopBackoff`: its objects cannot be created. Empty: not known yet. The conditions have the
    /// reason.
    #[serde(skip_serializing_if = "InstancePhase::is_empty")]
    #[schemars(default)]
    pub phase: InstancePhase,
    /// URL of the desktop or web application; empty while the instance is stopped or has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub url: String,
    /// Cluster IP address of the first environment, for example `10.96.12.7`; empty while it is stopped.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub ip: String,
    /// Time from creation until the first environment was ready for the first time, for example `1m30s`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub initial_ready_time: String,
    /// Times at which the automation of the instance last acted.
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default)]
    pub automation: Automation,
    /// Inactivity: when the instance was last used, and when it is stopped or deleted unless it is used again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub inactivity: Option<Box<Promise>>,
    /// Destruction: when the instance, if it stays stopped, is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub destruction: Option<Box<Promise>>,
    /// Expiration: when the instance is deleted for its age.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub expiration: Option<Box<Promise>>,
    /// Name of the node that the instance runs on; empty while it is stopped.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub node_name: String,
    /// Node selector of the pod that runs the instance; empty while it is stopped.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub node_selector: BTreeMap<String, String>,
    /// State of the public exposure; absent if none is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub public_exposure: Option<PublicExposureStatus>,
    /// State of each environment, by its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub environments: Vec<EnvironmentStatus>,
    /// Conditions of the instance: `Ready`, `Reconciled`, `PublicExposureReady` if ports are exposed, for exams
    /// `StatusChecked` (the last status check) and `Submitted` (the upload of the content), and `Inactive`,
    /// `Abandoned` and `Expiring` where instances are stopped or deleted automatically.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

/// Times at which the automation of an instance last acted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Automation {
    /// Time of the last status check.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "wire::date_time")]
    pub last_check_time: Option<Time>,
    /// Time at which the instance was terminated, or the deadline that the status check announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "wire::date_time")]
    pub termination_time: Option<Time>,
    /// Time at which the content was uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "wire::date_time")]
    pub submission_time: Option<Time>,
    /// Number of attempts to upload the content since the upload was last requested.
    #[serde(skip_serializing_if = "wire::is_default", deserialize_with = "wire::integer")]
    #[schemars(default, range(min = 0))]
    pub submission_attempts: i32,
}

/// Observed state of a public exposure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct PublicExposureStatus {
    /// Public IP address that was assigned to the instance.
    #[serde(rename = "externalIP", skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub external_ip: String,
    /// Exposed ports; `port` is the number that was assigned on the public address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub ports: Vec<ExposedPort>,
    /// Phase of the exposure. `Provisioning`: the load balancer has not assigned the address yet. `Ready`:
    /// the ports are exposed. `Error`: the request cannot be fulfilled. Empty: not known yet.
    #[serde(skip_serializing_if = "ExposurePhase::is_empty")]
    #[schemars(default)]
    pub phase: ExposurePhase,
    /// Explanation of the phase, as a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub message: String,
}

/// Observed state of one environment of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct EnvironmentStatus {
    /// Name of the environment in the template.
    pub name: String,
    /// Phase of the environment, with the values of `status.phase`.
    #[serde(skip_serializing_if = "InstancePhase::is_empty")]
    #[schemars(default)]
    pub phase: InstancePhase,
    /// Whether the Gateway has accepted the `HTTPRoute` of the environment; false if an Ingress is used.
    #[serde(skip_serializing_if = "wire::is_off")]
    #[schemars(default)]
    pub exposition_accepted: bool,
    /// URL of the desktop or web application; empty while the instance is stopped or has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub url: String,
    /// IP address inside the cluster, for example `10.96.12.7`; empty while the instance is stopped.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub ip: String,
    /// Time from creation until this environment was ready for the first time, for example `1m30s`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub initial_ready_time: String,
    /// Times at which the automation of this environment last acted.
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default)]
    pub automation: Automation,
}
