//! Roles of the client that holds them, and the users with these roles.

use crownlabs::testing::keycloak::Role;
use http::Method;
use serde_json::{Value, json};

use super::realm::{Realm, by_hand};
use cluster::keycloak::ROLES_CLIENT;

const USER: &str = "workspace-tea:user";
const MANAGER: &str = "workspace-tea:manager";

/// The role with a name. Panics if there is no such role.
async fn role(realm: &Realm, name: &str) -> Role {
    let found = realm.keycloak.role(name).await.expect("the search works");
    found.unwrap_or_else(|| panic!("no role {name}"))
}

/// The names of some roles, sorted.
fn names(roles: &[Role]) -> Vec<&str> {
    let mut names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_role_from_its_creation_to_its_deletion() {
    let realm = Realm::new("role-life");
    let keycloak = &realm.keycloak;
    assert_eq!(keycloak.role(USER).await, Ok(None));
    assert_eq!(keycloak.delete_role(USER).await, Ok(()), "it is not there");

    keycloak.create_role(USER, "Tè & caffè User Role").await.expect("it is made");
    assert_eq!(role(&realm, USER).await.description, "Tè & caffè User Role");
    let error = keycloak.create_role(USER, "x").await.expect_err("it is there");
    assert_eq!(error.reason(), "KeycloakConflict");

    keycloak.update_role_description(USER, "Tea User Role").await.expect("it is changed");
    let changed = role(&realm, USER).await;
    assert_eq!((changed.name.as_str(), changed.description.as_str()), (USER, "Tea User Role"));

    assert_eq!(keycloak.delete_role(USER).await, Ok(()));
    assert_eq!(keycloak.role(USER).await, Ok(None));
    let error = keycloak.update_role_description(USER, "x").await.expect_err("it is gone");
    assert_eq!(error.reason(), "KeycloakNotFound");
}

#[tokio::test]
async fn descriptions_of_any_length_and_none() {
    let realm = Realm::new("role-text");
    let long = "é".repeat(300);
    for (name, text) in [("a", long.as_str()), ("b", ""), ("c/d e?#%", "x")] {
        realm.keycloak.create_role(name, text).await.expect(name);
        let kept = role(&realm, name).await.description;
        assert_eq!(kept, crownlabs::testing::keycloak::description(text));
    }
    realm.keycloak.update_role_description("b", &long).await.expect("cut as well");
    assert_eq!(role(&realm, "b").await.description.chars().count(), 255);
}

#[tokio::test]
async fn a_changed_description_keeps_the_other_fields_of_a_role() {
    let realm = Realm::new("role-rest");
    let client = realm.id_of("/clients", "clientId", ROLES_CLIENT);
    let path = format!("/clients/{client}/roles");
    realm.admin(&Method::POST, &path, &json!({"name": USER, "attributes": {"colour": ["green"]}}));
    realm.keycloak.update_role_description(USER, "Tea User Role").await.expect("it is changed");
    let now = realm.admin(&Method::GET, &format!("{path}/{USER}"), &Value::Null);
    assert_eq!(now["attributes"], json!({"colour": ["green"]}));
    assert_eq!(now["description"], "Tea User Role");
}

#[tokio::test]
async fn roles_are_added_to_a_user_and_removed() {
    let realm = Realm::new("role-mapping");
    let keycloak = &realm.keycloak;
    let ada = realm.user(&by_hand("ada.rossi"));
    for name in [USER, MANAGER, "other"] {
        keycloak.create_role(name, name).await.expect(name);
    }
    assert_eq!(keycloak.user_roles(&ada).await, Ok(Vec::new()));
    let (user, manager, other) =
        (role(&realm, USER).await, role(&realm, MANAGER).await, role(&realm, "other").await);

    keycloak.add_roles(&ada, &[user.clone(), manager.clone(), other.clone()]).await.expect("given");
    keycloak.add_roles(&ada, std::slice::from_ref(&user)).await.expect("given already");
    assert_eq!(names(&keycloak.user_roles(&ada).await.expect("listed")), ["other", MANAGER, USER]);

    keycloak.remove_roles(&ada, std::slice::from_ref(&manager)).await.expect("taken");
    keycloak.remove_roles(&ada, &[manager]).await.expect("taken already");
    keycloak.remove_roles(&ada, &[]).await.expect("nothing to take");
    let left = keycloak.user_roles(&ada).await.expect("listed");
    assert_eq!(names(&left), ["other", USER]);

    // The roles of the realm itself are not touched.
    let mappings = realm.admin(&Method::GET, &format!("/users/{ada}/role-mappings"), &Value::Null);
    assert!(mappings["realmMappings"].is_array(), "{mappings}");

    // When a role is deleted, no user has it any more.
    keycloak.delete_role(USER).await.expect("deleted");
    assert_eq!(names(&keycloak.user_roles(&ada).await.expect("listed")), ["other"]);
    let error = keycloak.add_roles(&ada, &[user]).await.expect_err("it is gone");
    assert_eq!(error.reason(), "KeycloakNotFound");
    assert_eq!(keycloak.remove_roles(&ada, &[other]).await, Ok(()));
}

#[tokio::test]
async fn the_client_with_the_roles_may_be_deleted_and_created_again() {
    let realm = Realm::new("role-client");
    realm.keycloak.create_role(USER, "x").await.expect("it is made");
    let path = format!("/clients/{}", realm.id_of("/clients", "clientId", ROLES_CLIENT));
    realm.admin(&Method::DELETE, &path, &Value::Null);
    let error = realm.keycloak.role(USER).await.expect_err("the client is gone");
    assert_eq!(error.reason(), "KeycloakNotFound");
    let error = realm.keycloak.role(USER).await.expect_err("the client is gone");
    assert!(error.to_string().contains("has no client \"client-api-server\""), "{error}");
    realm.admin(&Method::POST, "/clients", &json!({"clientId": ROLES_CLIENT}));
    assert_eq!(realm.keycloak.role(USER).await, Ok(None));
}
