//! The bastion: real SSH servers and clients in network namespaces, with the files that the daemon writes.

mod files;
mod login;
mod network;
mod secrets;
mod ssh;

use std::path::Path;

use crate::lab::Lab;
use cluster::config::only;

/// A Tenant with these public keys.
fn tenant(name: &str, keys: &[String]) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: {name}}}
spec: {{firstName: Ada, lastName: Rossi, email: {name}@example.org, publicKeys: {}}}
",
        serde_json::to_string(keys).expect("JSON")
    )
}

/// Replaces the public keys of a Tenant.
fn set_keys(lab: &Lab, name: &str, keys: &[&str]) {
    let patch = serde_json::json!({"spec": {"publicKeys": keys}});
    lab.patch("tenants", "default", name, &patch.to_string());
}

/// The configuration of a daemon with only the loop of the bastion.
fn only_bastion(keys_file: &Path, more: &str) -> String {
    only(&[("bastion", &format!("authorizedKeysFile: {}, {more}", keys_file.display()))])
}
