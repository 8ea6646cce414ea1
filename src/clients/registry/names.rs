//! Parsing of registry responses, with limits.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::{QueryError, Result};

/// The limit for the repositories in a registry, and for the tags of a repository.
pub(super) const MOST: usize = 10_000;
/// The limit for the error codes in a message.
const MOST_CODES: usize = 3;

/// A list that keeps at most one entry above [`MOST`].
pub(super) struct Bounded<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Bounded<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut kept = Vec::new();
                while kept.len() <= MOST {
                    match items.next_element()? {
                        Some(item) => kept.push(item),
                        None => return Ok(Bounded(kept)),
                    }
                }
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Bounded(kept))
            }
        }
        deserializer.deserialize_seq(List(std::marker::PhantomData))
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

/// Whether a body contains errors. Responses with a status of success may contain errors, too.
fn has_errors(body: &[u8]) -> bool {
    serde_json::from_slice::<Errors>(body).is_ok_and(|Errors { errors }| !errors.0.is_empty())
}

/// Parses a response. `what` is its expected content.
pub(super) fn decoded<'de, T: Deserialize<'de>>(request: &str, body: &'de [u8], what: &str) -> Result<T> {
    // The message of the decoder may repeat data of the response.
    let problem = match serde_json::from_slice(body) {
        Ok(value) if !has_errors(body) => return Ok(value),
        Ok(_) => format!("the answer has errors{}", in_parentheses(&codes(body))),
        Err(_) if has_errors(body) => format!("the answer has errors{}", in_parentheses(&codes(body))),
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
    let read: Result<T> = decoded(request, body, what);
    let problem = || QueryError::BadAnswer {
        request: request.to_owned(),
        problem: format!("the answer is not a {what}"),
    };
    read.and_then(|value| if is_object(body) { Ok(value) } else { Err(problem()) })
}
