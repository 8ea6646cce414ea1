//! The status URL of an exam: it says whether the Instance is still needed.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Response, Url};
use serde_json::Value;
use tracing::info;

use super::addresses::AddressRules;
use super::http::{HttpClient, HttpError, SetupError};
use crate::runtime::conditions::whole_seconds;
use crate::runtime::outages::{Outages, System};

/// The result of a query of the status URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is still needed.
    Keep {
        /// The status of the response, from 200 to 299.
        code: u16,
        /// The end of the exam, in whole seconds, if the response contains it. An error is the end of a sentence and
        /// repeats nothing of the response.
        deadline: Result<Option<Timestamp>, String>,
    },
    /// It is no longer needed.
    Gone {
        /// The status of the response, 404 or 410.
        code: u16,
    },
    /// The result is not reliable.
    Failed {
        /// The reason, as the end of a sentence. It contains no part of the URL.
        reason: String,
        /// Whether the server sent an object of the expected form, but with a status that decides nothing.
        has_answered: bool,
    },
}

/// Queries status URLs.
#[derive(Debug, Clone)]
pub struct StatusClient {
    http: HttpClient,
    rules: AddressRules,
    outages: Outages,
}

impl StatusClient {
    /// A client that verifies the certificates of servers against the authorities in `ca_file`, or against those of
    /// the platform if it is empty. It connects only to addresses that `rules` allow. A check may take
    /// `timeout`, including all redirects.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be read.
    pub fn new(ca_file: &str, timeout: Duration, rules: AddressRules) -> Result<Self, SetupError> {
        let http = HttpClient::for_any_url(ca_file, timeout, rules.clone())?;
        Ok(Self { http, rules, outages: Outages::default() })
    }

    /// Returns the client, which then reports outages to `outages`.
    #[must_use]
    pub fn reporting_to(self, outages: &Outages) -> Self {
        Self { outages: outages.clone(), ..self }
    }

    /// Queries a URL. Any status from 200 to 299 keeps the Instance, 404 and 410 end it regardless of the body, and
    /// every other response is a failure.
    pub async fn check(&self, url: &str) -> Verdict {
        let Some(url) = parse(url) else {
            return failed("it is not an http or https URL");
        };
        let host = host_and_port(&url).unwrap_or_default();
        let (verdict, works) = self.query(url, &host).await;
        // The log contains only the server, with the same text as in the status, because the rest of the URL may
        // contain a secret.
        match &verdict {
            Verdict::Failed { reason, .. } if !works => {
                self.outages.failed(System::ExamServer, &host, reason);
            }
            _ => self.outages.works(System::ExamServer, &host),
        }
        verdict
    }

    /// Returns the verdict, and whether the server works. It does if it answers with a status below 500:
    /// other status URLs of the server may be valid even if it rejects this one.
    async fn query(&self, url: Url, host: &str) -> (Verdict, bool) {
        if let Err(refused) = self.rules.check(&url) {
            return (failed(told(host, HttpError::NoAnswer(refused.to_string()))), false);
        }
        match self.http.begin(self.http.client.get(url)).await {
            Ok(response) => {
                let works = response.status().as_u16() < 500;
                (self.verdict(response, host).await, works)
            }
            Err(error) => {
                let works = matches!(error, HttpError::Redirect(_));
                (failed(told(host, error)), works)
            }
        }
    }

    async fn verdict(&self, response: Response, host: &str) -> Verdict {
        let status = response.status();
        let code = status.as_u16();
        if matches!(code, 404 | 410) {
            return Verdict::Gone { code };
        }
        let body = self.http.body(response).await;
        if !status.is_success() {
            let has_answered = body.is_ok_and(|body| decode(&body).is_ok());
            return Verdict::Failed { reason: format!("it answered {code}"), has_answered };
        }
        let deadline = match body {
            Ok(body) if body.trim_ascii().is_empty() => Ok(None),
            Ok(body) => decode(&body),
            Err(error) => Err(told(host, error)),
        };
        Verdict::Keep { code, deadline }
    }
}

fn failed(reason: impl Into<String>) -> Verdict {
    Verdict::Failed { reason: reason.into(), has_answered: false }
}

/// Returns the error message for the user who chose the URL. Details such as whether a name resolves, to which kind
/// of address, and whether a server listens there would reveal the network of the daemon, so only the log contains
/// them.
fn told(host: &str, error: HttpError) -> String {
    match error {
        HttpError::NoAnswer(problem) => {
            info!(host, problem, "a status URL is not reachable");
            "it is not reachable".to_owned()
        }
        other => other.to_string(),
    }
}

fn parse(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// Host and port of a URL for messages. The rest may contain a secret.
pub fn host(url: &str) -> Option<String> {
    host_and_port(&parse(url)?)
}

fn host_and_port(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// Parses the deadline in a response: a JSON object with the optional members `error` and `idnumber` (text) and
/// `deadline` (a time). As in Go, the case of keys does not matter, `null` counts as absent, and other members are
/// ignored.
///
/// # Errors
/// When the response has another form. The message is the end of a sentence and repeats nothing of the response.
fn decode(body: &[u8]) -> Result<Option<Timestamp>, String> {
    let value = serde_json::from_slice(body).map_err(|_| "the answer is not JSON".to_owned())?;
    let members = match value {
        Value::Object(members) => members,
        Value::Null => return Ok(None),
        _ => return Err("the answer is not a JSON object".to_owned()),
    };
    let mut deadline = None;
    for (key, value) in members {
        let key = key.to_lowercase();
        match (key.as_str(), value) {
            (_, Value::Null) | ("error" | "idnumber", Value::String(_)) => {}
            ("error" | "idnumber", _) => return Err(format!("its {key} is not text")),
            ("deadline", value) => {
                let time = value.as_str().and_then(time).ok_or(
                    "its deadline is not a time with a time zone, such as 2026-01-31T12:00:00Z".to_owned(),
                )?;
                deadline = (time > ZERO).then_some(time);
            }
            _ => {}
        }
    }
    Ok(deadline)
}

/// The first second of the year 1, which Go uses for a missing time.
const ZERO: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// Parses a time in RFC 3339 as whole seconds, from the years 1 to 9999.
fn time(text: &str) -> Option<Timestamp> {
    // The parser also accepts signed years and other extensions, which Kubernetes does not.
    let (date, _) = text.split_at_checked(10)?;
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let time = whole_seconds(text.parse().ok().filter(|_| is_date)?);
    (time >= ZERO).then_some(time)
}
