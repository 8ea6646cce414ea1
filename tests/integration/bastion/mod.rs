//! The bastion: real SSH servers and clients in network namespaces, with the files that the daemon writes.

mod files;
mod login;
mod network;
mod secrets;
mod ssh;

use std::path::Path;

use crate::lab::Lab;

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

/// The configuration of a daemon that runs the loop of the bastion alone, below `controllers`.
fn only_bastion(keys_file: &Path, more: &str) -> String {
    let others = ["workspace", "tenant", "instance", "publicExposure", "sharedVolume", "snapshot"]
        .map(|name| format!("  {name}: {{enabled: false}}\n"))
        .concat();
    format!(
        "controllers:\n{others}  bastion: {{enabled: true, authorizedKeysFile: {}, {more}}}\n",
        keys_file.display()
    )
}
