//! Which refusals count. An API server that has just started refuses every request until it has loaded the rules of its
//! authorizer, and every token until it has loaded the keys of the issuer.

use std::time::Duration;

use http::{Method, StatusCode};
use tokio::time::Instant;

use super::{Content, Credential, Effect, TIMEOUT, UserClient, WHO, empty, request};
use crate::runtime::client::{Answered, refusal};
use crate::runtime::error::ApiError;
use crate::runtime::single_flight::SingleFlight;

/// How long a readiness counts, so that users who reload a page do not multiply the probes. The API server does
/// not limit the rate of probes.
const READINESS_FOR: Duration = Duration::from_secs(1);

/// The last readiness of the API server: the time, and the status code of the response to the probe.
pub(super) type Readiness = SingleFlight<(Instant, StatusCode), ApiError>;

impl UserClient {
    /// Returns the error of a request. A refusal becomes [`ApiError::Transient`] while the API server is not ready, or
    /// does not accept the credential: [`UserClient::name`] was successful with it before.
    pub(super) async fn confirmed(&self, user: &Credential, error: ApiError) -> ApiError {
        match error {
            // The API server calls webhooks only after it has authorized the request.
            ApiError::Forbidden(why) if !why.starts_with("admission webhook") => {
                match self.readiness(user).await {
                    Ok(StatusCode::OK) => ApiError::Forbidden(why),
                    Ok(code) => ApiError::transient(format!("the API server is not ready ({code}): {why}")),
                    Err(error) => error,
                }
            }
            error => error,
        }
    }

    /// Returns the readiness of the API server, as the status code of a response to the user.
    async fn readiness(&self, user: &Credential) -> Result<StatusCode, ApiError> {
        let last = &self.readiness[usize::from(user.is_of_account)];
        let is_recent = |(since, _): &(Instant, StatusCode)| since.elapsed() < READINESS_FOR;
        let (_, code) = last.get(is_recent, async || self.probe(user).await).await?;
        // In a cluster that reserves its probes for other accounts, only the user's own name can be read without any
        // right.
        if code != StatusCode::FORBIDDEN {
            return Ok(code);
        }
        let code = self.who(user).await?.code;
        Ok(if code.is_success() { StatusCode::OK } else { code })
    }

    /// Requests the readiness of the API server.
    async fn probe(&self, user: &Credential) -> Result<(Instant, StatusCode), ApiError> {
        // The rights of impersonated users cover only objects.
        let credential = user.without_impersonation();
        let probe = request(&credential, Method::GET, "/readyz", Content::NONE)?;
        let answer = Box::pin(self.sender(&credential)?.exchange(probe, TIMEOUT));
        let code = self.breaker.pass(Effect::Read, answer).await?.code;
        Ok((Instant::now(), code))
    }

    /// Requests the review with the name of a user.
    pub(super) async fn who(&self, user: &Credential) -> Result<Answered, ApiError> {
        let (path, body) = empty(WHO);
        let review = request(user, Method::POST, &path, Content::json(&body))?;
        let answer = Box::pin(self.sender(user)?.exchange(review, TIMEOUT));
        self.breaker.pass(Effect::Read, answer).await
    }

    /// Returns the error of the review with the name of a user.
    pub(super) async fn unnamed(&self, user: &Credential, answered: &Answered) -> ApiError {
        let error = refusal(answered);
        if answered.code == StatusCode::UNAUTHORIZED { error } else { self.confirmed(user, error).await }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::instance::InstanceKind;
    use crate::runtime::ObjectKey;
    use crate::runtime::api_server::{ApiServer, Asked, refused};
    use crate::runtime::plan::KindInfo;

    const PROBE: &str = "GET /readyz";
    const REVIEW: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";

    fn user() -> Credential {
        Credential::token("token").expect("a token")
    }

    /// Returns whether the refusals of an API server count, and the requests. It answers its probe and the review of a
    /// name with these status codes.
    async fn counts(user: &Credential, probe: u16, review: u16) -> (Vec<bool>, Vec<String>) {
        let api = ApiServer::start(move |asked: &Asked| match &*asked.line {
            PROBE => (probe, json!("ok")),
            REVIEW if review < 400 => (review, json!({"status": {"userInfo": {"username": "ada"}}})),
            REVIEW => refused(review, "", "no name"),
            _ => refused(403, "Forbidden", "instances is forbidden: User \"ada\" cannot"),
        })
        .await;
        let client = UserClient::new(&api.config).expect("a client");
        let client = client.impersonating(api.config.clone()).expect("a client");
        let key = ObjectKey::new("ns", "vm");
        let errors = [
            client.get::<InstanceKind>(user, &key).await.map(drop),
            client.list::<InstanceKind>(user, "ns", "").await.map(drop),
            client.delete_as(user, KindInfo::of::<InstanceKind>(), &key, "u1").await,
            client.rules(user, "ns").await.map(drop),
        ];
        let counts = errors.into_iter().map(|answer| match answer.expect_err("a refusal") {
            ApiError::Forbidden(_) => true,
            error if error.is_away() => false,
            error => panic!("{error}"),
        });
        (counts.collect(), api.lines())
    }

    #[tokio::test]
    async fn a_refusal_counts_if_the_api_server_is_ready() {
        let impersonated = Credential::impersonated("ada", &[]).expect("a credential");
        for credential in [user(), impersonated] {
            for (probe, review, expected) in [
                (200, 201, true),
                // It has loaded its rules, and one of its other checks fails.
                (500, 201, false),
                // It has not loaded its rules, so it refuses every request.
                (403, 403, false),
                // It has not loaded the keys of the issuer.
                (401, 401, false),
                // Only other accounts may request the probe.
                (403, 201, true),
                (403, 500, false),
            ] {
                let (counts, requests) = counts(&credential, probe, review).await;
                assert_eq!(counts, [expected; 4], "{probe} {review}");
                let probes = requests.iter().filter(|line| *line == PROBE).count();
                assert!((1..4).contains(&probes), "refusals share a probe: {requests:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_webhook_is_trusted_without_a_further_request() {
        let denied = "admission webhook \"quota\" denied the request: no";
        let api = ApiServer::start(move |_| refused(403, "Forbidden", denied)).await;
        let client = UserClient::new(&api.config).expect("a client");
        let error = client
            .delete_as(&user(), KindInfo::of::<InstanceKind>(), &ObjectKey::new("ns", "vm"), "u1")
            .await;
        assert_eq!(error, Err(ApiError::Forbidden(denied.to_owned())));
        assert_eq!(api.lines().len(), 1);
    }

    #[tokio::test]
    async fn a_token_that_is_not_accepted_belongs_to_nobody() {
        for (code, is_nobody) in [(401, true), (403, false), (503, false)] {
            let api = ApiServer::start(move |_| refused(code, "", "no")).await;
            let client = UserClient::new(&api.config).expect("a client");
            let error = client.name(&user()).await.expect_err("no name");
            assert_eq!(matches!(error, ApiError::Forbidden(_)), is_nobody, "{code}: {error}");
        }
    }
}
