//! Values for unit tests.

use std::borrow::Borrow;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::{Kind, Object};

/// Returns the object in this JSON. Like the objects of stores, it is read leniently.
pub fn object<T: Kind>(value: impl Borrow<Value>) -> Arc<Object<T>> {
    Arc::new(serde_json::from_value(value.borrow().clone()).expect("objects are read leniently"))
}

/// Returns the time that many seconds after 1970 began.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

/// Returns the time in this text (RFC 3339).
pub fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Returns the time of a test.
pub fn now() -> Timestamp {
    time("2026-03-04T05:06:07Z")
}
