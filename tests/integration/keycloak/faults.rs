//! Tokens, secrets, and a Keycloak that fails.

use std::fs;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use super::realm::{Realm, SECRET, ensure, wanted};
use crate::lab::PATIENCE;
use cluster::keycloak::OPERATOR;
use cluster::proxy::{Fault, everything, matching, requests_of};

#[tokio::test]
async fn a_token_that_was_revoked_is_replaced() {
    let realm = Realm::new("revoked");
    assert_eq!(realm.keycloak.find_user("ada").await, Ok(None));
    assert_eq!(realm.tokens(), 1);
    // If the realm has other keys, tokens signed with the former keys are invalid.
    let key = json!({
        "name": "newer", "providerId": "ecdsa-generated", "providerType": "org.keycloak.keys.KeyProvider",
        "config": {"priority": ["1000"]},
    });
    let old = realm.id_of("/components?type=org.keycloak.keys.KeyProvider", "name", "ecdsa");
    realm.admin(&Method::POST, "/components", &key);
    realm.admin(&Method::DELETE, &format!("/components/{old}"), &Value::Null);

    assert_eq!(realm.keycloak.find_user("ada").await, Ok(None), "the caller sees no error");
    assert_eq!(realm.tokens(), 2);
    let refused =
        realm.proxy.request_log().iter().filter(|request| request.status.is_some_and(|s| s == 401)).count();
    assert_eq!(refused, 1);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let realm = Realm::new("short");
    // Tokens are renewed 30 s before their end: this is one second more.
    realm.admin(&Method::PUT, "", &json!({"accessTokenLifespan": 31}));
    let begin = std::time::Instant::now();
    while realm.tokens() < 2 {
        assert_eq!(realm.keycloak.find_user("ada").await, Ok(None));
        assert!(begin.elapsed() < PATIENCE, "the token is never renewed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let unanswered = |request: &cluster::proxy::Answered| !request.status.is_some_and(|s| s.is_success());
    assert!(!realm.proxy.request_log().iter().any(unanswered), "no call was refused");
}

#[tokio::test]
async fn a_wrong_secret_is_reported_and_a_rotated_one_is_used_at_once() {
    let realm = Realm::new("secret");
    let keycloak = &realm.keycloak;
    fs::write(realm.secret_file(), "hunter2-wrong").expect("written");
    let error = keycloak.find_user("ada").await.expect_err("the secret is wrong");
    assert_eq!(error.reason(), "KeycloakUnauthorized");
    let text = format!("{error} {error:?}");
    assert!(text.contains("client client-operator") && text.contains("clientSecretFile"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");

    let id = realm.id_of("/clients", "clientId", OPERATOR);
    let rotated = realm.admin(&Method::POST, &format!("/clients/{id}/client-secret"), &Value::Null);
    fs::write(realm.secret_file(), rotated["value"].as_str().expect("a secret")).expect("written");
    assert_eq!(keycloak.find_user("ada").await, Ok(None));
    fs::remove_file(realm.secret_file()).expect("removed");
    assert_eq!(keycloak.find_user("ada").await, Ok(None), "the token is still valid");
    let error = realm.client(|_| ()).find_user("ada").await.expect_err("no secret");
    assert_eq!(error.reason(), "KeycloakSecretUnreadable");
}

#[tokio::test]
async fn a_missing_realm_or_client_is_named() {
    let realm = Realm::new("astray");
    let error = realm.client(|settings| settings.realm = "nowhere".to_owned()).find_user("ada").await;
    let text = error.expect_err("no such realm").to_string();
    assert!(text.starts_with("there is no Keycloak realm \"nowhere\" at http://127.0.0.1:"), "{text}");
    assert!(text.ends_with("check url, realm and compatibilityMode"), "{text}");

    let error = realm.client(|settings| settings.client_id = "nobody".to_owned()).find_user("ada").await;
    assert_eq!(error.expect_err("no such client").reason(), "KeycloakUnauthorized");

    let error = realm.client(|settings| settings.roles_client_id = "none".to_owned()).role("x").await;
    let error = error.expect_err("no such client");
    assert_eq!(error.reason(), "KeycloakNotFound");
    assert!(error.to_string().contains("has no client \"none\""), "{error}");

    // A client without a service account.
    let id = realm.id_of("/clients", "clientId", OPERATOR);
    realm.admin(
        &Method::PUT,
        &format!("/clients/{id}"),
        &json!({"clientId": OPERATOR, "serviceAccountsEnabled": false}),
    );
    let error = realm.keycloak.find_user("ada").await.expect_err("no service account");
    assert_eq!(error.reason(), "KeycloakUnauthorized");
    assert!(error.to_string().contains("service account"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_down_and_returns() {
    let realm = Realm::new("outage");
    let keycloak = &realm.keycloak;
    let user = ensure(keycloak, &wanted("ada.rossi")).await.expect("it is made");

    realm.proxy.set(Fault::Break { matching: everything() });
    let error = keycloak.find_user("ada.rossi").await.expect_err("down");
    assert_eq!((error.reason().as_str(), error.is_transient()), ("KeycloakUnreachable", true));
    realm.proxy.set(Fault::Status { code: 503, retry_after: None, matching: everything() });
    let error = keycloak.find_user("ada.rossi").await.expect_err("starting");
    assert_eq!((error.reason().as_str(), error.is_transient()), ("KeycloakUnavailable", true));
    // Without a token no other request is sent.
    realm.proxy.reset();
    let tokens = || matching(|_, path| path.ends_with("/token"));
    realm.proxy.set(Fault::Status { code: 500, retry_after: None, matching: tokens() });
    let error = realm.client(|_| ()).find_user("ada.rossi").await.expect_err("no token");
    assert_eq!(error.reason(), "KeycloakUnavailable");
    assert_eq!(realm.proxy.request_log().len(), 1);

    realm.proxy.set(Fault::None);
    assert_eq!(realm.found("ada.rossi").await, user);
}

#[tokio::test]
async fn a_lost_answer_leaves_no_work_undone() {
    let realm = Realm::new("lost");
    let ada = wanted("ada.rossi");
    realm.proxy.set(Fault::LoseAnswer { matching: requests_of(Method::POST, "/users") });
    let error = ensure(&realm.keycloak, &ada).await.expect_err("the answer is lost");
    assert_eq!(error.reason(), "KeycloakUnreachable");
    realm.proxy.set(Fault::None);
    realm.proxy.reset();
    let user = ensure(&realm.keycloak, &ada).await.expect("found");
    assert_eq!(realm.writes(), [""; 0], "it was made by the first call");
    assert!(user.owed_mail().is_some(), "and its mail is still to be sent");
}

#[tokio::test]
async fn requests_to_old_servers_have_the_prefix_auth() {
    let realm = Realm::new("compatible");
    realm.proxy.hide_prefix("/auth");
    let error = realm.keycloak.find_user("ada").await.expect_err("new servers have no prefix");
    assert_eq!(error.reason(), "KeycloakNotFound");
    assert!(error.to_string().contains("compatibilityMode"), "{error}");

    let old = realm.client(|settings| settings.compatibility_mode = true);
    let user = ensure(&old, &wanted("ada.rossi")).await.expect("it is made");
    old.create_role("workspace-tea:user", "x").await.expect("it is made");
    let role = old.role("workspace-tea:user").await.expect("found").expect("there");
    old.add_roles(&user.id, &[role]).await.expect("given");
    old.delete_user(&user.id).await.expect("deleted");
}

#[tokio::test]
async fn concurrent_callers_share_a_token() {
    let realm = Realm::new("herd");
    let pause = Duration::from_millis(200);
    realm.proxy.set(Fault::Delay { pause, matching: matching(|_, path| path.ends_with("/token")) });
    let calls = (0..16).map(|index| {
        let keycloak = realm.keycloak.clone();
        async move { keycloak.find_user(&format!("person-{index}")).await }
    });
    let found = futures::future::join_all(calls).await;
    assert!(found.iter().all(|found| *found == Ok(None)), "{found:?}");
    assert_eq!(realm.tokens(), 1);
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_and_no_personal_data_is_in_the_log() {
    let realm = Realm::new("discreet");
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    {
        // Only for this thread, which runs the whole test.
        let _guard = tracing::subscriber::set_default(subscriber);
        let user = ensure(&realm.keycloak, &wanted("ada.rossi")).await.expect("it is made");
        realm.keycloak.send_action_mail(&user.owed_mail().expect("a new account")).await.expect("sent");
        fs::write(realm.secret_file(), "hunter2").expect("written");
        let wrong = realm.client(|_| ()).find_user("ada.rossi").await.expect_err("a wrong secret");
        tracing::error!(error = %wrong, ?wrong, keycloak = ?realm.keycloak, ?user, "as a loop would log it");
    }
    let text = String::from_utf8_lossy(&log.0.lock().expect("no writer panics")).into_owned();
    assert!(text.contains("as a loop would log it") && text.contains("hyper"), "all is logged:\n{text}");
    for private in [SECRET, "hunter2", "Bearer ey", "Basic ", "access_token", "@example.org", "Rossi"] {
        assert!(!text.contains(private), "{private} in the log:\n{text}");
    }
}
