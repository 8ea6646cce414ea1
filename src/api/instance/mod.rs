//! Instances: the lab machines of users, each made from a Template.

mod effective;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;

use super::condition::Condition;
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON};
use super::object::kind;
use super::promise::Promise;
use super::reference::GenericRef;
use super::template::Selector;
use super::text::Text;
use super::wire::{self, Optional, resource_part, wire_enum};

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
            type_: "boolean",
            ..Column::wide("Exposition Accepted", ".status.environments[0].expositionAccepted")
        },
        Column::wide("URL", ".status.environments[0].url"),
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
    /// The step of the start of an environment.
    StartStep, default "", {
        /// It is not starting, or its disk is being imported.
        Unset = "",
        /// No node is chosen for it yet.
        Scheduling = "Scheduling",
        /// Its node prepares volumes and network.
        Preparing = "Preparing",
        /// Its node downloads the image and creates the container.
        Pulling = "Pulling",
        /// Its program or operating system starts.
        Booting = "Booting",
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
        /// Stream Control Transmission Protocol: accepted by the schema, rejected by the exposure loop.
        Sctp = "SCTP",
    }
);

// `Default` describes an Instance without a spec: it is stopped, and its references are empty. If the spec is present
// but `running` is absent, `running` is true, as in the schema.
/// Desired state of the instance.
#[apply(resource_part)]
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
    pub pretty_name: Optional<String>,
    /// Labels of the nodes that the instance may run on, for example `{disk: fast}`. Only used where the
    /// node selector of the template is present and empty; otherwise the template decides.
    pub node_selector: Option<Selector>,
    /// Ports of the instance to expose on a public IP address. Default: none. The template must allow it
    /// (`spec.allowPublicExposure`) and have exactly one environment.
    pub public_exposure: Option<PublicExposure>,
    /// Deprecated: use `statusCheckUrl` and `contentUrls`, which take precedence where they are set. URLs for
    /// the automation of the first environment. Default: none.
    pub customization_urls: Optional<CustomizationUrls>,
    /// URL that is queried periodically to find out whether the instance is still needed: a 2xx response
    /// keeps it, 404 and 410 terminate it, any other response is retried. Default: empty, no check.
    pub status_check_url: Optional<Text>,
    /// URLs of the archives with the content of each environment; the keys are names of environments, for
    /// example `{desktop: {origin: "https://files.example.org/start.zip"}}`, and `default` stands for the first
    /// environment. Default: none.
    pub content_urls: Optional<BTreeMap<String, ContentUrls>>,
}

/// Ports of the instance to expose on a public IP address.
#[apply(resource_part)]
pub struct PublicExposure {
    /// Ports to expose. Default: none. All ports of an instance get the same address.
    pub ports: Optional<Vec<ExposedPort>>,
}

/// A port that is exposed on a public IP address.
#[apply(resource_part)]
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
    /// Transport protocol: `TCP` (default) or `UDP`. The controller rejects `SCTP`.
    #[schemars(default)]
    pub protocol: Protocol,
}

/// URLs for the automation of the first environment.
#[apply(resource_part)]
pub struct CustomizationUrls {
    /// URL of an archive to unpack before the container starts. Default: empty, the archive of the template.
    pub content_origin: Optional<Text>,
    /// Upload URL for the content when the instance is terminated. Default: empty, no upload.
    pub content_destination: Optional<Text>,
    /// URL of the status check, as in `statusCheckUrl`. Default: empty, no check.
    pub status_check: Optional<Text>,
}

/// URLs of the archives with the content of an environment.
#[apply(resource_part)]
pub struct ContentUrls {
    /// URL of an archive to unpack before the container starts. Default: empty, the archive of the template.
    pub origin: Optional<String>,
    /// Upload URL for the content when the instance is terminated. Default: empty, no upload.
    pub destination: Optional<String>,
}

/// Observed state of the instance.
#[apply(resource_part)]
pub struct InstanceStatus {
    /// Generation of the spec that the status describes. If it is less than `metadata.generation`, the last change
    /// has not been processed yet.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Phase of the instance: the phase of its environment, or a summary if it has several environments. `Importing`:
    /// a disk is being imported. `Starting`: the workload is starting. `ResourceQuotaExceeded`: the quota does not
    /// allow the workload now; it is retried. `Running`: the workload runs but is not ready yet. `Ready`: the
    /// instance can be used. `Stopping`: the workload is shutting down. `Off`: it is stopped. `Failed`: the workload
    /// has failed. `CreationLoopBackoff`: its objects cannot be created. Empty: not known yet. The conditions contain
    /// the reason.
    pub phase: Optional<InstancePhase>,
    /// URL of the desktop or web application; empty while the instance is stopped or has no web interface. Unless the
    /// instance has the classic layout, it is the common prefix of the URLs of the environments: the URL of each
    /// environment adds its name and a slash.
    pub url: Optional<String>,
    /// Cluster IP address of the first environment, for example `10.96.12.7`; empty while it is stopped.
    pub ip: Optional<Text>,
    /// Time from creation until the first environment was ready for the first time, for example `1m30s`.
    pub initial_ready_time: Optional<Text>,
    /// Times of the last actions of the automation of the instance.
    pub automation: Optional<Automation>,
    /// Inactivity: when the instance was last used, and when it will be stopped or deleted unless it is used again.
    pub inactivity: Option<Box<Promise>>,
    /// Destruction: when the instance will be deleted if it stays stopped.
    pub destruction: Option<Box<Promise>>,
    /// Expiration: when the instance will be deleted because of its age.
    pub expiration: Option<Box<Promise>>,
    /// Name of the node that the instance runs on; empty while it is stopped.
    pub node_name: Optional<Text>,
    /// Node selector of the pod that runs the instance; empty while it is stopped.
    pub node_selector: Optional<BTreeMap<String, String>>,
    /// State of the public exposure; absent if none is requested.
    pub public_exposure: Option<Box<PublicExposureStatus>>,
    /// State of each environment, by its name.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub environments: Optional<Vec<EnvironmentStatus>>,
    /// Conditions of the instance: `Ready`, `Reconciled`, `PublicExposureReady` if ports are exposed, for exams
    /// `StatusChecked` (the last status check) and `Submitted` (the upload of the content), and `Inactive`,
    /// `Abandoned` and `Expiring` where instances are stopped or deleted automatically.
    pub conditions: Optional<Vec<Condition>>,
}

/// Times of the last actions of the automation of an instance.
#[apply(resource_part)]
pub struct Automation {
    /// Time of the last status check.
    pub last_check_time: Option<Time>,
    /// Time of the termination of the instance, or the deadline that the status check announced.
    pub termination_time: Option<Time>,
    /// Time of the upload of the content.
    pub submission_time: Option<Time>,
    /// Number of attempts to upload the content since the upload was last requested.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 0))]
    pub submission_attempts: Optional<i32>,
    /// Time of the last attempt to upload the content: the creation time of its job.
    pub submission_attempt_time: Option<Time>,
    /// Receipt of the upload of the content; absent if the uploader leaves none.
    pub submission_receipt: Option<Box<Receipt>>,
}

/// Receipt of an upload: the file that the server has accepted, as the uploader states it.
#[apply(resource_part)]
pub struct Receipt {
    /// Name of the file, for example `exam-1.zip`.
    pub name: String,
    /// Size of the file in bytes.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 0))]
    pub size: i64,
    /// SHA-256 of the file, in 64 hexadecimal digits.
    pub sha256: String,
}

/// Observed state of a public exposure.
#[apply(resource_part)]
pub struct PublicExposureStatus {
    /// Public IP address that was assigned to the instance.
    #[serde(rename = "externalIP")]
    pub external_ip: Optional<String>,
    /// Exposed ports; `port` is the number that was assigned on the public address.
    pub ports: Optional<Vec<ExposedPort>>,
    /// Phase of the exposure. `Provisioning`: the load balancer has not assigned the address yet. `Ready`:
    /// the ports are exposed. `Error`: the request cannot be fulfilled. Empty: not known yet.
    pub phase: Optional<ExposurePhase>,
    /// Explanation of the phase, as a sentence.
    pub message: Optional<String>,
}

/// Observed state of one environment of an instance.
#[apply(resource_part)]
pub struct EnvironmentStatus {
    /// Name of the environment in the template.
    pub name: Text,
    /// Phase of the environment, with the values of `status.phase`.
    pub phase: Optional<InstancePhase>,
    /// Step of the start while the phase is `Starting` or `Running`. `Scheduling`: no node is chosen yet. `Preparing`:
    /// the node prepares volumes and network. `Pulling`: the node downloads the image and creates the container.
    /// `Booting`: the program or operating system starts.
    pub step: Optional<StartStep>,
    /// Whether the Gateway has accepted the `HTTPRoute` of the environment; false if an Ingress is used.
    pub exposition_accepted: Optional<bool>,
    /// URL of the desktop or web application; empty while the instance is stopped or has none.
    pub url: Optional<String>,
    /// IP address inside the cluster, for example `10.96.12.7`; empty while the instance is stopped.
    pub ip: Optional<Text>,
    /// Name of the Service with this address, in the namespace of the instance, for example `lab-desktop`. It is kept
    /// while the instance is stopped.
    pub service: Optional<Text>,
    /// Time from creation until this environment was ready for the first time, for example `1m30s`.
    pub initial_ready_time: Optional<Text>,
    /// Times of the last actions of the automation of this environment.
    pub automation: Optional<Automation>,
}

impl InstanceStatus {
    /// The URL that a browser opens: the URL of the first environment that has one; empty if no environment has one.
    /// A status that the older Go operator wrote only has the URL of the Instance.
    pub fn open_url(&self) -> &str {
        let known = self.environments.iter().find(|environment| !environment.url.is_empty());
        known.map_or(&self.url, |environment| &environment.url)
    }

    /// The receipts of the uploads. An environment of the classic layout has the same receipt as the Instance.
    pub fn receipts(&self) -> Vec<&Receipt> {
        let of_environments = self.environments.iter().map(|environment| &environment.automation);
        let mut receipts: Vec<&Receipt> =
            of_environments.filter_map(|automation| automation.submission_receipt.as_deref()).collect();
        if receipts.is_empty() {
            receipts.extend(self.automation.submission_receipt.as_deref());
        }
        receipts
    }
}
