//! Accounts in Keycloak, and the quota of a course.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::automation::Automation;
use crate::dashboard::{self, Dashboard};
use crate::parts::{Parts, is_wanted};
use crate::{PATIENCE, interrupted_already, now, run};
use cluster::Cluster;
use cluster::keycloak::{KeycloakServer, OPERATOR, ROLES_CLIENT};

/// Writes the daemon's configuration: `config/demo.yaml`, which has `server` and ends with `controllers`,
/// with the realm and the other parts that are on. Returns the path of the file.
pub const REALM: &str = "crownlabs";
/// The secret of the daemon's client.
const SECRET: &str = "demo";

/// A Workspace that allows two Instances, and a Tenant that is enrolled in it.
const SMALL: &str = "apiVersion: crownlabs.polito.it/v1alpha1
kind: Workspace
metadata: {name: tiny, labels: {crownlabs.polito.it/operator-selector: production}}
spec: {prettyName: A course with two machines each, quota: {cpu: 4, memory: 8Gi, instances: 2}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: bob.bianchi, labels: {crownlabs.polito.it/operator-selector: production}}
spec: {firstName: Bob, lastName: Bianchi, email: bob.bianchi@example.org, workspaces: [{name: tiny, role: user}]}
";

/// Starts a Keycloak with a realm if the variable `KEYCLOAK` or `DASHBOARD` is set: users of the dashboard log
/// in there.
pub fn keycloak() -> Result<Option<KeycloakServer>> {
    if is_wanted("KEYCLOAK") || is_wanted("DASHBOARD") {
        println!("starting Keycloak …");
        let server = KeycloakServer::start()?;
        server.create_realm(REALM, SECRET, &["manage-users", "manage-clients"])?;
        return Ok(Some(server));
    }
    Ok(None)
}

/// Writes the daemon's configuration: `config/demo.yaml`, which has `server` and ends with `controllers`, with the realm and the
/// other parts if there are any. Returns the path of the file.
pub fn config(folder: &Path, demo: &Path, parts: &Parts) -> Result<std::path::PathBuf> {
    let (keycloak, automation) = (parts.keycloak.as_ref(), parts.automation.as_ref());
    let mut text = fs::read_to_string(demo)?;
    if parts.dashboard.is_some() {
        text = text.replacen("server:\n", &["server:\n", &Dashboard::server()].concat(), 1);
        text = text.replace("labs.example.org", dashboard::MACHINES);
    }
    text.push_str(&parts.controllers());
    if keycloak.is_some() || automation.is_some() {
        text.push_str("integrations:\n");
    }
    text.push_str(&automation.map_or_else(String::new, Automation::integrations));
    if let Some(server) = keycloak {
        let secret = folder.join("keycloak-secret");
        fs::write(&secret, SECRET)?;
        let _ = writeln!(
            text,
            "  keycloak: {{enabled: true, url: \"{}\", realm: {REALM}, clientId: {OPERATOR}, \
             rolesClientId: {ROLES_CLIENT}, clientSecretFile: \"{}\"}}",
            server.url(),
            secret.display()
        );
    }
    let file = folder.join("crownlabs.yaml");
    fs::write(&file, text)?;
    Ok(file)
}

/// Confirms the e-mail address of a Tenant's account, if there is a Keycloak, and logs the Tenant in.
pub fn log_in(cluster: &Cluster, keycloak: Option<&KeycloakServer>, tenant: &str) -> Result<()> {
    if let Some(server) = keycloak {
        let account = wait(&format!("an account for {tenant}"), || {
            let found = server.admin(&Method::GET, &users(tenant), &Value::Null)?;
            Ok(found.as_array().and_then(|users| users.first().cloned()))
        })?;
        let id = account["id"].as_str().context("an identifier")?;
        wait(&format!("a mail to {tenant}"), || {
            let mails = server.mail().mails_to(&format!("{tenant}@example.org"));
            Ok((!mails.is_empty()).then_some(()))
        })?;
        println!("{tenant} has an account {id} and a mail; the address is confirmed now");
        let confirmed = json!({"emailVerified": true, "requiredActions": []});
        server.admin(&Method::PUT, &format!("/{REALM}/users/{id}"), &confirmed)?;
    }
    println!("{tenant} logs in");
    let login = json!({"spec": {"lastLogin": now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}}).to_string();
    run(cluster, &["patch", "tenant", tenant, "--type=merge", "-p", &login])?;
    wait(&format!("a namespace for {tenant}"), || {
        let name = field(cluster, &["tenant", tenant], "{.status.personalNamespace.name}")?;
        Ok((!name.is_empty()).then_some(()))
    })
}

/// Tries to create three Instances where two are allowed; then the Tenant leaves the Workspace.
pub fn quota(cluster: &Cluster, keycloak: Option<&KeycloakServer>) -> Result<()> {
    println!("\nbob.bianchi enrols in a course that gives two machines\n");
    cluster.apply(SMALL)?;
    log_in(cluster, keycloak, "bob.bianchi")?;
    let hard = "{.status.hard.count/instances\\.crownlabs\\.polito\\.it}";
    wait("his quota", || {
        let allowed =
            field(cluster, &["resourcequota", "-n", "tenant-bob-bianchi", "crownlabs-resource-quota"], hard);
        Ok(allowed.is_ok_and(|allowed| allowed == "2").then_some(()))
    })?;
    for name in ["first", "second", "third"] {
        let machine = format!(
            "{{apiVersion: crownlabs.polito.it/v1alpha2, kind: Instance, metadata: {{name: {name}, namespace: \
             tenant-bob-bianchi}}, spec: {{template.crownlabs.polito.it/TemplateRef: {{name: notebook, namespace: \
             workspace-netlab}}, tenant.crownlabs.polito.it/TenantRef: {{name: bob.bianchi}}}}}}"
        );
        match (name, cluster.apply(&machine)) {
            ("third", Ok(())) => anyhow::bail!("the third machine should be refused"),
            ("third", Err(refusal)) => {
                println!("  third: refused: {}", refusal.root_cause().to_string().trim());
            }
            (_, result) => {
                result?;
                println!("  {name}: accepted");
            }
        }
    }
    if let Some(server) = keycloak {
        println!("  their roles in Keycloak: {}", roles(server, "bob.bianchi")?.join(", "));
    }
    println!("\nand leaves it\n");
    let none = r#"{"spec": {"workspaces": []}}"#;
    run(cluster, &["patch", "tenant", "bob.bianchi", "--type=merge", "-p", none])?;
    wait("an empty quota", || {
        Ok((field(cluster, &["tenant", "bob.bianchi"], "{.status.quota.instances}")? == "0").then_some(()))
    })?;
    println!("  the quota is 0 machines; running machines stay");
    if let Some(server) = keycloak {
        wait("no roles", || Ok(roles(server, "bob.bianchi")?.is_empty().then_some(())))?;
        println!("  they have no roles in Keycloak any more");
    }
    Ok(())
}

/// The path under which the admin API finds a user by name.
pub fn users(name: &str) -> String {
    format!("/{REALM}/users?username={name}&exact=true")
}

/// The names of a user's roles of the client that holds the roles of Workspaces.
fn roles(server: &KeycloakServer, name: &str) -> Result<Vec<String>> {
    let client = server.find(&format!("/{REALM}/clients"), "clientId", ROLES_CLIENT)?;
    let user = server.find(&format!("/{REALM}/users"), "username", name)?;
    let (client, user) = (client["id"].as_str().context("a client")?, user["id"].as_str().context("a user")?);
    let mapped = server.admin(
        &Method::GET,
        &format!("/{REALM}/users/{user}/role-mappings/clients/{client}"),
        &Value::Null,
    )?;
    let name = |role: &Value| role["name"].as_str().map(str::to_owned);
    Ok(mapped.as_array().into_iter().flatten().filter_map(name).collect())
}

/// A field of an object, by its JSON path; empty if it does not exist.
fn field(cluster: &Cluster, object: &[&str], path: &str) -> Result<String> {
    let output =
        cluster.kubectl().arg("get").args(object).args(["-o", &format!("jsonpath={path}")]).output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Retries until there is a result. Fails after [`PATIENCE`] or Ctrl-C.
pub fn wait<T>(what: &str, mut probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begin = Instant::now();
    loop {
        anyhow::ensure!(!interrupted_already(), "interrupted");
        if let Some(found) = probe()? {
            return Ok(found);
        }
        anyhow::ensure!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(250));
    }
}
