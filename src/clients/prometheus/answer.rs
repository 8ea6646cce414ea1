//! Decodes the fields of Prometheus' query responses that are read.

use std::borrow::Cow;

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::error::{QueryError, Result};
use crate::api::wire::pairs;
use crate::clients::http::Answer;

/// A series of an instant vector.
#[derive(Debug, Deserialize)]
pub(super) struct Sample<'a> {
    /// In the order of the response.
    #[serde(borrow, rename = "metric", deserialize_with = "pairs")]
    labels: Vec<(Text<'a>, Text<'a>)>,
    #[serde(borrow)]
    value: (f64, Text<'a>),
}

/// A response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    data: Option<Data<'a>>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    result_type: Text<'a>,
    /// Decoded once the type is known.
    #[serde(borrow)]
    result: &'a serde_json::value::RawValue,
}

/// Text that is copied only if it contains escapes.
#[derive(Debug, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Sample<'_> {
    /// The value of a label; empty if the label is missing, as in `PromQL`.
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| label.0 == name).map_or("", |(_, value)| &value.0)
    }

    /// The value of the series.
    pub fn value(&self) -> f64 {
        // Prometheus writes infinity as `+Inf`, and invalid numbers as `NaN`.
        self.value.1.0.parse().unwrap_or(f64::NAN)
    }

    /// The value as a time in seconds since 1970.
    pub fn time(&self) -> Option<Timestamp> {
        let since_1970 = SignedDuration::try_from_secs_f64(self.value()).ok()?;
        Timestamp::from_duration(since_1970).ok()
    }
}

/// Parses the series in the response to an instant query, which must be a vector. Warnings of Prometheus that data
/// may be missing are added to `warnings`.
pub(super) fn vector<'a>(answer: &'a Answer, warnings: &mut Vec<String>) -> Result<Vec<Sample<'a>>> {
    let unknown = || match answer.status {
        StatusCode::OK => QueryError::BadAnswer,
        status => QueryError::Status(status),
    };
    let envelope: Envelope<'a> = serde_json::from_slice(&answer.body).map_err(|_| unknown())?;
    if envelope.status.0 != "success" {
        return Err(QueryError::Refused(envelope.error));
    }
    let data = envelope.data.ok_or_else(unknown)?;
    if data.result_type.0 != "vector" {
        return Err(QueryError::NotAVector(data.result_type.0.into_owned()));
    }
    warnings.extend(envelope.warnings);
    serde_json::from_str(data.result.get()).map_err(|_| QueryError::BadAnswer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        let status = StatusCode::from_u16(status).unwrap();
        Answer { status, location: None, body: body.to_owned().into() }
    }

    fn refusal(status: u16, body: &str) -> QueryError {
        vector(&answer(status, body), &mut Vec::new()).unwrap_err()
    }

    #[test]
    fn a_vector_is_read() {
        let body = r#"{"status": "success", "warnings": ["a store is away"], "infos": ["x"], "data": {
            "resultType": "vector", "analysis": {}, "result": [
                {"metric": {"a": "x\"y", "b": "1"}, "value": [1790000123.456, "1790000100"]},
                {"metric": {}, "value": [1790000123, "NaN"]},
                {"metric": {}, "value": [1790000123, "1e300"]}
            ]}}"#;
        let (answer, mut warnings) = (answer(200, body), Vec::new());
        let vector = vector(&answer, &mut warnings).unwrap();
        assert_eq!((vector[0].label("a"), vector[0].label("b"), vector[0].label("c")), ("x\"y", "1", ""));
        assert_eq!(vector[0].time(), Some(Timestamp::from_second(1_790_000_100).unwrap()));
        assert_eq!((vector[1].time(), vector[2].time()), (None, None));
        assert_eq!(warnings, ["a store is away"]);
    }

    #[test]
    fn a_result_that_is_not_a_vector_is_rejected() {
        let bad = r#"{"status":"error","errorType":"bad_data","error":"parse error: no"}"#;
        assert_eq!(refusal(400, bad), QueryError::Refused("parse error: no".to_owned()));
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#;
        assert_eq!(refusal(200, scalar), QueryError::NotAVector("scalar".to_owned()));
        assert_eq!(refusal(502, "<html>"), QueryError::Status(StatusCode::BAD_GATEWAY));
        for body in ["", "{}", "[]", r#"{"status":"success"}"#, "<html>"] {
            assert_eq!(refusal(200, body), QueryError::BadAnswer, "{body}");
        }
        let matrix =
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"values":[]}]}}"#;
        assert_eq!(refusal(200, matrix), QueryError::BadAnswer);
    }
}
