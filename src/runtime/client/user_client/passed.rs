//! The identity of a user for another server of the project, which sends requests of its own on behalf of the user: the
//! token of the user, or the token of the daemon's account with the name of the user that it impersonates. The API server
//! checks that this account may impersonate, so the other server needs no trust in its clients.

use futures::future::ready;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::Config;
use kube::client::ConfigExt;
use serde::Serialize;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};

use super::{Credential, UserClient};
use crate::runtime::error::{ApiError, with_sources};

/// The identity of a user, as JSON. It is a secret.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct PassedIdentity {
    /// The token: of the user, or of the account that impersonates the user.
    pub token: String,
    /// The name of the impersonated user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The groups of the impersonated user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// The token of the daemon's account, as its requests to the API server have it. Kubernetes replaces it every hour.
#[derive(Clone)]
pub(super) struct AccountToken(
    BoxCloneSyncService<Request<Full<Bytes>>, Response<Option<HeaderValue>>, BoxError>,
);

impl AccountToken {
    /// Creates it for the account of a configuration.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub fn new(config: &Config) -> kube::Result<Self> {
        let authorization = service_fn(|request: Request<Full<Bytes>>| {
            let header = request.headers().get(AUTHORIZATION).cloned();
            ready(Ok::<_, BoxError>(Response::new(header)))
        });
        let service = ServiceBuilder::new().option_layer(config.auth_layer()?).service(authorization);
        Ok(Self(BoxCloneSyncService::new(service)))
    }

    async fn token(&self) -> Result<String, ApiError> {
        let answer = self.0.clone().oneshot(Request::new(Full::default())).await;
        let answer = answer.map_err(|error| ApiError::transient(with_sources(&*error)))?;
        let header = answer.into_body();
        let token = header.as_ref().and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        token.map(str::to_owned).ok_or_else(|| {
            let why = "the account of this daemon has no token, which another server could verify; expected a ServiceAccount";
            ApiError::Forbidden(why.to_owned())
        })
    }
}

impl UserClient {
    /// Returns the identity of a user for another server.
    ///
    /// # Errors
    /// When the daemon's account has no token to impersonate the user with.
    pub async fn passed(&self, user: &Credential) -> Result<PassedIdentity, ApiError> {
        if let Some(token) = user.bearer() {
            return Ok(PassedIdentity { token: token.to_owned(), user: None, groups: Vec::new() });
        }
        let no_account = || ApiError::Forbidden("this client does not support impersonation".to_owned());
        let account = self.account_token.as_ref().ok_or_else(no_account)?;
        let (name, groups) = user.impersonates().ok_or_else(no_account)?;
        Ok(PassedIdentity { token: account.token().await?, user: Some(name), groups })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::runtime::api_server::{ApiServer, Asked};

    #[tokio::test]
    async fn a_token_is_passed_as_it_is_and_an_impersonated_user_with_the_token_of_the_account() {
        let api = ApiServer::start(|_: &Asked| (404, Value::Null)).await;
        let mut config = api.config.clone();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        std::fs::write(&file, "of.the.account").expect("written");
        config.auth_info.token_file = Some(file.display().to_string());
        let client = UserClient::new(&config).expect("a client").impersonating(config).expect("a client");
        let json = async |credential: &Credential| {
            let passed = client.passed(credential).await.expect("an identity");
            serde_json::to_value(&passed).expect("JSON")
        };
        let own = Credential::token("of.ada").expect("a token");
        assert_eq!(json(&own).await, json!({"token": "of.ada"}));
        let groups = ["kubernetes:labs".to_owned()];
        let impersonated = Credential::impersonated("ada", &groups).expect("a user");
        assert_eq!(
            json(&impersonated).await,
            json!({"token": "of.the.account", "user": "ada", "groups": ["kubernetes:labs"]})
        );
        let passed = client.passed(&impersonated).await.expect("an identity");
        let other = Credential::passed(&passed).expect("a credential");
        assert_eq!(other.headers[AUTHORIZATION], "Bearer of.the.account");
        assert_eq!(
            [&other.headers["impersonate-user"], &other.headers["impersonate-group"]],
            ["ada", "kubernetes:labs"]
        );
        assert!(!other.is_of_account, "it is sent with the token that was passed");
        let reserved = PassedIdentity { user: Some("system:admin".to_owned()), ..passed };
        assert!(Credential::passed(&reserved).is_err());
    }

    #[tokio::test]
    async fn an_account_without_a_token_passes_no_impersonated_user() {
        let api = ApiServer::start(|_: &Asked| (404, Value::Null)).await;
        let client = UserClient::new(&api.config).expect("a client");
        let impersonated = Credential::impersonated("ada", &[]).expect("a user");
        assert!(client.passed(&impersonated).await.is_err(), "without impersonation");
        let client = client.impersonating(api.config.clone()).expect("a client");
        let error = client.passed(&impersonated).await.err().expect("no token");
        assert!(error.to_string().contains("has no token"), "{error}");
    }
}
