//! The endpoint for Keycloak's account events. With it, a Tenant is reconciled as soon as its user has confirmed the
//! e-mail address, and not only at the next periodic reconciliation.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use ring::hmac;
use serde::Deserialize;

use crate::runtime::ObjectKey;
use crate::runtime::files::FileCell;
use crate::runtime::gate::Gate;
use crate::runtime::http_server::{Handler, immediate, text};
use crate::runtime::queue::Queue;

/// The path of the endpoint.
const PATH: &str = "/tenant-webhook";
/// The header with the signature of Keycloak's event plugin: the HMAC-SHA256 of the body in hexadecimal digits.
const SIGNATURE: &str = "x-keycloak-signature";

/// The fields of an event that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "type")]
    type_: String,
    auth_details: Option<Subject>,
    representation: Option<String>,
}

/// The account in an event.
#[derive(Deserialize)]
struct Subject {
    username: String,
}

/// The handler of events. Each event adds the Tenant of its account, if it exists, to `queue` ahead of periodic work.
/// This happens at most once a second, because any client that reaches the port can send events. A replica that does
/// not lead (`gate` is closed) answers 503, so that the event is sent again and reaches the leader. With a `secret`,
/// only events that are signed with it are accepted. None are accepted while the secret's file is missing or empty.
pub fn handler(
    queue: Arc<Queue>,
    gate: Gate,
    secret: Option<FileCell<Vec<u8>>>,
    exists: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> Handler {
    immediate(move |request| {
        if request.uri().path() != PATH {
            return text(StatusCode::NOT_FOUND, "no such page\n");
        }
        let is_right = |secret: Vec<u8>| is_signed(request.headers(), request.body(), &secret);
        if secret.as_ref().is_some_and(|secret| !secret.get().is_some_and(is_right)) {
            return text(StatusCode::UNAUTHORIZED, "the signature of the event is invalid\n");
        }
        match username(request.body()) {
            Err(problem) => text(StatusCode::BAD_REQUEST, format!("{problem}\n")),
            Ok(_) if !gate.is_open() => text(StatusCode::SERVICE_UNAVAILABLE, "this replica does not lead\n"),
            Ok(tenant) => {
                if exists(&tenant) {
                    queue.add_limited(ObjectKey::new("", tenant));
                }
                text(StatusCode::OK, "ok\n")
            }
        }
    })
}

/// The name of the account that an event is about.
fn username(body: &[u8]) -> Result<String, String> {
    let event: Event = serde_json::from_slice(body).map_err(|error| format!("not an event: {error}"))?;
    let name = match event.type_.as_str() {
        "access.CUSTOM_REQUIRED_ACTION" => event.auth_details.map(|subject| subject.username),
        "admin.USER-UPDATE" => {
            let text = event.representation.unwrap_or_default();
            let subject: Subject = serde_json::from_str(&text)
                .map_err(|error| format!("the representation in the event is not a user: {error}"))?;
            Some(subject.username)
        }
        other => return Err(format!("events of type {other:?} are not expected here")),
    };
    name.filter(|name| !name.is_empty()).ok_or_else(|| "the event has no user name".to_owned())
}

fn is_signed(headers: &HeaderMap, body: &[u8], secret: &[u8]) -> bool {
    // Anyone can create a signature with an empty secret.
    if secret.is_empty() {
        return false;
    }
    let signature = headers.get(SIGNATURE).and_then(|value| value.to_str().ok()).and_then(bytes);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    signature.is_some_and(|signature| hmac::verify(&key, body, &signature).is_ok())
}

/// Decodes hexadecimal digits, two digits per byte; `None` if they are invalid.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| pair.len() == 2))
        .collect()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use http::Request;
    use hyper::body::Bytes;
    use serde_json::json;

    use super::*;

    fn ask(gate: &Gate, secret: Option<&str>, path: &str, signature: &str, body: &str) -> (u16, usize) {
        let queue = Arc::new(Queue::new("test"));
        let secret = secret.map(|secret| FileCell::holding(secret.as_bytes().to_vec()));
        let request = Request::builder().uri(path).header(SIGNATURE, signature);
        let request = request.body(Bytes::from(body.to_owned())).expect("a request");
        let exists = |name: &str| name == "ada";
        let response = handler(Arc::clone(&queue), gate.clone(), secret, exists)(request).now_or_never();
        (response.expect("an immediate response").status().as_u16(), queue.waiting())
    }

    fn verified(name: &str) -> String {
        json!({"type": "access.CUSTOM_REQUIRED_ACTION", "authDetails": {"username": name}}).to_string()
    }

    #[test]
    fn an_event_asks_for_its_tenant() {
        let ask = |body: &str| ask(&Gate::open(), None, PATH, "", body);
        assert_eq!(ask(&verified("ada")), (200, 1));
        assert_eq!(ask(&verified("nobody")), (200, 0));
        let updated =
            json!({"type": "admin.USER-UPDATE", "representation": "{\"username\": \"ada\", \"id\": 1}"});
        assert_eq!(ask(&updated.to_string()), (200, 1));
        for bad in [
            "",
            "{}",
            "[]",
            &verified(""),
            r#"{"type": "access.LOGIN"}"#,
            r#"{"type": "access.CUSTOM_REQUIRED_ACTION"}"#,
            r#"{"type": "admin.USER-UPDATE", "representation": "no"}"#,
            r#"{"type": "admin.USER-UPDATE", "representation": {"username": "ada"}}"#,
        ] {
            assert_eq!(ask(bad), (400, 0), "{bad}");
        }
        assert_eq!(super::tests::ask(&Gate::open(), None, "/", "", &verified("ada")), (404, 0));
    }

    #[test]
    fn a_replica_that_does_not_lead_refuses_events() {
        assert_eq!(ask(&Gate::closed(), None, PATH, "", &verified("ada")), (503, 0));
    }

    #[test]
    fn with_a_secret_only_signed_events_count() {
        // RFC 4231, test case 2.
        let (secret, body) = ("Jefe", "what do ya want for nothing?");
        let right = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let mut headers = HeaderMap::new();
        headers.insert(SIGNATURE, right.parse().expect("text"));
        assert!(is_signed(&headers, body.as_bytes(), secret.as_bytes()));
        assert!(!is_signed(&headers, b"something else", secret.as_bytes()));
        for wrong in ["", "0", "zz", "5b", &right[1..], &right.replace('5', "6")] {
            assert_eq!(ask(&Gate::open(), Some(secret), PATH, wrong, &verified("ada")), (401, 0), "{wrong}");
        }
    }
}
