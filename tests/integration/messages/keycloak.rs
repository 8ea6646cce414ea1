//! The secret of Keycloak: one warning and a readiness line, however many objects wait for it.

use std::fs;

use super::server::answering;
use super::{await_line, logged};
use crate::daemon::{Daemon, Options};
use crate::lab::Lab;
use crate::tenants::{tenant, workspace};
use cluster::config::only;

#[test]
fn a_missing_empty_or_wrong_secret_is_one_warning_and_one_readiness_line() {
    let (lab, name) = (Lab::shared(), "kcsecret");
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    let wrong = r#"{"error": "unauthorized_client", "error_description": "Invalid client or Invalid client credentials"}"#;
    let port = answering("401 Unauthorized", wrong);
    let url = format!("http://127.0.0.1:{port}");
    let config = format!(
        "{}integrations: {{keycloak: {{enabled: true, url: \"{url}\", realm: labs, clientId: operator, \
         clientSecretFile: \"{}\"}}}}\n",
        only(&[("tenant", ""), ("workspace", "")]),
        secret.display()
    );
    let tenants: Vec<String> = (0..6).map(|number| format!("{name}-{number}")).collect();
    for tenant_name in &tenants {
        lab.apply(&tenant(name, tenant_name, ""));
    }
    let course = format!("{name}-course");
    lab.apply(&workspace(name, &course, ""));
    let kubeconfig = lab.service_account();
    let daemon = Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    let line = format!("[!] Keycloak {url}: failing for ");
    let file = format!("integrations.keycloak.clientSecretFile: {} cannot be used: ", secret.display());
    await_line(&daemon, &[&line, &file, "it does not exist; create it, or correct the path"]);
    // The loops work.
    daemon.await_ready();
    for tenant_name in &tenants {
        lab.await_condition("tenants", tenant_name, "Reconciled", "KeycloakSecretUnreadable");
    }
    lab.await_condition("workspaces", &course, "Reconciled", "KeycloakSecretUnreadable");
    fs::write(&secret, "\n").expect("written");
    await_line(&daemon, &[&line, &file, "it is empty; write the value into it"]);
    let utf16: Vec<u8> = "s3cret".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(&secret, utf16).expect("written");
    await_line(&daemon, &[&line, &file, "it is encoded in UTF-16; save the file as UTF-8"]);
    fs::write(&secret, "s3cret").expect("written");
    let account = "Keycloak does not accept the client operator: unauthorized_client";
    await_line(&daemon, &[&line, account, "the content of integrations.keycloak.clientSecretFile"]);

    let log = daemon.log();
    assert_eq!(logged(&daemon, "WARN", "requests to this Keycloak fail"), 1, "{log}");
    assert_eq!(logged(&daemon, "WARN", "clientSecretFile"), 1, "{log}");
    assert_eq!(logged(&daemon, "ERROR", "eycloak"), 0, "{log}");
    assert_eq!(logged(&daemon, "the reconcile failed", "eycloak"), 0, "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    drop(daemon);
    for tenant_name in &tenants {
        release(&lab, "tenants", tenant_name);
    }
    release(&lab, "workspaces", &course);
}

/// Deletes an object without the account and the roles that it would have in Keycloak.
fn release(lab: &Lab, kind: &str, name: &str) {
    lab.patch(kind, "", name, r#"{"metadata": {"finalizers": null}}"#);
    lab.delete(kind, "", &[name]);
}
