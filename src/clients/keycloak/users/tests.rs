//! Tests of account differences and owed mails.

use serde_json::{json, to_value};

use super::*;

fn actions(aliases: &[&str]) -> BTreeSet<String> {
    aliases.iter().map(|alias| (*alias).to_owned()).collect()
}

fn user() -> User {
    User {
        id: "1".to_owned(),
        username: "ada.rossi".to_owned(),
        email: "ada@example.org".to_owned(),
        first_name: "Ada".to_owned(),
        last_name: "Rossi".to_owned(),
        email_verified: true,
        enabled: true,
        required_actions: actions(&["CONFIGURE_TOTP"]),
        created_timestamp: 0,
    }
}

fn wanted() -> WantedUser {
    WantedUser {
        username: "ada.rossi".to_owned(),
        email: "ada@example.org".to_owned(),
        first_name: "Ada".to_owned(),
        last_name: "Rossi".to_owned(),
    }
}

#[test]
fn an_account_in_the_wanted_state_is_not_changed() {
    assert_eq!(difference(&user(), &wanted()), None);
    // Keycloak's spelling.
    let spelled =
        WantedUser { email: "Ada@Example.ORG".to_owned(), first_name: " Ada ".to_owned(), ..wanted() };
    assert_eq!(difference(&user(), &spelled), None);
    // A missing name equals an empty name.
    let nameless: User =
        serde_json::from_value(json!({"id": "1", "username": "a", "email": "ada@example.org"}))
            .expect("only these two fields are always present");
    let wanted = WantedUser { first_name: String::new(), last_name: " ".to_owned(), ..wanted() };
    assert_eq!(difference(&nameless, &wanted), None);
}

#[test]
fn a_new_name_keeps_the_address_confirmed() {
    let wanted = WantedUser { last_name: "D'Angiò".to_owned(), ..wanted() };
    let update = difference(&user(), &wanted).expect("the name differs");
    assert_eq!(update.0.email_verified, None);
    let body = json!({"email": "ada@example.org", "firstName": "Ada", "lastName": "D'Angiò"});
    assert_eq!(to_value(&update.0).unwrap(), body);
}

#[test]
fn a_new_address_must_be_confirmed() {
    let wanted = WantedUser { email: "a.rossi@example.org".to_owned(), ..wanted() };
    let update = difference(&user(), &wanted).expect("the address differs");
    assert_eq!(update.0.email_verified, Some(false));
    let body = json!({
        "email": "a.rossi@example.org",
        "firstName": "Ada",
        "lastName": "Rossi",
        "emailVerified": false,
        "requiredActions": ["CONFIGURE_TOTP", "VERIFY_EMAIL"],
    });
    assert_eq!(to_value(&update.0).unwrap(), body);
    // The confirmation is not requested twice.
    let pending = User { required_actions: actions(&["VERIFY_EMAIL"]), ..user() };
    let update = difference(&pending, &wanted).expect("the address differs");
    assert_eq!(to_value(&update.0).unwrap()["requiredActions"], json!(["VERIFY_EMAIL"]));
}

#[test]
fn the_mail_is_owed_until_the_address_is_confirmed() {
    let new = User {
        email_verified: false,
        required_actions: actions(&["UPDATE_PASSWORD", "VERIFY_EMAIL"]),
        ..user()
    };
    let mail = new.owed_mail().expect("a new account");
    assert_eq!((mail.user_id.as_str(), mail.address.as_str()), ("1", "ada@example.org"));
    assert_eq!(aliases(&mail.actions), ["UPDATE_PASSWORD", "VERIFY_EMAIL"]);

    let moved = User { required_actions: actions(&["VERIFY_EMAIL"]), ..new.clone() };
    assert_eq!(moved.owed_mail().expect("a new address").actions, [RequiredAction::VerifyEmail]);

    for settled in [
        User { email_verified: true, ..new.clone() },
        User { enabled: false, ..new.clone() },
        User { email: String::new(), ..new.clone() },
        // An administrator has set a temporary password.
        User { required_actions: actions(&["UPDATE_PASSWORD"]), ..new.clone() },
        User { required_actions: BTreeSet::new(), ..new },
    ] {
        assert_eq!(settled.owed_mail(), None);
    }
}

#[test]
fn debug_output_contains_no_personal_data() {
    let update = difference(&User { email: String::new(), ..user() }, &wanted()).expect("they differ");
    let mail = ActionMail { user_id: "1".to_owned(), address: "ada@example.org".to_owned(), actions: vec![] };
    let text = format!("{:?} {:?} {update:?} {mail:?}", user(), wanted());
    for personal in ["Ada", "Rossi", "@"] {
        assert!(!text.contains(personal), "{text}");
    }
}
