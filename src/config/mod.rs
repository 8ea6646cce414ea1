//! The configuration file: types, defaults, validation and JSON Schema.
//!
//! Everything is generated from the types: their doc comments are the comments of the default file and the
//! descriptions of the JSON Schema, `config/crownlabs.schema.json`. The binary contains the schema, and not the code that
//! generates it. A file is read in four steps, whose faults are reported together:
//!
//! - [`tree`] parses the YAML text into a tree that has the line of each key;
//! - [`check`] compares the tree with the schema: unknown keys, types, ranges, formats of text;
//! - valid parts are decoded into [`Config`];
//! - [`rules`] checks the [`bound`] of each key, and constraints between several keys.

#[cfg(test)]
#[macro_use]
mod patterns;

mod appearance;
mod automation;
mod bastion;
mod bound;
mod check;
mod config_map;
mod dashboard;
mod document;
mod duration;
mod exam_agent;
mod exposure;
mod fault;
pub mod file;
mod formats;
#[cfg(test)]
mod generated;
mod image_list;
mod instance;
mod instance_metrics;
mod integrations;
mod keys;
mod language;
mod listen_address;
mod log;
mod login;
pub mod loops;
mod mail;
mod network;
mod pod_config;
mod pod_config_node;
pub mod pool;
mod prometheus;
mod query_template;
mod reader;
mod route_policy;
mod rules;
mod runtime_endpoint;
mod schema;
mod shared_volume;
mod snapshot;
mod ssh_tracker;
mod storage;
mod submission;
mod suggest;
mod switches;
mod template;
mod tenant;
mod termination;
pub mod tree;
mod types;
mod warnings;
mod web_ssh;
mod webhook;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use appearance::AppearanceConfig;
pub use automation::{ExpirationConfig, InactivityConfig};
pub use bastion::BastionConfig;
pub use dashboard::{DashboardConfig, Identity};
pub use document::default_document;
pub use duration::ConfigDuration;
pub use exam_agent::ExamAgentConfig;
pub use exposure::PublicExposureConfig;
pub use fault::{ConfigError, Fault};
pub use image_list::{ImageListConfig, RegistryConfig, RegistryType};
pub use instance::{Access, AccessMode, ExamAccess, InstanceConfig, Layout, LocalVm, Urls, VmLogin, VmPower};
pub use instance_metrics::InstanceMetricsConfig;
pub use integrations::KeycloakConfig;
pub use language::Language;
pub use log::{Log, LogFormat};
pub use login::LoginConfig;
pub use mail::{MailConfig, MailTls, MailTransport, Mailbox, Undeliverable, parse_ehlo_name, split_mailbox};
pub use network::Network;
pub use pod_config_node::PodConfigNodeConfig;
pub use prometheus::{PrometheusConfig, Signal};
pub use query_template::{QueryTemplate, quoted};
pub use reader::Reader;
pub(crate) use reader::read;
pub use route_policy::{Placeholders, PolicyNames};
pub use runtime_endpoint::runtime_socket;
pub use schema::{SCHEMA, schema};
pub use shared_volume::SharedVolumeConfig;
pub use snapshot::{Pusher, SnapshotConfig};
pub use ssh_tracker::SshTrackerConfig;
pub use storage::{PvcMirrorConfig, Storage, StorageMode};
pub use submission::SubmissionConfig;
pub use suggest::nearest;
pub use switches::SwitchedOff;

pub use tenant::{COUNT, CountQuotas, Managers, OnTenantDeletion, QuotaCaps, TenantConfig};
pub use termination::TerminationConfig;
pub use types::{Config, Controllers, LeaderElection};
pub use web_ssh::WebSshConfig;
pub use webhook::WebhookConfig;

#[cfg(test)]
pub use instance::{ContainerImages, DaemonLogin, ExamEgress, GatewayApi, OAuth2Proxy, ParentRef};
#[cfg(test)]
pub use listen_address::ListenAddress;
#[cfg(test)]
pub use prometheus::PrometheusQueries;
#[cfg(test)]
pub use query_template::Subject;
#[cfg(test)]
pub use rules::compared_with;

impl Config {
    /// Reads and validates a file.
    ///
    /// # Errors
    /// If the file cannot be read, or with all of its faults.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(&path.display().to_string(), &read(path)?)
    }

    /// Reads and validates a file that is a configuration, or the manifest of a `ConfigMap` that contains one.
    ///
    /// # Errors
    /// If the file cannot be read, or with all faults of the configuration, with their lines in the file.
    pub fn load_any(path: &Path) -> Result<Self, ConfigError> {
        Self::parse_any(&path.display().to_string(), &read(path)?)
    }

    /// Validates a text as [`Config::load_any`] does.
    fn parse_any(file_name: &str, text: &str) -> Result<Self, ConfigError> {
        match config_map::embedded(file_name, text) {
            None => Self::parse(file_name, text),
            Some(Err(fault)) => Err(ConfigError::Faults(vec![fault])),
            Some(Ok(embedded)) => Self::parse(file_name, &embedded.text).map_err(|error| match error {
                ConfigError::Faults(faults) => {
                    ConfigError::Faults(faults.into_iter().map(|fault| embedded.placed(fault)).collect())
                }
                unreadable @ ConfigError::Unreadable { .. } => unreadable,
            }),
        }
    }

    /// Validates the text of a file; faults contain `file_name` as the name of the file.
    ///
    /// # Errors
    /// With all faults of the text, in the order of their lines.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, ConfigError> {
        let checked = match tree::read(text) {
            Ok(tree) => check::check(file_name, &tree, &schema()),
            Err(error) => return Err(ConfigError::Faults(vec![error.into_fault(file_name)])),
        };
        let mut faults = checked.faults;
        match serde_json::from_value::<Self>(checked.value) {
            Ok(config) => {
                let broken = rules::broken(&config, file_name, &checked.lines, &checked.doubtful);
                faults.extend(broken);
                if faults.is_empty() {
                    return Ok(config);
                }
            }
            // The schema allows a value that the types reject: only the decoder's message explains it.
            Err(error) if faults.is_empty() => {
                faults.push(Fault::new(file_name, None, "", error.to_string(), ""));
            }
            Err(_) => {}
        }
        faults.sort_by_key(|fault| fault.line);
        Err(ConfigError::Faults(faults))
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    file::read_text(path).map_err(|problem| ConfigError::Unreadable { path: path.to_owned(), problem })
}
