//! Tenants and Workspaces with a real Keycloak: accounts, roles, mail, and a Keycloak that fails.

use std::path::PathBuf;

use http::Method;
use serde_json::{Value, json};

use super::realm::Realm;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::{tenant, workspace};
use cluster::keycloak::{OPERATOR, ROLES_CLIENT};
use cluster::proxy::{Fault, everything, matching};

/// The daemon's configuration with a realm.
pub fn config(realm: &Realm) -> String {
    format!("controllers: {{tenant: {{verificationPoll: 10s}}}}\n{}", integration(realm))
}

/// The configuration of the realm only.
pub fn integration(realm: &Realm) -> String {
    let secret: PathBuf = realm.secret_file();
    format!(
        "integrations: {{keycloak: {{enabled: true, url: \"{}\", realm: {}, clientId: {OPERATOR}, \
         rolesClientId: {ROLES_CLIENT}, clientSecretFile: \"{}\"}}}}\n",
        realm.proxy.url(),
        realm.name,
        secret.display(),
    )
}

/// The account with a user name, if there is one.
pub fn user(realm: &Realm, name: &str) -> Option<Value> {
    let found = realm.admin(&Method::GET, &format!("/users?username={name}&exact=true"), &Value::Null);
    found.as_array().and_then(|users| users.first().cloned())
}

/// The names of the roles that a user has, sorted.
fn roles_of(realm: &Realm, name: &str) -> Vec<String> {
    let client = realm.id_of("/clients", "clientId", ROLES_CLIENT);
    let Some(user) = user(realm, name) else { return Vec::new() };
    let path =
        format!("/users/{}/role-mappings/clients/{client}", user["id"].as_str().expect("an identifier"));
    names(&realm.admin(&Method::GET, &path, &Value::Null))
}

/// The names of all roles, sorted.
pub fn roles(realm: &Realm) -> Vec<String> {
    let client = realm.id_of("/clients", "clientId", ROLES_CLIENT);
    names(&realm.admin(&Method::GET, &format!("/clients/{client}/roles"), &Value::Null))
}

/// The names of the roles of Workspaces in a list, sorted.
fn names(list: &Value) -> Vec<String> {
    let name = |role: &Value| role["name"].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<String> = list.as_array().into_iter().flatten().map(name).collect();
    names.retain(|name| name.starts_with("workspace-"));
    names.sort();
    names
}

/// Confirms the e-mail address of an account, as its owner would.
fn verify(realm: &Realm, name: &str) {
    let id = user(realm, name).expect("there")["id"].as_str().expect("an identifier").to_owned();
    realm.admin(
        &Method::PUT,
        &format!("/users/{id}"),
        &json!({"emailVerified": true, "requiredActions": []}),
    );
}

/// Waits until `now` returns the wanted value.
pub fn eventually<T: PartialEq + std::fmt::Debug>(what: &str, wanted: &T, mut now: impl FnMut() -> T) {
    wait_until(PATIENCE, || {
        let now = now();
        (now == *wanted).then_some(()).ok_or_else(|| format!("{what}: {wanted:?}, is {now:?}"))
    });
}

/// Merge-patches a cluster-scoped object.
fn patch(lab: &Lab, kind: &str, name: &str, patch: &Value) {
    lab.patch(kind, "", name, &patch.to_string());
}

#[test]
fn accounts_and_roles_follow_tenants_and_workspaces() {
    let realm = Realm::new("tenants-roles");
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let config = config(&realm);
    let options = Options { kubeconfig: &kubeconfig, selector: "kc", config: &config };
    let daemon = Daemon::start(&options);
    roles_of_workspaces(&lab, &realm);
    mail_is_sent_again(&lab, &realm);
    account_is_confirmed(&lab, &realm);
    drop(daemon);
    let daemon = nothing_is_written_after_a_restart(&lab, &realm, &options);
    changes_are_followed(&lab, &realm);
    deletions_are_followed(&lab, &realm);
    let log = daemon.log();
    for secret in [super::realm::SECRET, "Bearer", "kc.ada@example.org"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

/// Each Workspace has two roles.
fn roles_of_workspaces(lab: &Lab, realm: &Realm) {
    lab.apply(&workspace("kc", "kc-a", ""));
    lab.apply(&workspace("kc", "kc-b", "").replace("prettyName: kc-b", "prettyName: Tea"));
    let status = lab.await_ready("workspaces", "kc-a")["status"].clone();
    assert_eq!(status["subscription"]["keycloak"], "Ok");
    lab.await_ready("workspaces", "kc-b");
    assert_eq!(
        roles(realm),
        ["workspace-kc-a:manager", "workspace-kc-a:user", "workspace-kc-b:manager", "workspace-kc-b:user"]
    );
}

/// The mail server rejects the mail at first; the daemon sends it again until it is accepted, then no more.
fn mail_is_sent_again(lab: &Lab, realm: &Realm) {
    let mail = realm.server.mail();
    mail.refuse("kc.ada@example.org");
    lab.apply(&tenant(
        "kc",
        "kc.ada",
        ", workspaces: [{name: kc-a, role: user}, {name: kc-b, role: manager}]",
    ));
    let message = lab.await_condition("tenants", "kc.ada", "Reconciled", "KeycloakMailNotSent");
    assert!(message.contains("check the e-mail settings of the realm"), "{message}");
    mail.accept("kc.ada@example.org");
    lab.await_condition("tenants", "kc.ada", "Ready", "AwaitingVerification");
    assert_eq!(mail.mails_to("kc.ada@example.org").len(), 1);
}

/// The account has its roles; the namespace is created when the e-mail address is confirmed.
fn account_is_confirmed(lab: &Lab, realm: &Realm) {
    eventually("roles", &vec!["workspace-kc-a:user".to_owned(), "workspace-kc-b:manager".to_owned()], || {
        roles_of(realm, "kc.ada")
    });
    let account = user(realm, "kc.ada").expect("made");
    assert_eq!((account["firstName"].as_str(), account["enabled"].as_bool()), (Some("Ada"), Some(true)));
    assert!(
        lab.get("namespaces", "default", "tenant-kc-ada").is_none(),
        "nothing before the address is confirmed"
    );
    verify(realm, "kc.ada");
    lab.await_condition("tenants", "kc.ada", "Ready", "Ready");
    let status = lab.await_ready("tenants", "kc.ada")["status"].clone();
    assert_eq!(status["keycloak"]["userConfirmed"], true);
    assert_eq!(status["keycloak"]["userCreated"]["name"], account["id"]);
}

/// Restarts the daemon. It reconciles every object and writes nothing in Keycloak or about the Tenant.
fn nothing_is_written_after_a_restart(lab: &Lab, realm: &Realm, options: &Options<'_>) -> Daemon {
    let (before, position) = (realm.writes().len(), lab.cluster.audit().mark().expect("the audit log"));
    let daemon = Daemon::start(options);
    daemon.wait_for("requests about the account", |_| {
        realm.proxy.request_log().iter().filter(|request| request.path.contains("/role-mappings/")).count()
            > 3
    });
    // It has one Tenant.
    daemon.wait_for("the end of the reconcile", |daemon| daemon.reconciles("tenant") > 0);
    let (asked, reconciles) = (realm.proxy.request_log().len(), daemon.reconciles("tenant"));
    lab.kubectl(&["annotate", "tenant", "kc.ada", "reconcile=again"]);
    daemon.wait_for("another reconcile", |daemon| {
        daemon.reconciles("tenant") > reconciles && realm.proxy.request_log().len() > asked
    });
    assert_eq!(realm.writes()[before..], Vec::<String>::new()[..]);
    let entries = lab.cluster.audit().since(position).expect("the audit log");
    let ours = |entry: &&cluster::audit::AuditEntry| {
        entry.is_write() && entry.name == "kc.ada" && entry.user_agent.starts_with("crownlabs/")
    };
    assert_eq!(entries.iter().filter(ours).count(), 0);
    daemon
}

/// Changes of names, enrolment and descriptions are written to Keycloak.
fn changes_are_followed(lab: &Lab, realm: &Realm) {
    patch(
        lab,
        "tenant",
        "kc.ada",
        &json!({"spec": {"lastName": "D'Angiò", "workspaces": [{"name": "kc-a", "role": "manager"}]}}),
    );
    eventually("the name", &json!("D'Angiò"), || {
        user(realm, "kc.ada").unwrap_or_default()["lastName"].clone()
    });
    eventually("roles", &vec!["workspace-kc-a:manager".to_owned()], || roles_of(realm, "kc.ada"));
    patch(lab, "workspace", "kc-b", &json!({"spec": {"prettyName": "Coffee"}}));
    let client = realm.id_of("/clients", "clientId", ROLES_CLIENT);
    eventually("the description", &json!("Coffee User Role"), || {
        realm.admin(&Method::GET, &format!("/clients/{client}/roles/workspace-kc-b:user"), &Value::Null)["description"].clone()
    });
}

/// Roles and accounts are deleted with their Workspace and their Tenant.
fn deletions_are_followed(lab: &Lab, realm: &Realm) {
    lab.delete("workspace", "", &["kc-a"]);
    assert_eq!(roles(realm), ["workspace-kc-b:manager", "workspace-kc-b:user"]);
    eventually("roles", &Vec::<String>::new(), || roles_of(realm, "kc.ada"));
    // One account is deleted in Keycloak before its Tenant; the deletion of the Tenant does not wait for it.
    let id = user(realm, "kc.ada").expect("there")["id"].as_str().expect("an identifier").to_owned();
    lab.apply(&tenant("kc", "kc.bob", ""));
    eventually("another account", &true, || user(realm, "kc.bob").is_some());
    realm.admin(&Method::DELETE, &format!("/users/{id}"), &Value::Null);
    lab.delete("tenant", "", &["kc.ada", "kc.bob"]);
    assert_eq!((user(realm, "kc.ada"), user(realm, "kc.bob")), (None, None));
    lab.delete("workspace", "", &["kc-b"]);
    assert_eq!(roles(realm), Vec::<String>::new());
}

#[test]
fn an_account_that_exists_already_is_taken_over() {
    let realm = Realm::new("tenants-takeover");
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let id = realm.user(&json!({
        "username": "kc.old", "email": "old@example.org", "firstName": "Former", "enabled": true, "emailVerified": true,
    }));
    let config = config(&realm);
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "kcold", config: &config });
    lab.apply(&tenant("kcold", "kc.old", "").replace("kc.old@", "old@"));
    let status = lab.await_ready("tenants", "kc.old")["status"].clone();
    assert_eq!(status["keycloak"]["userCreated"]["name"], id);
    assert_eq!(user(&realm, "kc.old").expect("there")["firstName"], "Ada");
    lab.delete("tenant", "", &["kc.old"]);
    assert_eq!(user(&realm, "kc.old"), None);
}

#[test]
fn an_event_of_keycloak_is_handled_at_once() {
    let realm = Realm::new("tenants-events");
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let port = crate::daemon::reserved_port();
    // Without the event, the daemon would query Keycloak again after an hour.
    let config = config(&realm).replace("verificationPoll: 10s", "verificationPoll: 1h")
        + &format!("keycloakEvents: {{listen: \"127.0.0.1:{port}\"}}\n");
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "kcev", config: &config });
    lab.apply(&tenant("kcev", "kcev", ""));
    lab.await_condition("tenants", "kcev", "Ready", "AwaitingVerification");
    verify(&realm, "kcev");
    let event =
        json!({"type": "access.CUSTOM_REQUIRED_ACTION", "authDetails": {"username": "kcev"}}).to_string();
    assert_eq!(crate::daemon::post(port, "/tenant-webhook", "no event").0, 400);
    assert_eq!(crate::daemon::post(port, "/other", &event).0, 404);
    assert_eq!(crate::daemon::post(port, "/tenant-webhook", &event).0, 200);
    lab.await_condition("tenants", "kcev", "Ready", "Ready");
    lab.delete("tenant", "", &["kcev"]);
}

#[test]
fn an_outage_delays_only_the_steps_that_need_keycloak() {
    let realm = Realm::new("tenants-outage");
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let config = config(&realm);
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "kcout", config: &config });
    lab.apply(&workspace("kcout", "kco-a", ""));
    lab.apply(&tenant("kcout", "kco.ada", ", workspaces: [{name: kco-a, role: user}]"));
    eventually("the account", &true, || user(&realm, "kco.ada").is_some());
    verify(&realm, "kco.ada");
    lab.await_condition("tenants", "kco.ada", "Ready", "Ready");
    realm.proxy.set(Fault::Break { matching: everything() });
    // A confirmed Tenant keeps its namespace and gets the new quota; a new Tenant waits. The conditions say why.
    lab.apply(&workspace("kcout", "kco-b", ""));
    patch(
        &lab,
        "tenant",
        "kco.ada",
        &json!({"spec": {"workspaces": [{"name": "kco-a", "role": "user"}, {"name": "kco-b", "role": "user"}]}}),
    );
    lab.apply(&tenant("kcout", "kco.new", ""));
    let message = lab.await_condition("tenants", "kco.ada", "Reconciled", "KeycloakUnreachable");
    assert!(message.contains("Keycloak cannot be reached at http://127.0.0.1:"), "{message}");
    lab.await_value(
        "resourcequotas",
        "tenant-kco-ada",
        "crownlabs-resource-quota",
        "/spec/hard/limits.cpu",
        "4",
    );
    lab.await_condition("tenants", "kco.new", "Reconciled", "KeycloakUnreachable");
    lab.await_condition("workspaces", "kco-b", "Reconciled", "KeycloakUnreachable");
    lab.await_value(
        "rolebindings",
        "workspace-kco-b",
        "crownlabs-view-templates",
        "/roleRef/name",
        "crownlabs-view-templates",
    );
    // A Tenant that is deleted during the outage stays until its account is deleted.
    lab.begin_delete("tenant", "", &["kco.ada"]);
    lab.await_gone("namespaces", "default", "tenant-kco-ada");
    assert!(lab.get("tenants", "default", "kco.ada").is_some());
    assert!(daemon.metrics().lines().any(|line| {
        line.starts_with("tenant_operator_internal_errors_total{controller=\"tenant\",reason=\"keycloak\"}")
    }));
    realm.proxy.set(Fault::None);
    // The next retry may be minutes away by now; a change makes the daemon retry at once. An object to be deleted may
    // be gone.
    let _ = lab.try_kubectl(&["annotate", "tenant/kco.ada", "look=again"], "");
    for object in ["tenant/kco.new", "workspace/kco-b"] {
        lab.kubectl(&["annotate", object, "look=again"]);
    }
    lab.await_gone("tenants", "default", "kco.ada");
    assert_eq!(user(&realm, "kco.ada"), None);
    lab.await_ready("workspaces", "kco-b");
    lab.await_condition("tenants", "kco.new", "Ready", "AwaitingVerification");
    lab.delete("tenant", "", &["kco.new"]);
    lab.delete("workspace", "", &["kco-a", "kco-b"]);
    assert_eq!(roles(&realm), Vec::<String>::new());
}

#[test]
fn a_missing_role_of_managers_does_not_block_the_role_of_users() {
    let realm = Realm::new("tenants-managers");
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let config = config(&realm);
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "kcman", config: &config });
    let of_managers = matching(|_, path| path.contains("/roles/") && path.ends_with("manager"));
    realm.proxy.set(Fault::Status { code: 500, retry_after: None, matching: of_managers });
    lab.apply(&workspace("kcman", "kcm-a", ""));
    lab.await_condition("workspaces", "kcm-a", "Reconciled", "KeycloakUnavailable");
    assert_eq!(roles(&realm), ["workspace-kcm-a:user"]);
    lab.apply(&tenant("kcman", "kcm.ada", ", workspaces: [{name: kcm-a, role: user}]"));
    eventually("the role", &vec!["workspace-kcm-a:user".to_owned()], || roles_of(&realm, "kcm.ada"));
    realm.proxy.set(Fault::None);
    lab.kubectl(&["annotate", "workspace", "kcm-a", "look=again"]);
    lab.await_ready("workspaces", "kcm-a");
    lab.delete("tenant", "", &["kcm.ada"]);
    lab.delete("workspace", "", &["kcm-a"]);
}

#[test]
fn everything_is_deleted_whichever_call_fails() {
    let realm = Realm::new("tenants-faults");
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let config = config(&realm);
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "kcfault", config: &config });
    // Each round has its own names, since the deletion of a namespace takes a while.
    let begin = |n: usize| {
        let (course, person) = (format!("kcf-{n}"), format!("kcf.ada{n}"));
        lab.apply(&workspace("kcfault", &course, ""));
        let enrolment = format!(", workspaces: [{{name: {course}, role: user}}]");
        lab.apply(&tenant("kcfault", &person, &enrolment));
        eventually("roles", &vec![format!("workspace-{course}:user")], || roles_of(&realm, &person));
        lab.await_ready("tenants", &person);
        lab.await_ready("workspaces", &course);
    };
    let end = |n: usize| {
        let (course, person) = (format!("kcf-{n}"), format!("kcf.ada{n}"));
        lab.begin_delete("workspace", "", &[&course]);
        lab.begin_delete("tenant", "", &[&person]);
        lab.await_gone("workspaces", "default", &course);
        lab.await_gone("tenants", "default", &person);
        assert_eq!((user(&realm, &person), roles(&realm)), (None, Vec::new()));
        for binding in [
            format!("crownlabs-manage-instances-{course}"),
            format!("crownlabs-manage-tenants-{course}"),
            format!("crownlabs-manage-tenant-{}", person.replace('.', "-")),
        ] {
            assert!(lab.get("clusterrolebindings", "default", &binding).is_none(), "{binding}");
        }
    };
    let asked = realm.proxy.request_log().len();
    begin(0);
    end(0);
    let calls = realm.proxy.request_log().len() - asked;
    assert!(calls >= 12, "only {calls} calls");
    // Every call fails once: alternately with an error, and with a lost answer after it was carried out.
    for n in 1..=calls {
        let once = cluster::proxy::nth(n - 1);
        realm.proxy.set(if n % 2 == 0 {
            Fault::Status { code: 503, retry_after: None, matching: once }
        } else {
            Fault::LoseAnswer { matching: once }
        });
        begin(n);
        end(n);
    }
    for n in 0..=calls {
        lab.await_gone("namespaces", "default", &format!("tenant-kcf-ada{n}"));
        lab.await_gone("namespaces", "default", &format!("workspace-kcf-{n}"));
    }
    realm.proxy.set(Fault::None);
    println!("{calls} calls failed");
}
