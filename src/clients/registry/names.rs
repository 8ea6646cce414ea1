//! Parsing of registry responses, with limits.

use serde::{Deserialize, Deserializer};

use super::error::{QueryError, Result};
use crate::api::wire::at_most;

/// The limit for the repositories in a registry, and for the tags of a repository.
pub(super) const MOST: usize = 10_000;
/// The limit for the error codes in a message.
const MOST_CODES: usize = 3;

/// A list that keeps at most one entry above [`MOST`].
pub(super) struct Bounded<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        at_most(deserializer, MOST + 1).map(Self)
    }
}

/// An error in a response.
#[derive(Deserialize)]
struct ErrorItem {
    code: Option<String>,
}

/// An error response, in the form of all registries and of Harbor.
#[derive(Deserialize)]
struct Errors {
    errors: Bounded<ErrorItem>,
}

/// The error codes in a body, such as `NAME_UNKNOWN`; empty if it has none.
pub(super) fn codes(body: &[u8]) -> Vec<String> {
    let is_code = |code: &String| {
        (1..=40).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let errors = serde_json::from_slice(body).map(|Errors { errors }| errors.0).unwrap_or_default();
    errors.into_iter().filter_map(|error| error.code).filter(is_code).take(MOST_CODES).collect()
}

/// Formats error codes for the end of a sentence.
pub(super) fn in_parentheses(codes: &[String]) -> String {
    if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) }
}

/// Parses a response. `what` is its expected content.
pub(super) fn decoded<'de, T: Deserialize<'de>>(request: &str, body: &'de [u8], what: &str) -> Result<T> {
    // Responses with a status of success may contain errors, too.
    let has_errors = serde_json::from_slice(body).is_ok_and(|Errors { errors }| !errors.0.is_empty());
    // The message of the decoder may repeat data of the response.
    let problem = match serde_json::from_slice(body) {
        _ if has_errors => format!("the answer has errors{}", in_parentheses(&codes(body))),
        Ok(value) => return Ok(value),
        Err(error) if error.is_eof() => "the answer ends early".to_owned(),
        Err(error) if error.is_syntax() => "the answer is not JSON".to_owned(),
        Err(_) => format!("the answer is not a {what}"),
    };
    Err(QueryError::BadAnswer { request: request.to_owned(), problem })
}

/// Whether a body is a JSON object.
pub(super) fn is_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{")
}

/// Parses a response that must be an object. Otherwise the decoder would accept a list, member by member.
pub(super) fn object<'de, T: Deserialize<'de>>(request: &str, body: &'de [u8], what: &str) -> Result<T> {
    let value = decoded(request, body, what)?;
    if is_object(body) {
        return Ok(value);
    }
    let problem = format!("the answer is not a {what}");
    Err(QueryError::BadAnswer { request: request.to_owned(), problem })
}
