//! Reads in the name of a user.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, Request};
use http_body_util::Full;
use kube::Config;

use super::Sender;
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::plan::KindInfo;

/// How long a read may take: somebody waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads objects with the token of a user and nothing else: the API server decides who that is and what he may see.
/// Of the daemon's own configuration it has the address of the API server and how its certificate is checked; a client
/// certificate in it would authenticate the daemon in place of the user.
#[derive(Clone)]
pub struct UserReader(Sender);

impl UserReader {
    /// A reader for the API server of the daemon's configuration.
    ///
    /// # Errors
    /// When the configuration cannot be used, for example an unreadable certificate of the authority.
    pub fn new(config: &Config) -> kube::Result<Self> {
        let mut without_identity = Config::new(config.cluster_url.clone());
        without_identity.root_cert.clone_from(&config.root_cert);
        without_identity.root_cert_file.clone_from(&config.root_cert_file);
        without_identity.accept_invalid_certs = config.accept_invalid_certs;
        without_identity.tls_server_name.clone_from(&config.tls_server_name);
        Sender::new(without_identity).map(Self)
    }

    /// Reads an object. `token` is the user's, without `Bearer`.
    ///
    /// # Errors
    /// What the API server answers; [`ApiError::Forbidden`] for what cannot be a token: sent as it is, it could count
    /// as no token, and the request as one of the anonymous user.
    pub async fn get<T: Kind>(&self, token: &str, key: &ObjectKey) -> Result<Object<T>, ApiError> {
        let no_token = || ApiError::Forbidden("this is no token".to_owned());
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(no_token());
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| no_token())?;
        bearer.set_sensitive(true);
        let request = Request::get(format!("{}/{}", KindInfo::of::<T>().path(&key.namespace), key.name))
            .header(AUTHORIZATION, bearer)
            .header(ACCEPT, "application/json")
            .body(Full::default())
            .map_err(|error| ApiError::Invalid(error.to_string()))?;
        decoded(&self.0.send(request, TIMEOUT).await?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::ServiceKind;
    use crate::runtime::api_server::ApiServer;

    #[tokio::test]
    async fn what_cannot_be_a_token_is_not_sent() {
        let service = json!({"kind": "Service", "metadata": {"name": "s", "namespace": "ns"}});
        let api = ApiServer::start(move |_| (200, service.clone())).await;
        let reader = UserReader::new(&api.config).expect("a reader");
        let read = async |token| reader.get::<ServiceKind>(token, &ObjectKey::new("ns", "s")).await;
        for token in ["", " ", "two words", "a\tb", "a\nb", "t\u{f6}ken"] {
            let error = read(token).await.expect_err("no token");
            assert!(matches!(error, ApiError::Forbidden(_)), "{token:?}: {error}");
        }
        assert!(api.asked().is_empty(), "the anonymous user is not asked for");
        assert_eq!(read("ey.J-h_b").await.expect("a Service").name(), "s");
        assert_eq!(api.lines(), ["GET /api/v1/namespaces/ns/services/s"]);
    }
}
