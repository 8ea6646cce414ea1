//! The settings of the pages.

use crate::api::GenericRef;
use crate::api::quota::Rule;

/// The part of the configuration that the pages need.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The host of the SSH bastion (`sshHost`); empty if it is not configured.
    pub ssh_host: String,
    /// Whether the bastion resolves the names of Services (`sshByName`).
    pub ssh_by_name: bool,
    /// The fingerprint of its host key (`sshFingerprint`); empty if it is not configured.
    pub ssh_fingerprint: String,
    /// The URL of terminals in the browser (`webSshUrl`); empty if it is not configured.
    pub web_ssh: String,
    /// The Template of the machine that opens MyDrive (`driveTemplate`).
    pub drive_template: Option<GenericRef>,
    /// The size of MyDrive, such as `1Gi`; empty if it is not known.
    pub drive_size: String,
    /// The labels of nodes that users can choose from (`nodeLabels`).
    pub node_labels: Vec<String>,
    /// The labels of the Workspaces that the daemon manages (`selector`), as a label selector.
    pub selector: String,
    /// The namespace of the installation (`leaderElection.namespace`).
    pub namespace: String,
    /// The domain of the machines (`instance.websiteBaseUrl`).
    pub machines: String,
    /// The domain and the port of the desktops of peers; empty if peers cannot open desktops.
    pub peer_desktops: String,
    /// The rule of the webhook for starting Instances.
    pub rule: Rule,
    /// Whether the webhook enforces the rule (`server.webhook.instanceQuota`).
    pub is_rule_enforced: bool,
}
