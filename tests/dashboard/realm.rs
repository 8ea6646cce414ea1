//! The realm of the users, set up as in docs/keycloak.md.

use std::collections::BTreeSet;

use cluster::keycloak::{KeycloakServer, ROLES_CLIENT, login_client};
use http::Method;
use serde_json::{Value, json};

/// The realm.
pub const REALM: &str = "labs";
/// The client of the dashboard, and its secret.
pub const CLIENT: &str = "dashboard";
pub const SECRET: &str = "s3cr+t %25:\"\\&=ü";
/// A client with tokens that the API server does not accept, and one with short-lived tokens for the accepted audience.
const STRANGER: &str = "stranger";
const BRIEF: &str = "brief";
/// The lifetime of the short-lived tokens. The dashboard replaces a token less than ten seconds before it expires.
const BRIEF_SECONDS: &str = "20";
/// The client that issues tokens for kubectl. They have the same audience and groups as the tokens of the dashboard.
pub const KUBECTL: &str = "kubectl";
/// The password of all users.
pub const PASSWORD: &str = "Lab-Pa55word";

/// The users, with their roles.
pub const USERS: [(&str, &[&str]); 14] = [
    ("ada", &["workspace-tea:user"]),
    ("bob", &["workspace-tea:user"]),
    ("eve", &["workspace-tea:manager"]),
    // Manages another course.
    ("mia", &["workspace-ask:manager"]),
    // Manages both courses.
    ("leo", &["workspace-tea:manager", "workspace-ask:manager"]),
    // Manages a course with a hundred students.
    ("ned", &["workspace-crowd:manager"]),
    // Had a Tenant, which was deleted. The roles in Keycloak are still there.
    ("dan", &["workspace-tea:user"]),
    // Audits the cluster: the role `view`, and no Tenant.
    ("ivy", &[]),
    // Without courses.
    ("joe", &[]),
    // Without a Tenant.
    ("zoe", &[]),
    ("max", &["workspace-tea:user"]),
    // Asked to join the course.
    ("kim", &[]),
    // The address is not confirmed.
    ("uma", &[]),
    // An administrator of the cluster, whose group the webhooks let pass.
    ("root", &["labs:admin"]),
];

/// Creates the realm, for dashboards at these URLs.
pub fn make(server: &KeycloakServer, urls: &[String]) {
    server.create_realm(REALM, "operator", &["manage-users", "manage-clients"]).expect("the realm");
    let admin = |method: &Method, path: &str, body: &Value| {
        server
            .admin(method, &format!("/{REALM}{path}"), body)
            .unwrap_or_else(|error| panic!("{path}: {error:#}"))
    };
    let languages =
        json!({"internationalizationEnabled": true, "supportedLocales": ["en", "it"], "defaultLocale": "en"});
    admin(&Method::PUT, "", &languages);
    let audience = json!({
        "name": "audience", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper",
        "config": {"included.client.audience": CLIENT, "id.token.claim": "true", "access.token.claim": "false"},
    });
    let client = |id: &str| login_client(id, SECRET, urls);
    let with_audience = |mut client: Value| {
        client["protocolMappers"].as_array_mut().expect("mappers").push(audience.clone());
        client
    };
    let mut brief = with_audience(client(BRIEF));
    brief["attributes"]["access.token.lifespan"] = BRIEF_SECONDS.into();
    let mut kubectl = with_audience(login_client(KUBECTL, "", &[]));
    for (key, value) in
        [("publicClient", true), ("standardFlowEnabled", false), ("directAccessGrantsEnabled", true)]
    {
        kubectl[key] = value.into();
    }
    for client in [client(CLIENT), client(STRANGER), brief, kubectl] {
        admin(&Method::POST, "/clients", &client);
    }
    let roles_client =
        server.find(&format!("/{REALM}/clients"), "clientId", ROLES_CLIENT).expect("the client");
    let roles_client = roles_client["id"].as_str().expect("an id").to_owned();
    let roles = USERS.iter().flat_map(|(_, roles)| roles.iter().copied()).collect::<BTreeSet<_>>();
    for role in roles {
        admin(&Method::POST, &format!("/clients/{roles_client}/roles"), &json!({"name": role}));
    }
    for (name, roles) in USERS {
        let user = json!({
            "username": name, "enabled": true, "emailVerified": name != "uma", "email": format!("{name}@example.org"),
            "firstName": name, "lastName": "Rossi",
            "credentials": [{"type": "password", "value": PASSWORD, "temporary": false}],
        });
        admin(&Method::POST, "/users", &user);
        let user = server.find(&format!("/{REALM}/users"), "username", name).expect("the user");
        let user = user["id"].as_str().expect("an id").to_owned();
        for role in roles {
            let path = format!("/clients/{roles_client}/roles/{role}");
            let role = admin(&Method::GET, &path, &Value::Null);
            admin(
                &Method::POST,
                &format!("/users/{user}/role-mappings/clients/{roles_client}"),
                &json!([role]),
            );
        }
    }
}
