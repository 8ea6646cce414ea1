//! Objects of JSON as the decoder of Go reads them, on which clients rely: their keys are in any case, the last of several counts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::wire::pairs;

/// The members of an object in their order, and also those whose key is there twice.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Members<'a>(#[serde(borrow, deserialize_with = "pairs")] pub Vec<(String, &'a RawValue)>);
