//! The rights of the service account: those that the documentation asks for suffice, and each is needed.

use crownlabs::clients::keycloak::KeycloakError;

use super::realm::{RIGHTS, Realm, ensure, wanted};

/// Everything that the loops do, once; the first thing that is refused.
async fn everything(realm: &Realm) -> Result<(), KeycloakError> {
    let keycloak = &realm.keycloak;
    let user = ensure(keycloak, &wanted("ada.rossi")).await?;
    let mut renamed = wanted("ada.rossi");
    renamed.first_name = "Augusta".to_owned();
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
        assert_eq!(error.reason(), "Forbidden", "{error}");
        assert!(!error.is_transient());
        let text = error.to_string();
        assert!(text.starts_with("Keycloak forbids the client client-operator to "), "{text}");
        assert!(text.contains(&format!("the role {missing} of the client realm-management")), "{text}");
    }
}
