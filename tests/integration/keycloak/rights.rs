//! The rights of the daemon's service account: the documented rights are sufficient, and each is needed.

use crownlabs::testing::keycloak::KeycloakError;
use http::Method;
use serde_json::{Value, json};

use super::realm::{RIGHTS, Realm, ensure, wanted};
use cluster::keycloak::ROLES_CLIENT;

/// Does everything that the loops do, once. Returns the first error.
pub async fn everything(realm: &Realm) -> Result<(), KeycloakError> {
    let keycloak = &realm.keycloak;
    let user = ensure(keycloak, &wanted("ada.rossi")).await?;
    let mut renamed = wanted("ada.rossi");
    "Augusta".clone_into(&mut renamed.first_name);
    let user = ensure(keycloak, &renamed).await.map(|renamed| renamed.id == user.id).map(|_| user)?;
    keycloak.send_action_mail(&user.owed_mail().expect("a new account")).await?;
    keycloak.create_role("workspace-tea:user", "Tea User Role").await?;
    keycloak.update_role_description("workspace-tea:user", "Tea").await?;
    let role = keycloak.role("workspace-tea:user").await?.expect("it was made");
    keycloak.add_roles(&user.id, std::slice::from_ref(&role)).await?;
    assert_eq!(keycloak.user_roles(&user.id).await?.len(), 1);
    keycloak.remove_roles(&user.id, &[role]).await?;
    keycloak.delete_role("workspace-tea:user").await?;
    keycloak.delete_user(&user.id).await
}

#[tokio::test]
async fn the_rights_of_the_documentation_suffice() {
    assert_eq!(everything(&Realm::new("rights-all")).await, Ok(()));
}

#[tokio::test]
async fn each_right_is_needed_and_named_when_it_is_missing() {
    let realms = ["rights-but-users", "rights-but-clients"];
    for (realm, missing) in realms.into_iter().zip(RIGHTS) {
        let rights: Vec<&str> = RIGHTS.into_iter().filter(|right| *right != missing).collect();
        let error = everything(&Realm::with_rights(realm, &rights)).await.expect_err(missing);
        assert_eq!(error.reason(), "KeycloakForbidden", "{error}");
        assert!(!error.is_transient());
        let text = error.to_string();
        assert!(text.starts_with("Keycloak forbids the client client-operator to "), "{text}");
        assert!(text.contains(&format!("the role {missing} of the client realm-management")), "{text}");
    }
}

/// Permits the daemon's client to manage one client, as the documentation describes it for fine-grained permissions.
fn permit(realm: &Realm) {
    realm.admin(&Method::PUT, "", &json!({"adminPermissionsEnabled": true}));
    let permissions = realm.id_of("/clients", "clientId", "admin-permissions");
    let server = format!("/clients/{permissions}/authz/resource-server");
    let policy = json!({"name": "operator", "users": [realm.service_account()]});
    let policy = realm.admin(&Method::POST, &format!("{server}/policy/user"), &policy);
    let permission = json!({
        "name": "roles of the operator",
        "resourceType": "Clients",
        "resources": [realm.id_of("/clients", "clientId", ROLES_CLIENT)],
        "scopes": ["view", "manage"],
        "policies": [policy["id"]],
    });
    realm.admin(&Method::POST, &format!("{server}/permission/scope"), &permission);
}

#[tokio::test]
async fn with_fine_grained_permissions_one_client_is_enough() {
    let realm = Realm::with_rights("rights-fine", &["manage-users", "query-clients"]);
    permit(&realm);
    assert_eq!(everything(&realm).await, Ok(()));

    // Other clients can be neither seen nor changed.
    realm.admin(&Method::POST, "/clients", &json!({"clientId": "other"}));
    let other = realm.client(|settings| settings.roles_client_id = "other".to_owned());
    let error = other.create_role("x", "x").await.expect_err("not permitted");
    assert_eq!(error.reason(), "KeycloakNotFound", "{error}");
    assert!(error.to_string().ends_with("that our account may see that client"), "{error}");
    let roles = format!("/clients/{}/roles", realm.id_of("/clients", "clientId", "other"));
    assert_eq!(realm.admin(&Method::GET, &roles, &Value::Null), json!([]));
}
