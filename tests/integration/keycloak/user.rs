//! A user in place of the service account: through a client without and with a secret, in the realm of the accounts and
//! in another.

use std::fs;

use crownlabs::testing::KeycloakConfig;
use crownlabs::testing::keycloak::Keycloak;
use http::Method;
use serde_json::{Value, json};

use super::realm::{RIGHTS, Realm};
use super::rights::everything;
use cluster::keycloak::OPERATOR;

const USER: &str = "labs-operator";
/// A password with the characters that must be escaped in a form.
const PASSWORD: &str = "p&ss=+% w\"\\ü";

/// Creates a user with these roles of a client. `at` is the realm of the user.
fn make(realm: &Realm, at: &str, name: &str, client: &str, rights: &[&str]) {
    let admin = |method: &Method, path: &str, body: &Value| {
        realm.server.admin(method, &format!("/{at}{path}"), body).unwrap_or_else(|error| panic!("{error:#}"))
    };
    let id_of = |path: &str, key: &str, value: &str| {
        let found = realm.server.find(&format!("/{at}{path}"), key, value).expect("it exists");
        found["id"].as_str().expect("an identifier").to_owned()
    };
    let user = json!({
        "username": name, "enabled": true, "email": format!("{name}@example.org"), "emailVerified": true,
        "firstName": "Labs", "lastName": "Operator",
        "credentials": [{"type": "password", "value": PASSWORD, "temporary": false}],
    });
    admin(&Method::POST, "/users", &user);
    let (user, client) = (id_of("/users", "username", name), id_of("/clients", "clientId", client));
    let role = |name: &&str| admin(&Method::GET, &format!("/clients/{client}/roles/{name}"), &Value::Null);
    let roles: Vec<Value> = rights.iter().map(role).collect();
    admin(&Method::POST, &format!("/users/{user}/role-mappings/clients/{client}"), &json!(roles));
}

/// The client under test, as this user, through `admin-cli`.
fn client_of(realm: &Realm, name: &str, change: impl FnOnce(&mut KeycloakConfig)) -> Keycloak {
    realm.client(|settings| {
        name.clone_into(&mut settings.username);
        settings.password_file.clone_from(&settings.client_secret_file);
        fs::write(&settings.password_file, format!("{PASSWORD}\n")).expect("written");
        "admin-cli".clone_into(&mut settings.client_id);
        settings.client_secret_file.clear();
        change(settings);
    })
}

#[tokio::test]
async fn a_user_of_the_realm_can_replace_the_service_account() {
    let mut realm = Realm::with_rights("user-own", &[]);
    make(&realm, realm.name, USER, "realm-management", &RIGHTS);
    realm.keycloak = client_of(&realm, USER, |_| ());
    assert_eq!(everything(&realm).await, Ok(()));
}

#[tokio::test]
async fn a_user_of_another_realm_has_a_client_of_roles_for_each() {
    let mut realm = Realm::with_rights("user-master", &[]);
    let in_master = |settings: &mut KeycloakConfig| "master".clone_into(&mut settings.login_realm);
    make(&realm, "master", "all-of-user-master", "user-master-realm", &RIGHTS);
    realm.keycloak = client_of(&realm, "all-of-user-master", in_master);
    assert_eq!(everything(&realm).await, Ok(()));

    make(&realm, "master", "some-of-user-master", "user-master-realm", &["manage-clients"]);
    realm.keycloak = client_of(&realm, "some-of-user-master", in_master);
    let error = everything(&realm).await.expect_err("a role is missing").to_string();
    assert!(error.starts_with("Keycloak forbids the user some-of-user-master to "), "{error}");
    let end = "give this user the role manage-users of the client user-master-realm";
    assert!(error.ends_with(end), "{error}");

    let nowhere = |settings: &mut KeycloakConfig| "nowhere".clone_into(&mut settings.login_realm);
    let error =
        client_of(&realm, USER, nowhere).find_user("ada").await.expect_err("no such realm").to_string();
    assert!(error.starts_with("there is no Keycloak realm \"nowhere\" at "), "{error}");
    assert!(error.ends_with("check url, loginRealm and compatibilityMode"), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_a_new_one_is_used_at_once() {
    let realm = Realm::with_rights("user-password", &[]);
    make(&realm, realm.name, USER, "realm-management", &RIGHTS);
    let keycloak = client_of(&realm, USER, |_| ());
    fs::write(realm.secret_file(), "hunter2-wrong").expect("written");
    let error = keycloak.find_user("ada").await.expect_err("the password is wrong");
    assert_eq!(error.reason(), "KeycloakUnauthorized");
    let text = format!("{error} {error:?} {keycloak:?}");
    assert!(text.contains("the user labs-operator") && text.contains("passwordFile"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    fs::write(realm.secret_file(), PASSWORD).expect("written");
    assert_eq!(keycloak.find_user("ada").await, Ok(None));
    fs::remove_file(realm.secret_file()).expect("removed");
    assert_eq!(keycloak.find_user("ada").await, Ok(None), "the token is still valid");
}

#[tokio::test]
async fn the_login_client_may_have_a_secret_and_must_allow_direct_grants() {
    let realm = Realm::with_rights("user-client", &[]);
    make(&realm, realm.name, USER, "realm-management", &RIGHTS);
    let password = realm.secret_file().with_file_name("password");
    fs::write(&password, PASSWORD).expect("written");
    let keycloak = realm.client(|settings| {
        USER.clone_into(&mut settings.username);
        settings.password_file = password.display().to_string();
    });
    let id = realm.id_of("/clients", "clientId", OPERATOR);
    let allow = |allowed: bool| {
        let change = json!({"clientId": OPERATOR, "directAccessGrantsEnabled": allowed});
        realm.admin(&Method::PUT, &format!("/clients/{id}"), &change);
    };
    allow(false);
    let error = keycloak.find_user("ada").await.expect_err("the client does not allow it");
    assert_eq!(error.reason(), "KeycloakUnauthorized");
    assert!(
        error.to_string().ends_with("that the client client-operator allows direct access grants"),
        "{error}"
    );
    allow(true);
    assert_eq!(keycloak.find_user("ada").await, Ok(None));
}
