use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::*;

/// The key of RFC 7515, A.2.1, and the token in that section that it has signed.
const RSA_MODULUS: &str = concat!(
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2l",
    "ZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEM",
    "a2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2P",
    "AcDTW9gb54h4FRWyuXpoQ",
);
const RSA_TOKEN: &str = concat!(
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ij",
    "p0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbd",
    "s9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9",
    "383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWy",
    "wlVmtVrBp0igcN_IoypGlUPQGe77Rw",
);

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The signed text of a token.
fn text(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()))
}

fn keys(keys: &Value) -> Keys {
    serde_json::from_value(json!({ "keys": keys })).expect("keys")
}

/// Whether these keys have signed a token.
fn accept(of: &Value, token: &str) -> bool {
    Signed::of(token).is_some_and(|signed| keys(of).have_signed(&signed))
}

/// A token with these claims, signed by a new key of the curve P-256, and this key.
pub fn signed(header: &Value, claims: &Value) -> (String, Value) {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &random).expect("a key");
    let signature = pair.sign(&random, text(header, claims).as_bytes()).expect("a signature");
    // The first byte is a mark; the two coordinates of the point follow.
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let key =
        json!({"kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "x": encoded(x), "y": encoded(y)});
    (format!("{}.{}", text(header, claims), encoded(signature)), key)
}

#[test]
fn a_token_is_accepted_only_if_one_of_the_keys_signed_it() {
    let header = json!({"alg": "ES256", "kid": "one"});
    let (token, key) = signed(&header, &json!({}));
    let (_, other) = signed(&header, &json!({}));
    assert!(accept(&json!([key]), &token));
    assert!(accept(&json!([{"kty": "future", "n": 1.to_string()}, other, key]), &token));
    assert!(!accept(&json!([]), &token));
    assert!(!accept(&json!([other]), &token), "another key of this name");
    for (name, value) in [
        ("kid", "two"),
        ("use", "enc"),
        ("alg", "RS256"),
        ("kty", "RSA"),
        ("crv", "P-384"),
        ("x", "AA"),
        ("y", "?"),
    ] {
        let mut changed = key.clone();
        changed[name] = value.into();
        assert!(!accept(&json!([changed]), &token), "{name}: {value}");
    }
    let (head, signature) = token.rsplit_once('.').expect("a signature");
    let claims = encoded(r#"{"preferred_username":"root"}"#);
    let (header, _) = head.split_once('.').expect("a header");
    for forged in [
        format!("{header}.{claims}.{signature}"),
        format!("{head}."),
        format!("{head}.AAAA"),
        head.to_owned(),
    ] {
        assert!(!accept(&json!([key]), &forged), "{forged}");
    }
}

#[test]
fn a_token_without_a_key_id_is_verified_with_every_key() {
    let (token, key) = signed(&json!({"alg": "ES256"}), &json!({}));
    assert!(accept(&json!([key]), &token));
}

#[test]
fn only_public_key_algorithms_are_accepted() {
    for alg in ["none", "None", "HS256", "ES256K", "", "rs256"] {
        assert!(Signed::of(&format!("{}.c2ln", text(&json!({"alg": alg}), &json!({})))).is_none(), "{alg}");
    }
}

#[test]
fn ed25519_and_rsa() {
    let text = text(&json!({"alg": "EdDSA", "kid": "two"}), &json!({}));
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).expect("a key");
    let token = format!("{text}.{}", encoded(pair.sign(text.as_bytes())));
    let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "two", "x": encoded(pair.public_key())});
    assert!(accept(&json!([key]), &token));
    let key = json!({"kty": "RSA", "n": RSA_MODULUS, "e": "AQAB"});
    assert!(accept(&json!([key]), RSA_TOKEN));
    assert!(!accept(&json!([key]), &RSA_TOKEN.replace("cC4hi", "cC4hj")));
}
