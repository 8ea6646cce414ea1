//! JSON objects as Go's decoder reads them, which clients rely on: keys match in any case, and the last duplicate
//! counts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::wire::pairs;

/// The members of an object in their order, including duplicate keys.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Members<'a>(#[serde(borrow, deserialize_with = "pairs")] pub Vec<(String, &'a RawValue)>);
