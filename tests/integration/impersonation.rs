//! Constrained impersonation: the dashboard starts if its account has that and nothing more.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, config, reserved_port};
use crate::lab::Lab;

/// The rules that the chart gives the account.
const RULES: &str = include_str!("../../manifests/chart/files/impersonation.yaml");
/// The first version of Kubernetes that enables it by default.
const SINCE: u64 = 36;

/// Gives an account of this name some rights, in all namespaces.
pub fn grant(lab: &Lab, name: &str, rules: &Value) {
    let metadata = json!({"name": name});
    let group = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "crownlabs-system"}],
    });
    lab.apply(&format!("{role}\n---\n{binding}"));
}

/// The kubeconfig of a new account that may list and watch the objects of the dashboard, and has the rights of
/// these rules.
fn account(lab: &Lab, name: &str, rules: &Value) -> PathBuf {
    let metadata = json!({"name": name, "namespace": "crownlabs-system"});
    lab.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}).to_string());
    let mut all = vec![
        json!({
            "apiGroups": ["crownlabs.polito.it"], "resources": ["instances", "sharedvolumes", "templates", "tenants", "workspaces"], "verbs": ["list", "watch"],
        }),
        json!({
            "apiGroups": ["lab.crownlabs.polito.it"], "resources": ["announcements"], "verbs": ["list", "watch"],
        }),
    ];
    all.extend(rules.as_array().expect("rules").iter().cloned());
    grant(lab, name, &json!(all));
    lab.cluster.service_account_kubeconfig("crownlabs-system", name).expect("a token")
}

/// A dashboard whose issuer is never called.
fn dashboard(folder: &TempDir, kubeconfig: &std::path::Path) -> Daemon {
    let file = |name: &str, content: &str| {
        let file = folder.path().join(name);
        fs::write(&file, content).expect("written");
        file.display().to_string()
    };
    let off = ["instance", "workspace", "tenant", "template", "publicExposure", "sharedVolume", "snapshot"];
    let off = off.map(|name| format!("{name}: {{enabled: false}}, ")).concat();
    let more = format!(
        "controllers: {{{off}dashboard: {{enabled: true, identity: impersonate, listen: \"127.0.0.1:{}\", \
         publicUrl: \"https://labs.example.com\", issuerUrl: \"https://auth.example.com/realms/labs\", clientId: dashboard, \
         clientSecretFile: {}, sessionKeyFile: {}}}}}\n",
        reserved_port(),
        file("secret", "secret"),
        file("key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"),
    );
    Daemon::launch(
        &[env!("CARGO_BIN_EXE_crownlabs")],
        &config("impersonation", &more),
        kubeconfig,
        "127.0.0.1".to_owned(),
    )
}

/// The rules of the account.
pub fn rules() -> Value {
    serde_saphyr::from_str::<Value>(RULES).expect("YAML")["rules"].clone()
}

/// Whether the loop serves.
fn serves(daemon: &Daemon) -> bool {
    daemon.page("/readyz/dashboard").0 == 200
}

/// Whether the API server has constrained impersonation on.
pub fn is_known(lab: &Lab) -> bool {
    let version: Value = serde_json::from_str(&lab.kubectl(&["version", "-o", "json"])).expect("JSON");
    let version = version["serverVersion"]["gitVersion"].as_str().expect("a version");
    let minor = version.split('.').nth(1).expect("a minor version");
    minor.parse::<u64>().expect("a number") >= SINCE
}

#[test]
fn an_account_with_the_rules_of_the_chart_impersonates_if_the_api_server_supports_it() {
    let (lab, folder) = (Lab::shared(), TempDir::new().expect("a folder"));
    let daemon = dashboard(&folder, &account(&lab, "impersonates", &rules()));
    if is_known(&lab) {
        daemon.wait_for("it to serve", serves);
    } else {
        daemon.wait_for("why it does not begin", |daemon| {
            daemon.log().contains("does not let the account of the dashboard impersonate users")
                && daemon.log().contains("Kubernetes 1.36")
        });
        assert!(!serves(&daemon));
    }
}

#[test]
fn an_account_without_the_rules_is_reported_and_starts_once_it_has_them() {
    let (lab, folder) = (Lab::shared(), TempDir::new().expect("a folder"));
    let daemon = dashboard(&folder, &account(&lab, "impersonates-not", &json!([])));
    let verb =
        if is_known(&lab) { "cannot impersonate-on:user-info:create" } else { "cannot impersonate resource" };
    daemon.wait_for("why it does not begin", |daemon| {
        let log = daemon.log();
        log.contains("does not let the account of the dashboard impersonate users") && log.contains(verb)
    });
    assert!(!serves(&daemon));
    if is_known(&lab) {
        account(&lab, "impersonates-not", &rules());
        daemon.wait_for("it to serve", serves);
    }
}

#[test]
fn an_account_with_the_plain_verb_is_rejected_even_for_one_user() {
    let (lab, folder) = (Lab::shared(), TempDir::new().expect("a folder"));
    for (name, rule, plural) in [
        ("of-users", json!({"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}), "users"),
        (
            "of-one-group",
            json!({"apiGroups": [""], "resources": ["groups"], "resourceNames": ["x"], "verbs": ["impersonate"]}),
            "groups",
        ),
        (
            "of-accounts",
            json!({"apiGroups": ["*"], "resources": ["serviceaccounts"], "verbs": ["*"]}),
            "serviceaccounts",
        ),
    ] {
        let mut all = rules();
        all.as_array_mut().expect("rules").push(rule);
        let daemon = dashboard(&folder, &account(&lab, name, &all));
        daemon.wait_for("why it does not begin", |daemon| {
            daemon.log().contains(&format!("has the verb impersonate for {plural}"))
        });
        assert!(!serves(&daemon), "{name}");
    }
}
