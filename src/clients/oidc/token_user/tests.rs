use serde_json::json;

use super::*;
use crate::clients::oidc::tests::{Issuer, Reply, assert_fails, document, signed_token};
use crate::clients::oidc::{Error, Secret};

#[tokio::test]
async fn the_user_of_a_token_is_read_after_verification_with_the_issuer_keys() {
    let issuer = Issuer::start().await;
    let claims = json!({"preferred_username": "ada", "groups": ["workspace-tea:user", "kubernetes:x", "system:masters"]});
    let (token, keys) = signed_token(&claims);
    issuer.has_keys(keys);
    let ada = TokenUser {
        name: "ada".to_owned(),
        groups: ["kubernetes:workspace-tea:user", "kubernetes:x", "kubernetes:system:masters"]
            .map(str::to_owned)
            .into(),
    };
    for _ in 0..2 {
        assert_eq!(issuer.provider.user(&token).await.as_ref(), Ok(&ada));
    }
    let asked = || issuer.paths().iter().filter(|path| *path == "/keys").count();
    assert_eq!(asked(), 1);
    // The keys are replaced, and a token without groups yields none.
    let (next, keys) = signed_token(&json!({"preferred_username": "bob"}));
    issuer.has_keys(keys);
    let bob = TokenUser { name: "bob".to_owned(), groups: Vec::new() };
    assert_eq!(issuer.provider.user(&next).await, Ok(bob));
    assert_eq!(asked(), 2);
    assert_fails(issuer.provider.user(&token).await, Error::Refused, &["none of its keys"]);
}

#[tokio::test]
async fn a_token_with_an_unknown_signer_or_user_is_rejected() {
    let key = "controllers.dashboard.issuerUrl";
    let (token, keys) = signed_token(&json!({"preferred_username": "ada"}));
    for (reply, kind, words) in [
        (Reply::Text(503, String::new()), Error::Away as fn(String) -> Error, &["503"][..]),
        (Reply::Text(404, String::new()), Error::Refused, &[key, "/keys", "no JSON Web Key Set"]),
        (Reply::Text(200, "[]".to_owned()), Error::Refused, &["no JSON Web Key Set"]),
        (Reply::Json(200, json!({"keys": []})), Error::Refused, &["none of its keys"]),
        (signed_token(&json!({})).1, Error::Refused, &["none of its keys"]),
        (Reply::Redirect, Error::Refused, &["302"]),
    ] {
        let issuer = Issuer::start().await;
        issuer.has_keys(reply);
        assert_fails(issuer.provider.user(&token).await, kind, words);
    }
    let issuer = Issuer::start().await;
    issuer.has_keys(keys);
    assert!(issuer.provider.user(&token).await.is_ok());
    let unsigned = Secret::from("e30.e30.c2ln".to_owned());
    assert_fails(issuer.provider.user(&unsigned).await, Error::Refused, &["not a signed JSON Web Token"]);
    for claims in
        [json!({}), json!({"preferred_username": 1}), json!({"preferred_username": "ada", "groups": [1]})]
    {
        let (token, keys) = signed_token(&claims);
        issuer.has_keys(keys);
        assert_fails(issuer.provider.user(&token).await, Error::Refused, &["preferred_username", "groups"]);
    }
    let issuer = Issuer::start().await;
    let mut document = document(&issuer.url);
    json_patch::merge(&mut document, &json!({"jwks_uri": null}));
    issuer.describes_itself(Reply::Json(200, document));
    assert_fails(issuer.provider.user(&token).await, Error::Refused, &["no jwks_uri"]);
}
