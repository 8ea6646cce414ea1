//! The answers of registries, read with bounds.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::QueryError;

/// The most repositories in a registry, and the most tags of a repository.
pub(super) const MOST: usize = 10_000;
/// The most codes of errors that are repeated.
const MOST_CODES: usize = 3;

/// A list of which no more than one entry above [`MOST`] is kept.
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

/// An error in an answer.
#[derive(Deserialize)]
struct ErrorItem {
    #[serde(default)]
    code: Option<String>,
}

/// An answer that says what is wrong, of all registries and of Harbor.
#[derive(Deserialize)]
struct Errors {
    errors: Bounded<ErrorItem>,
}

/// The codes of the errors that a body has, such as `NAME_UNKNOWN`; empty if it has none.
pub(super) fn codes(body: &[u8]) -> Vec<String> {
    let is_code = |code: &String| {
        (1..=40).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let errors = serde_json::from_slice(body).map(|Errors { errors }| errors.0).unwrap_or_default();
    errors.into_iter().filter_map(|error| error.code).filter(is_code).take(MOST_CODES).collect()
}

/// Codes of errors for the end of a sentence.
pub(super) fn in_parentheses(codes: &[String]) -> String {
    if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) }
}

/// Whether a body says that there are errors, also with a status of success.
fn has_errors(body: &[u8]) -> bool {
    serde_json::from_slice::<Errors>(body).is_ok_and(|Errors { errors }| !errors.0.is_empty())
}

/// Reads an answer. `what` says what it should be.
pub(super) fn decoded<'de, T: Deserialize<'de>>(
    request: &str,
    body: &'de [u8],
    what: &str,
) -> Result<T, QueryError> {
    // The words of the decoder may repeat what it read.
    let problem = match serde_json::from_slice(body) {
        Ok(value) if !has_errors(body) => return Ok(value),
        Ok(_) => format!("the answer has errors{}", in_parentheses(&codes(body))),
        Err(_) if has_errors(body) => format!("the answer has errors{}", in_parentheses(&codes(body))),
        Err(error) if error.is_eof() => "the answer ends early".to_owned(),
        Err(error) if error.is_syntax() => "the answer is no JSON".to_owned(),
        Err(_) => format!("the answer is no {what}"),
    };
    Err(QueryError::BadAnswer { request: request.to_owned(), problem })
}

/// Whether a body is an object of JSON, if it is JSON at all.
pub(super) fn is_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{")
}

/// Reads an answer that has to be an object: a list would be taken for one, member by member.
pub(super) fn object<'de, T: Deserialize<'de>>(
    request: &str,
    body: &'de [u8],
    what: &str,
) -> Result<T, QueryError> {
    let read: Result<T, QueryError> = decoded(request, body, what);
    let problem =
        || QueryError::BadAnswer { request: request.to_owned(), problem: format!("the answer is no {what}") };
    read.and_then(|value| if is_object(body) { Ok(value) } else { Err(problem()) })
}
