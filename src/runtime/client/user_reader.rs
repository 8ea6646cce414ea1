//! Questions in the name of a user.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::Config;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Sender;
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::plan::KindInfo;

/// How long an answer may take: somebody waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Where the API server says who a token is of; Kubernetes has it since 1.28.
const WHO: (&str, &str, &str) = ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview");
/// Where it says what the user of a token may do.
const MAY: (&str, &str, &str) =
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview");

/// Asks the API server with the token of a user and nothing else: the API server decides who that is and what he may do and
/// see. Of the daemon's own configuration it has the address of the API server and how its certificate is checked; a client
/// certificate in it would authenticate the daemon in place of the user.
#[derive(Clone)]
pub struct UserReader(Sender);

/// What a user may or may not do with a subresource of an object.
#[derive(Debug, Clone, Copy)]
pub struct Right<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The kind of the object.
    pub kind: KindInfo,
    /// The subresource.
    pub subresource: &'a str,
    /// The object.
    pub object: &'a ObjectKey,
}

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

    /// Reads an object. `token` is the user's, without `Bearer`, as in the functions below.
    ///
    /// # Errors
    /// What the API server answers; [`ApiError::Forbidden`] for what cannot be a token: sent as it is, it could count
    /// as no token, and the request as one of the anonymous user.
    pub async fn get<T: Kind>(&self, token: &str, key: &ObjectKey) -> Result<Object<T>, ApiError> {
        let path = format!("{}/{}", KindInfo::of::<T>().path(&key.namespace), key.name);
        self.ask(token, Method::GET, &path, Bytes::new()).await
    }

    /// The name of the user. It is what the API server says of the token, never what the token says of itself.
    ///
    /// # Errors
    /// As of [`UserReader::get`]; [`ApiError::Forbidden`] also for a user without a name.
    pub async fn name(&self, token: &str) -> Result<String, ApiError> {
        let answer = self.review(token, WHO, &Value::Null).await?;
        match answer.pointer("/status/userInfo/username").and_then(Value::as_str) {
            Some(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => Err(ApiError::Forbidden("the API server does not say whose token this is".to_owned())),
        }
    }

    /// Whether the user has a right.
    ///
    /// # Errors
    /// As of [`UserReader::get`].
    pub async fn may(&self, token: &str, right: Right<'_>) -> Result<bool, ApiError> {
        let Right { verb, kind, subresource, object } = right;
        let attributes = json!({
            "verb": verb,
            "group": kind.group,
            "version": kind.version,
            "resource": kind.plural,
            "subresource": subresource,
            "namespace": object.namespace,
            "name": object.name,
        });
        let answer = self.review(token, MAY, &json!({"resourceAttributes": attributes})).await?;
        Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
    }

    /// Has the API server fill in a review, which it does not store.
    async fn review(&self, token: &str, review: (&str, &str, &str), spec: &Value) -> Result<Value, ApiError> {
        let (group, plural, kind) = review;
        let mut body = json!({"apiVersion": format!("{group}/v1"), "kind": kind});
        if !spec.is_null() {
            body["spec"] = spec.clone();
        }
        self.ask(token, Method::POST, &format!("/apis/{group}/v1/{plural}"), body.to_string().into()).await
    }

    async fn ask<A: DeserializeOwned>(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<A, ApiError> {
        let no_token = || ApiError::Forbidden("this is no token".to_owned());
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(no_token());
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| no_token())?;
        bearer.set_sensitive(true);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(AUTHORIZATION, bearer)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| ApiError::Invalid(error.to_string()))?;
        decoded(&self.0.send(request, TIMEOUT).await?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::instance::InstanceKind;
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
            let error = reader.name(token).await.expect_err("no token");
            assert!(matches!(error, ApiError::Forbidden(_)), "{token:?}: {error}");
        }
        assert!(api.asked().is_empty(), "the anonymous user is not asked for");
        assert_eq!(read("ey.J-h_b").await.expect("a Service").name(), "s");
        assert_eq!(api.lines(), ["GET /api/v1/namespaces/ns/services/s"]);
    }

    #[tokio::test]
    async fn a_user_has_the_name_and_the_rights_that_the_api_server_says() {
        for (answer, name, may) in [
            (json!({"userInfo": {"username": "ada"}, "allowed": true}), Some("ada"), true),
            (json!({"userInfo": {"username": ""}, "allowed": false}), None, false),
            (json!({"allowed": "true"}), None, false),
            (json!({}), None, false),
        ] {
            let status = json!({"status": answer});
            let api = ApiServer::start(move |_| (201, status.clone())).await;
            let reader = UserReader::new(&api.config).expect("a reader");
            assert_eq!(reader.name("token").await.ok().as_deref(), name, "{answer}");
            let object = ObjectKey::new("ns", "vm");
            let kind = KindInfo::of::<InstanceKind>();
            let right = Right { verb: "create", kind, subresource: "terminal", object: &object };
            assert_eq!(reader.may("token", right).await, Ok(may), "{answer}");
            let [who, asked] = api.asked().try_into().expect("two requests");
            assert_eq!(who.line, "POST /apis/authentication.k8s.io/v1/selfsubjectreviews");
            assert_eq!(asked.line, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
            let attributes = &asked.body["spec"]["resourceAttributes"];
            for (member, value) in [
                ("verb", "create"),
                ("group", "crownlabs.polito.it"),
                ("resource", "instances"),
                ("subresource", "terminal"),
                ("namespace", "ns"),
                ("name", "vm"),
            ] {
                assert_eq!(attributes[member], value, "{attributes}");
            }
        }
    }
}
