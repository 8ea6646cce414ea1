//! The initial state of the scenes.

use http::Method;
use serde_json::{Value, json};

use crate::documents::all;
use crate::lab::{PATIENCE, wait_until};
use crate::scenes::Play;
use crate::site::{NAMESPACE, RELEASE, Site, helm};
use crate::stage::Stage;
use crate::{outcomes, people};
use cluster::keycloak::KeycloakServer;

/// The Deployments of the Go operators.
pub const OPERATORS: [&str; 3] = ["operator", "instance-operator", "instance-operator-automation"];

/// Installs the chart and the samples if they are missing, and waits until they are ready.
pub fn install(site: &Site) {
    if site.run(helm(), &["status", RELEASE, "-n", NAMESPACE]).is_err() {
        // The webhooks outlive the release of another play. They have URLs here, which Helm would keep in addition to
        // the Service.
        let webhooks = ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"];
        let webhooks = webhooks.map(|kind| format!("{kind}/crownlabs-webhook"));
        site.lab.kubectl(&["delete", &webhooks[0], &webhooks[1], "--ignore-not-found"]);
        install_chart(site, &[]);
    }
    site.await_daemon();
    let samples = crate::documents::project().join("manifests/samples").display().to_string();
    // Kubernetes starts to count Instances only half a minute after their CRDs were created.
    wait_until(PATIENCE * 2, || site.lab.try_kubectl(&["apply", "-f", &samples], ""));
    outcomes::await_samples(site);
}

fn install_chart(site: &Site, more: &[&str]) {
    let chart = ["install", RELEASE, "manifests/chart", "-n", NAMESPACE, "--create-namespace"];
    let chart = [&chart[..], &["--set", "networkPolicy.podNetworks={10.244.0.0/16}"], more].concat();
    site.run(helm(), &chart).unwrap_or_else(|error| panic!("helm install: {error}"));
}

/// Creates a namespace.
pub fn namespace(site: &Site, name: &str) {
    site.lab.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"));
}

/// Applies the CrownLabs objects in the document of a play, after their namespaces.
pub fn apply_shown(site: &Site, play: &Play) {
    let document = &play.blocks[0].document;
    for block in all().iter().filter(|block| block.document == *document && block.language == "yaml") {
        let object: Value = serde_saphyr::from_str(&block.text).unwrap_or_default();
        let version = object["apiVersion"].as_str().unwrap_or_default();
        if !version.starts_with("crownlabs.polito.it/") {
            continue;
        }
        if let Some(name) = object["metadata"]["namespace"].as_str() {
            namespace(site, name);
        }
        site.lab.apply(&block.text);
    }
}

/// Creates a Tenant that is being deleted.
pub fn leave(site: &Site) {
    site.lab.apply(
        "{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: ada.rossi, finalizers: [example.org/test]},
spec: {firstName: Ada, lastName: Rossi, email: ada.rossi@example.org}}",
    );
    site.lab.begin_delete("tenants", "", &["ada.rossi"]);
}

/// Installs the parts of the Go operators' chart that matter to the daemon, and creates users who work with it.
pub fn operators(site: &Site, stage: &Stage<'_>) {
    let chart = ["install", "crownlabs", "tests/commands/go-operators", "-n", "labs", "--create-namespace"];
    site.run(helm(), &chart).unwrap_or_else(|error| panic!("helm install: {error}"));
    people::arrive(&site.lab, &crownlabs::testing::clock::now().to_string());
    people::assert_rights(&site.lab);
    let values = include_str!("operators-values.yaml");
    std::fs::write(stage.work.join("operators-values.yaml"), values).expect("written");
    std::fs::copy(site.lab.admin(), stage.work.join("admin.kubeconfig")).expect("copied");
}

/// The state after the migration from the Go operators, where the migration back may have ended.
pub fn moved(site: &Site) {
    for name in OPERATORS {
        site.lab.patch("deployments", "labs", name, r#"{"spec": {"replicas": 0}}"#);
    }
    // As `from-values` writes it.
    let keys = ["managers=cluster", "instancesClusterRole=crownlabs-manage-instances"];
    let [managers, role] = keys.map(|key| format!("config.controllers.tenant.{key}"));
    install_chart(site, &["--take-ownership", "--set", &managers, "--set", &role]);
    let webhooks = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    site.lab.kubectl(&["delete", webhooks, "crownlabs-operator", "--ignore-not-found"]);
    site.await_daemon();
}

/// Creates the administrator of a server. Returns the password.
pub fn administrator(server: &KeycloakServer) -> &'static str {
    let password = "correct horse";
    let user = json!({"username": "admin", "enabled": true, "credentials": [{"type": "password", "value": password}]});
    let ask = |method, path: &str, body: &Value| {
        server.admin(&method, path, body).unwrap_or_else(|error| panic!("{error:#}"))
    };
    ask(Method::POST, "/master/users", &user);
    let user = server.find("/master/users", "username", "admin").expect("the administrator");
    let role = ask(Method::GET, "/master/roles/admin", &Value::Null);
    let roles = format!("/master/users/{}/role-mappings/realm", user["id"].as_str().expect("an identifier"));
    ask(Method::POST, &roles, &json!([role]));
    password
}

/// The beginning of the scene `sentences`: the namespace of a user, the plugin of kubectl, a token, and an SSH key.
pub const SENTENCES: &str = "kubectl config view --raw > kubeconfig
export KUBECONFIG=$PWD/kubeconfig
kubectl config set-context --current --namespace=tenant-ada-rossi
mkdir plugins
ln -s $(command -v crownlabs) plugins/kubectl-crownlabs
PATH=$PWD/plugins:$PATH
TOKEN=$(kubectl create token default)
ssh-keygen -q -t ed25519 -N '' -f key";

/// The commands of docs/keycloak.md before the blocks of the scene `realm`, and a user.
pub const REALM: &str = "kcadm=/opt/keycloak/bin/kcadm.sh
realm=another
$kcadm config credentials --server https://auth.example.com --realm master --user admin
$kcadm create realms -s realm=$realm -s enabled=true
$kcadm create clients -r $realm -s clientId=client-api-server -s publicClient=false -s directAccessGrantsEnabled=false
$kcadm create users -r $realm -s username=ada.rossi -s enabled=true";
