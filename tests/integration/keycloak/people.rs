//! Accounts of users.

use std::collections::BTreeSet;

use crownlabs::testing::keycloak::{KeycloakError, RequiredAction, WantedUser, difference};
use http::Method;
use serde_json::{Value, json};

use super::realm::{Realm, by_hand, ensure, wanted};

#[tokio::test]
async fn an_account_from_its_creation_to_its_deletion() {
    let realm = Realm::new("life");
    let (keycloak, ada) = (&realm.keycloak, wanted("ada.life"));
    assert_eq!(keycloak.find_user("ada.life").await, Ok(None));

    let id = keycloak.create_user(&ada).await.expect("it is made");
    let user = realm.found("ada.life").await;
    assert_eq!(user.id, id);
    assert!(user.enabled && !user.email_verified);
    assert_eq!((user.first_name.as_str(), user.last_name.as_str()), ("Ada", "Rossi"));
    assert_eq!(user.required_actions, BTreeSet::from(["UPDATE_PASSWORD", "VERIFY_EMAIL"].map(str::to_owned)));
    assert_eq!(difference(&user, &ada), None);

    let mail = user.owed_mail().expect("a new account has to be confirmed");
    keycloak.send_action_mail(&mail).await.expect("the mail is accepted");
    let mails = realm.server.mail().mails_to("ada.life@example.org");
    assert_eq!(mails.len(), 1);
    assert!(mails[0].text.contains("/realms/life/login-actions/action-token?key=3D"), "{}", mails[0].text);

    assert_eq!(keycloak.delete_user(&id).await, Ok(()));
    assert_eq!(keycloak.find_user("ada.life").await, Ok(None));
    assert_eq!(keycloak.delete_user(&id).await, Ok(()), "it is gone already");
}

#[tokio::test]
async fn an_account_that_is_up_to_date_is_not_written_again() {
    let realm = Realm::new("quiet");
    let ada = WantedUser { email: "Ada.Rossi@Example.org".to_owned(), ..wanted("ada.rossi") };
    let first = ensure(&realm.keycloak, &ada).await.expect("it is made");
    assert_eq!(realm.writes(), ["POST /admin/realms/quiet/users"]);
    realm.proxy.reset();
    for _ in 0..2 {
        assert_eq!(ensure(&realm.keycloak, &ada).await.expect("it is found"), first);
    }
    assert_eq!(realm.writes(), [""; 0]);
    assert_eq!(realm.tokens(), 0, "the first token is still valid");
}

#[tokio::test]
async fn names_of_all_kinds_are_kept() {
    let realm = Realm::new("names");
    let long = "é".repeat(255);
    let names = [
        ("Niccolò", "D'Angiò"),
        ("李", "小龍"),
        ("Жанна", "О’Коннор"),
        ("  Ada  Maria ", "\tRossi\u{a0}"),
        ("Ada-Maria", "de l'Église, Jr."),
        ("🦀", "\u{202e}abc"),
        ("", ""),
        (&long, "x"),
    ];
    for (index, (first, last)) in names.into_iter().enumerate() {
        let mut person = wanted(&format!("person-{index}"));
        person.first_name = first.to_owned();
        person.last_name = last.to_owned();
        let made =
            ensure(&realm.keycloak, &person).await.unwrap_or_else(|error| panic!("{first:?}: {error}"));
        assert_eq!(difference(&made, &person), None, "{first:?} {last:?}");
        // The same with an update.
        let plain = wanted(&person.username);
        let renamed = ensure(&realm.keycloak, &plain).await.expect("renamed");
        assert_eq!((renamed.first_name.as_str(), renamed.last_name.as_str()), ("Ada", "Rossi"));
        let again = ensure(&realm.keycloak, &person).await.expect("renamed back");
        assert_eq!(again, made, "{first:?} {last:?}");
    }
}

#[tokio::test]
async fn a_rejected_account_is_reported_without_personal_data() {
    let realm = Realm::new("strict");
    let named = |first: &str| WantedUser { first_name: first.to_owned(), ..wanted("ada.rossi") };
    let bad = [
        (named("<script>"), "firstName"),
        (named(&"y".repeat(256)), "firstName"),
        (WantedUser { email: "nowhere-ada".to_owned(), ..wanted("ada.rossi") }, "email"),
        (wanted("ad"), "username"),
    ];
    for (person, field) in bad {
        let error = realm.keycloak.create_user(&person).await.expect_err(field);
        assert_eq!(error.reason(), "KeycloakRejected", "{error}");
        assert!(!error.is_transient());
        let text = format!("{error} {error:?}");
        assert!(text.contains(field), "{text}");
        for personal in [&person.first_name, &person.email, "yyy"] {
            assert!(!text.contains(personal), "{text}");
        }
    }
}

#[tokio::test]
async fn an_account_that_exists_already_is_updated() {
    let realm = Realm::new("adopted");
    let mut profile = realm.admin(&Method::GET, "/users/profile", &Value::Null);
    profile["unmanagedAttributePolicy"] = json!("ADMIN_EDIT");
    realm.admin(&Method::PUT, "/users/profile", &profile);
    let mut old = by_hand("ada.rossi");
    old["firstName"] = json!("Augusta");
    old["emailVerified"] = json!(true);
    old["attributes"] = json!({"badge": ["17"]});
    old["requiredActions"] = json!(["CONFIGURE_TOTP"]);
    old["credentials"] = json!([{"type": "password", "value": "hers", "temporary": false}]);
    let id = realm.user(&old);
    // User names that contain the wanted one.
    for other in ["ada.rossi2", "xada.rossi", "ada.ross"] {
        realm.user(&by_hand(other));
    }

    let user = ensure(&realm.keycloak, &wanted("ada.rossi")).await.expect("adopted");
    assert_eq!(user.id, id);
    assert_eq!((user.first_name.as_str(), user.last_name.as_str()), ("Ada", "Rossi"));
    assert!(user.email_verified, "a changed name does not make the address unverified");
    assert_eq!(user.owed_mail(), None);

    let moved = WantedUser { email: "ada@example.com".to_owned(), ..wanted("ada.rossi") };
    let user = ensure(&realm.keycloak, &moved).await.expect("moved");
    assert_eq!(user.email, "ada@example.com");
    assert!(!user.email_verified);
    assert_eq!(user.required_actions, BTreeSet::from(["CONFIGURE_TOTP", "VERIFY_EMAIL"].map(str::to_owned)));
    let mail = user.owed_mail().expect("the new address has to be confirmed");
    assert_eq!(mail.actions, [RequiredAction::VerifyEmail]);
    assert_eq!(mail.address, "ada@example.com");

    // Attributes and credentials stay.
    let now = realm.admin(&Method::GET, &format!("/users/{id}"), &Value::Null);
    assert_eq!(now["attributes"], json!({"badge": ["17"]}));
    assert_eq!(now["enabled"], true);
    let credentials = realm.admin(&Method::GET, &format!("/users/{id}/credentials"), &Value::Null);
    assert_eq!(credentials.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_disabled_account_stays_disabled() {
    let realm = Realm::new("locked");
    let mut old = by_hand("ada.rossi");
    old["enabled"] = json!(false);
    realm.user(&old);
    let user = ensure(&realm.keycloak, &wanted("ada.rossi")).await.expect("adopted");
    assert!(!user.enabled);
    assert_eq!(user.owed_mail(), None, "a mail would be refused");
}

#[tokio::test]
async fn names_are_found_whole_and_in_any_case() {
    let realm = Realm::new("exact");
    for other in ["ada.rossi2", "xada.rossi", "adaxrossi"] {
        realm.user(&by_hand(other));
    }
    for name in ["ada.rossi", "ada", "a%", "*", "", "ada.rossi2@example.org"] {
        assert_eq!(realm.keycloak.find_user(name).await, Ok(None), "{name:?}");
    }
    assert_eq!(realm.found("ADA.Rossi2").await.username, "ada.rossi2");
}

#[tokio::test]
async fn service_accounts_are_not_found_as_user_accounts() {
    let realm = Realm::new("services");
    let ours = "service-account-client-operator";
    // The admin API finds it.
    let path = format!("/users?username={ours}&exact=true");
    assert_eq!(realm.admin(&Method::GET, &path, &Value::Null).as_array().map(Vec::len), Some(1));
    let error = realm.keycloak.find_user(ours).await.expect_err("it is a service account");
    assert_eq!(error.reason(), "KeycloakRejected");
    assert!(error.to_string().ends_with("are reserved for service accounts"), "{error}");
    let error = realm.keycloak.create_user(&wanted(ours)).await.expect_err("the name is taken");
    assert_eq!(error.reason(), "KeycloakConflict");
}

#[tokio::test]
async fn two_users_with_one_address_are_a_conflict() {
    let realm = Realm::new("conflict");
    ensure(&realm.keycloak, &wanted("ada.rossi")).await.expect("the first");
    let second = WantedUser { email: "ada.rossi@example.org".to_owned(), ..wanted("adele.rossi") };
    let error = realm.keycloak.create_user(&second).await.expect_err("the address is taken");
    assert_eq!(error.reason(), "KeycloakConflict");
    assert_eq!(error.to_string(), "Keycloak cannot create a user: User exists with same email");
    // The same with an update.
    ensure(&realm.keycloak, &wanted("adele.rossi")).await.expect("with an address of her own");
    let error = ensure(&realm.keycloak, &second).await.expect_err("the address is taken");
    assert_eq!(error.reason(), "KeycloakConflict");
    assert!(!error.to_string().contains('@'), "{error}");
}

#[tokio::test]
async fn a_rejected_mail_is_sent_again() {
    let realm = Realm::new("mail");
    let user = ensure(&realm.keycloak, &wanted("bad.luck")).await.expect("it is made");
    let mail = user.owed_mail().expect("a new account has to be confirmed");
    realm.server.mail().refuse("bad.luck@example.org");
    let error = realm.keycloak.send_action_mail(&mail).await.expect_err("the mail server refuses");
    assert_eq!(error, KeycloakError::MailNotSent);
    assert!(realm.server.mail().mails_to("bad.luck@example.org").is_empty());

    // The account was created, and the next call finds that the mail must still be sent.
    let again = realm.found("bad.luck").await.owed_mail().expect("still owed");
    assert_eq!(again, mail);
    realm.server.mail().accept("bad.luck@example.org");
    realm.keycloak.send_action_mail(&again).await.expect("the mail is accepted");
    assert_eq!(realm.server.mail().mails_to("bad.luck@example.org").len(), 1);

    // No mail is sent when the address is confirmed.
    realm.admin(&Method::PUT, &format!("/users/{}", user.id), &json!({"emailVerified": true}));
    assert_eq!(realm.found("bad.luck").await.owed_mail(), None);
}

#[tokio::test]
async fn calls_about_an_account_that_is_gone() {
    let realm = Realm::new("gone");
    let user = ensure(&realm.keycloak, &wanted("ada.rossi")).await.expect("it is made");
    let mail = user.owed_mail().expect("a new account");
    let other = WantedUser { first_name: "Augusta".to_owned(), ..wanted("ada.rossi") };
    let update = difference(&user, &other).expect("another name");
    realm.keycloak.delete_user(&user.id).await.expect("it is deleted");
    let errors = [
        realm.keycloak.update_user(&user.id, &update).await.expect_err("gone"),
        realm.keycloak.send_action_mail(&mail).await.expect_err("gone"),
        realm.keycloak.user_roles(&user.id).await.map(drop).expect_err("gone"),
    ];
    for error in errors {
        assert_eq!(error.reason(), "KeycloakNotFound", "{error}");
        assert!(error.to_string().ends_with(": User not found"), "{error}");
    }
}

/// The reason why the daemon stores nothing in attributes: see `docs/decisions/0004-keycloak-client.md`.
#[tokio::test]
async fn a_realm_drops_attributes_that_its_profile_does_not_know() {
    let realm = Realm::new("attributes");
    let mut user = by_hand("ada.rossi");
    user["attributes"] = json!({"crownlabs-mail": ["accepted"]});
    let id = realm.user(&user);
    let kept = realm.admin(&Method::GET, &format!("/users/{id}"), &Value::Null);
    assert!(!kept.to_string().contains("crownlabs-mail"), "{kept}");
}
