//! Instances: running copies of a template.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{AGE, Column, CustomResource};
use super::environment::Environment;
use super::object::{Kind, Object};
use super::reference::GenericRef;
use super::template::Selector;
use super::wire::{self, wire_enum};

/// The kind of [`Instance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceKind;

/// A copy of a template that belongs to a user.
pub type Instance = Object<InstanceKind>;

impl Kind for InstanceKind {
    const GROUP: &'static str = super::GROUP;
    const VERSION: &'static str = "v1alpha2";
    const KIND: &'static str = "Instance";
    const PLURAL: &'static str = "instances";
    const NAMESPACED: bool = true;
    type Spec = InstanceSpec;
    type Status = InstanceStatus;
}

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
        AGE,
    ];
    const DESCRIPTION: &'static str = "A copy of a template that belongs to a user.";
}

wire_enum!(
    /// How far an instance, or one of its environments, is.
    InstancePhase, default "", {
        /// Nothing is known yet.
        Unset = "",
        /// The disk is being filled.
        Importing = "Importing",
        /// It is starting.
        Starting = "Starting",
        /// The user's quota is used up.
        ResourceQuotaExceeded = "ResourceQuotaExceeded",
        /// It runs, but does not answer yet.
        Running = "Running",
        /// It answers.
        Ready = "Ready",
        /// It is stopping.
        Stopping = "Stopping",
        /// It is stopped.
        Off = "Off",
        /// It cannot run.
        Failed = "Failed",
        /// Its objects cannot be created.
        CreationLoopBackoff = "CreationLoopBackoff",
    }
);

wire_enum!(
    /// How far the exposure on a public address is.
    ExposurePhase, default "", {
        /// Nothing is known yet.
        Unset = "",
        /// The address is awaited.
        Provisioning = "Provisioning",
        /// The ports can be reached.
        Ready = "Ready",
        /// The ports cannot be exposed.
        Error = "Error",
    }
);

wire_enum!(
    /// The protocol of a port.
    Protocol, default "TCP", {
        /// TCP.
        Tcp = "TCP",
        /// UDP.
        Udp = "UDP",
        /// SCTP.
        Sctp = "SCTP",
    }
);

// The default is that of an instance without spec, stopped and made from no template; in a spec that
// is present, `running` is true unless it says otherwise (01 §6 item 1).
/// What an instance is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InstanceSpec {
    /// The template that it is made from.
    #[serde(rename = "template.crownlabs.polito.it/TemplateRef")]
    pub template_ref: GenericRef,
    /// The tenant that it belongs to; only the name counts.
    #[serde(rename = "tenant.crownlabs.polito.it/TenantRef")]
    pub tenant_ref: GenericRef,
    /// Whether it runs. A persistent environment keeps its disk while it is stopped.
    #[serde(default = "wire::on")]
    pub running: bool,
    /// The name that users see; made up if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub pretty_name: String,
    /// The labels of the nodes that it runs on, where the template leaves the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub node_selector: Option<Selector>,
    /// The ports to expose on a public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub public_exposure: Option<PublicExposure>,
    /// The URLs of the instance's automation.
    /// Deprecated: statusCheckUrl and contentUrls, where set, count instead.
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default)]
    pub customization_urls: CustomizationUrls,
    /// The URL that is asked whether the instance is still needed: any 2xx answer keeps it, 404
    /// and 410 end it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub status_check_url: String,
    /// For each environment, by name, where its content comes from and goes to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub content_urls: BTreeMap<String, ContentUrls>,
}

/// Which member counts where several say the same thing (01 §4.2).
impl InstanceSpec {
    /// The URL that is asked whether the instance is still needed; empty for none.
    #[must_use]
    pub fn effective_status_check_url(&self) -> &str {
        first_set(&[&self.status_check_url, &self.customization_urls.status_check])
    }

    /// Where the content of an environment comes from; empty for nowhere. `first` tells whether it
    /// is the first one of the template.
    #[must_use]
    pub fn content_origin<'a>(&'a self, environment: &'a Environment, first: bool) -> &'a str {
        let own = self.content_urls.get(&environment.name).map_or("", |urls| &urls.origin);
        let older = if first { self.customization_urls.content_origin.as_str() } else { "" };
        let template = environment.container_startup_options.as_ref();
        first_set(&[own, older, template.map_or("", |options| &options.source_archive_url)])
    }

    /// Where the content of an environment goes to; empty for nowhere. `first` tells whether it is
    /// the first one of the template.
    #[must_use]
    pub fn content_destination(&self, environment: &str, first: bool) -> &str {
        let own = self.content_urls.get(environment).map_or("", |urls| &urls.destination);
        let older = if first { self.customization_urls.content_destination.as_str() } else { "" };
        first_set(&[own, older])
    }

    /// The node selector of an environment's pods, where `template` is what the template says (see
    /// `TemplateSpec::node_selector_of`): none if it says nothing, the instance's own if it says
    /// nothing in particular, else the template's.
    #[must_use]
    pub fn placement<'a>(&'a self, template: Option<&'a Selector>) -> Option<&'a Selector> {
        let template = template?;
        if template.is_empty() { self.node_selector.as_ref() } else { Some(template) }
    }
}

/// The first that is not empty, else an empty text.
fn first_set<'a>(texts: &[&'a str]) -> &'a str {
    texts.iter().find(|text| !text.is_empty()).copied().unwrap_or_default()
}

/// What is exposed on a public address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct PublicExposure {
    /// The ports to expose; none if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub ports: Vec<ExposedPort>,
}

/// A port that is exposed on a public address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ExposedPort {
    /// Its name, unique in the list.
    #[schemars(extend("pattern" = "^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$"))]
    pub name: String,
    /// The public port; 0 for any that is free.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 0, max = 65535), extend("default" = 0))]
    pub port: i32,
    /// The port of the instance.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 1, max = 65535))]
    pub target_port: i32,
    /// The protocol.
    #[schemars(default)]
    pub protocol: Protocol,
}

/// The URLs of an instance's automation, for its first environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct CustomizationUrls {
    /// Where the content comes from, an archive; counts instead of the template's.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub content_origin: String,
    /// Where the content is sent at the end, as an archive.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub content_destination: String,
    /// The URL that is asked whether the instance is still needed.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub status_check: String,
}

/// Where the content of an environment comes from and goes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ContentUrls {
    /// Where the content comes from, an archive; counts instead of the template's.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub origin: String,
    /// Where the content is sent at the end, as an archive.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub destination: String,
}

/// How an instance is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InstanceStatus {
    /// How far it is: that of its environment, or a summary if there are several.
    #[serde(skip_serializing_if = "InstancePhase::is_empty")]
    #[schemars(default)]
    pub phase: InstancePhase,
    /// Where its desktop or application can be reached.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub url: String,
    /// The address inside the cluster of its first environment.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub ip: String,
    /// How long its first environment took to become ready for the first time.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub initial_ready_time: String,
    /// When its automation last acted.
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default)]
    pub automation: Automation,
    /// The node that it runs on.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub node_name: String,
    /// The node selector that it runs with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub node_selector: BTreeMap<String, String>,
    /// The exposure on a public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub public_exposure: Option<PublicExposureStatus>,
    /// How each environment is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub environments: Vec<EnvironmentStatus>,
    /// The state of the instance in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

/// When the automation of an instance last acted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Automation {
    /// When the status check was last asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "wire::date_time")]
    pub last_check_time: Option<Time>,
    /// When the instance ended, or is expected to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "wire::date_time")]
    pub termination_time: Option<Time>,
    /// When the content was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "wire::date_time")]
    pub submission_time: Option<Time>,
}

/// The exposure of an instance on a public address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct PublicExposureStatus {
    /// The public address.
    #[serde(rename = "externalIP", skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub external_ip: String,
    /// The ports, with the public port that was assigned to each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub ports: Vec<ExposedPort>,
    /// How far the exposure is.
    #[serde(skip_serializing_if = "ExposurePhase::is_empty")]
    #[schemars(default)]
    pub phase: ExposurePhase,
    /// The state of the exposure in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub message: String,
}

/// How an environment of an instance is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct EnvironmentStatus {
    /// The name of the environment.
    pub name: String,
    /// How far it is.
    #[serde(skip_serializing_if = "InstancePhase::is_empty")]
    #[schemars(default)]
    pub phase: InstancePhase,
    /// Whether its route was accepted by the gateway.
    #[serde(skip_serializing_if = "wire::is_off")]
    #[schemars(default)]
    pub exposition_accepted: bool,
    /// Where its desktop or application can be reached.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub url: String,
    /// The address inside the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub ip: String,
    /// How long it took to become ready for the first time.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub initial_ready_time: String,
    /// When its automation last acted.
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default)]
    pub automation: Automation,
}
