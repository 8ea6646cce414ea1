//! A realm for one test, and the Keycloak client under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crownlabs::testing::keycloak::{Keycloak, KeycloakError, User, WantedUser, difference};
use crownlabs::testing::{ConfigDuration, Gate, KeycloakConfig};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use cluster::keycloak::{KeycloakServer, OPERATOR, ROLES_CLIENT};
use cluster::proxy::Proxy;

/// The roles of `realm-management` that the documentation requires.
pub const RIGHTS: [&str; 2] = ["manage-users", "manage-clients"];
/// A secret with the characters that must be escaped in HTTP Basic authentication, forms and JSON.
pub const SECRET: &str = "s3cr+t %25:\"\\&=ü";

/// A realm with its clients.
pub struct Realm {
    /// The server.
    pub server: Arc<KeycloakServer>,
    /// The proxy between the client and the server.
    pub proxy: Proxy,
    /// The client under test.
    pub keycloak: Keycloak,
    /// The name of the realm.
    pub name: &'static str,
    folder: TempDir,
}

impl Realm {
    /// A realm that gives the daemon's client the documented rights.
    pub fn new(name: &'static str) -> Self {
        Self::with_rights(name, &RIGHTS)
    }

    /// A realm that gives the daemon's client these rights.
    pub fn with_rights(name: &'static str, rights: &[&str]) -> Self {
        let server = shared();
        server.create_realm(name, SECRET, rights).expect("the realm is made");
        let proxy = Proxy::in_front_of(&server.url(), None).expect("the proxy");
        let folder = TempDir::new().expect("a folder");
        let settings = settings(name, proxy.url(), &folder.path().join("secret"));
        fs::write(&settings.client_secret_file, format!("{SECRET}\n")).expect("the secret is written");
        let keycloak = Keycloak::new(&settings, Gate::open()).expect("the client");
        Self { server, proxy, keycloak, name, folder }
    }

    /// The settings of the client under test.
    pub fn settings(&self) -> KeycloakConfig {
        settings(self.name, self.proxy.url(), &self.secret_file())
    }

    /// Another client, with changed settings.
    pub fn client(&self, change: impl FnOnce(&mut KeycloakConfig)) -> Keycloak {
        let mut settings = self.settings();
        change(&mut settings);
        Keycloak::new(&settings, Gate::open()).expect("the client")
    }

    /// The file with the secret.
    pub fn secret_file(&self) -> PathBuf {
        self.folder.path().join("secret")
    }

    /// Sends a request to the admin API as an administrator; `path` is below the realm. Returns the body of the
    /// response.
    pub fn admin(&self, method: &Method, path: &str, body: &Value) -> Value {
        let answer = self.server.admin(method, &format!("/{}{path}", self.name), body);
        answer.unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// The identifier of the object of the list at `path` whose member `key` has this value.
    pub fn id_of(&self, path: &str, key: &str, value: &str) -> String {
        let found = self.server.find(&format!("/{}{path}", self.name), key, value);
        let found = found.unwrap_or_else(|error| panic!("{error:#}"));
        found["id"].as_str().expect("an identifier").to_owned()
    }

    /// The identifier of the service account of the daemon's client.
    pub fn service_account(&self) -> String {
        let client = self.id_of("/clients", "clientId", OPERATOR);
        let user = self.admin(&Method::GET, &format!("/clients/{client}/service-account-user"), &Value::Null);
        user["id"].as_str().expect("an identifier").to_owned()
    }

    /// Creates a user as an administrator. Returns its identifier.
    pub fn user(&self, user: &Value) -> String {
        self.admin(&Method::POST, "/users", user);
        self.id_of("/users", "username", user["username"].as_str().expect("a name"))
    }

    /// The account with a user name. Panics if there is no such account.
    pub async fn found(&self, username: &str) -> User {
        let user = self.keycloak.find_user(username).await.expect("the search works");
        user.unwrap_or_else(|| panic!("no user {username}"))
    }

    /// The writes so far, as method and path, without the requests for tokens.
    pub fn writes(&self) -> Vec<String> {
        let log = self.proxy.request_log();
        let is_write = |request: &&cluster::proxy::Answered| {
            request.method != Method::GET && !request.path.ends_with("/token")
        };
        log.iter().filter(is_write).map(|request| format!("{} {}", request.method, request.path)).collect()
    }

    /// The number of requests for tokens so far.
    pub fn tokens(&self) -> usize {
        self.proxy.request_log().iter().filter(|request| request.path.ends_with("/token")).count()
    }
}

fn settings(realm: &str, url: String, client_secret_file: &Path) -> KeycloakConfig {
    KeycloakConfig {
        url,
        realm: realm.to_owned(),
        client_id: OPERATOR.to_owned(),
        client_secret_file: client_secret_file.display().to_string(),
        roles_client_id: ROLES_CLIENT.to_owned(),
        timeout: ConfigDuration::from_secs(60),
        ..KeycloakConfig::default()
    }
}

/// The server that the tests share. It runs for as long as one of them uses it.
fn shared() -> Arc<KeycloakServer> {
    static SHARED: Mutex<Weak<KeycloakServer>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock();
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(KeycloakServer::start().unwrap_or_else(|error| panic!("Keycloak: {error:#}")));
        *shared = Arc::downgrade(&server);
        server
    })
}

/// The wanted account of a user name.
pub fn wanted(username: &str) -> WantedUser {
    WantedUser {
        username: username.to_owned(),
        email: format!("{username}@example.org"),
        first_name: "Ada".to_owned(),
        last_name: "Rossi".to_owned(),
    }
}

/// Does the work of the tenant loop for an account: creates it, or updates the existing one. Returns it.
pub async fn ensure(keycloak: &Keycloak, wanted: &WantedUser) -> Result<User, KeycloakError> {
    match keycloak.find_user(&wanted.username).await? {
        None => {
            keycloak.create_user(wanted).await?;
        }
        Some(user) => {
            if let Some(update) = difference(&user, wanted) {
                keycloak.update_user(&user.id, &update).await?;
            }
        }
    }
    let user = keycloak.find_user(&wanted.username).await?;
    user.ok_or_else(|| KeycloakError::NotFound("made and not found".to_owned()))
}

/// A user as an administrator would create one.
pub fn by_hand(username: &str) -> Value {
    json!({"username": username, "enabled": true, "email": format!("{username}@example.org")})
}
