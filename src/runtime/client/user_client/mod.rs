//! Requests on behalf of users.

mod breaker;
mod call;
mod credential;
mod impersonation;
mod objects;
mod pages;
mod passed;
mod preconditions;
mod refusal;
mod rules;
mod upgrade;

pub use breaker::Silence;
pub use call::Call;
pub use credential::Credential;
pub use pages::Page;
pub use passed::PassedIdentity;
pub use preconditions::Preconditions;
pub use rules::Rules;
pub use upgrade::Upgrade;

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::Config;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::breaker::{Breaker, Effect};
use self::passed::AccountToken;
use self::refusal::Readiness;
use super::list::Listing;
use super::{Sender, refusal, status_of};
use crate::api::names::check_dns_label;
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::pieces::Piece;
use crate::runtime::plan::KindInfo;

/// The time limit of a response, and of each page of a list. A user is waiting for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The number of objects in one page of a list.
const PAGE: usize = 500;
/// The maximum number of objects in a list …
const MOST_OBJECTS: usize = 10_000;
/// … and their maximum size in bytes, as JSON: a user has to read the list.
const MOST_BYTES: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };

/// A review resource: its group, its plural name, its kind.
type Review = (&'static str, &'static str, &'static str);
/// Returns the user of a token; since Kubernetes 1.28.
const WHO: Review = ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview");
/// Returns whether the user of a token has a permission.
const MAY: Review = ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview");
/// Returns the permissions of a token's user in a namespace.
const RULES: Review = ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview");

/// Reads and writes with the credential of a user and nothing else: the API server decides who the user is and what
/// they may do and see. From the daemon's own configuration it uses only the address of the API server and the way to
/// verify its certificate; a client certificate would authenticate the daemon instead of the user. Only requests for
/// impersonated users have the identity of the daemon.
///
/// All functions return the API server's errors, with its messages. While the API server does not answer, they return
/// [`ApiError::Silent`] at once, if [`UserClient::watch_silence`] runs.
#[derive(Clone)]
pub struct UserClient {
    /// The sender without an identity.
    anonymous: Sender,
    /// The sender of probes, with its own connection: the other connections may be broken.
    prober: Sender,
    /// The sender of requests that continue in another protocol, without an identity.
    upgrades: Sender,
    breaker: Breaker,
    /// The sender with the daemon's identity, to impersonate users; `None` if impersonation is off.
    account: Option<Sender>,
    /// The same for requests that continue in another protocol.
    account_upgrades: Option<Sender>,
    /// The token of that identity.
    account_token: Option<AccountToken>,
    /// The last readiness of the API server, without and with the daemon's identity.
    readiness: Arc<[Readiness; 2]>,
}

/// A permission for a subresource of an object.
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

/// A change of an object; [`Preconditions`] adds the version that it applies to.
#[derive(Debug, Clone, Copy)]
pub enum Patch<'a> {
    /// A JSON merge patch (RFC 7386).
    Merge(&'a Value),
    /// The operations of a JSON patch (RFC 6902). A failed test operation is [`ApiError::Invalid`].
    Json(&'a Value),
}

/// The content of a request.
struct Content {
    media_type: &'static str,
    body: Bytes,
}

impl Content {
    const NONE: Self = Self { media_type: "application/json", body: Bytes::new() };

    fn json(body: &Value) -> Self {
        Self { body: body.to_string().into(), ..Self::NONE }
    }
}

impl UserClient {
    /// Creates a client for the API server of the daemon's configuration.
    ///
    /// # Errors
    /// When the configuration is invalid, for example because of an unreadable CA certificate.
    pub fn new(config: &Config) -> kube::Result<Self> {
        let mut without_identity = Config::new(config.cluster_url.clone());
        without_identity.root_cert.clone_from(&config.root_cert);
        without_identity.root_cert_file.clone_from(&config.root_cert_file);
        without_identity.accept_invalid_certs = config.accept_invalid_certs;
        without_identity.tls_server_name.clone_from(&config.tls_server_name);
        Ok(Self {
            anonymous: Sender::new(without_identity.clone())?,
            prober: Sender::new(without_identity.clone())?,
            upgrades: Sender::of_upgrades(without_identity)?,
            breaker: Breaker::default(),
            account: None,
            account_token: None,
            account_upgrades: None,
            readiness: Arc::default(),
        })
    }

    /// Adds impersonation of users, with the account of the configuration.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub fn impersonating(self, mut config: Config) -> kube::Result<Self> {
        // If a kubeconfig makes the daemon impersonate a user (`as`), that user would be sent along with the requesting
        // user.
        (config.auth_info.impersonate, config.auth_info.impersonate_groups) = (None, None);
        let (account, account_token) =
            (Some(Sender::new(config.clone())?), Some(AccountToken::new(&config)?));
        Ok(Self { account, account_token, account_upgrades: Some(Sender::of_upgrades(config)?), ..self })
    }

    /// Returns the sender for the requests of a user.
    fn sender(&self, user: &Credential) -> Result<&Sender, ApiError> {
        if !user.is_of_account {
            return Ok(&self.anonymous);
        }
        self.account
            .as_ref()
            .ok_or_else(|| ApiError::Forbidden("this client does not support impersonation".to_owned()))
    }

    /// Returns the name of the user, as reported by the API server. The claims of the token are never trusted.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] also if the API server does not accept the token, or returns no name.
    pub async fn name(&self, user: &Credential) -> Result<String, ApiError> {
        let answered = self.who(user).await?;
        if !answered.code.is_success() {
            return Err(Box::pin(self.unnamed(user, &answered)).await);
        }
        let answer: Value = decoded(&answered.body)?;
        match answer.pointer("/status/userInfo/username").and_then(Value::as_str) {
            Some(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => Err(ApiError::Forbidden("the API server returned no user name for this token".to_owned())),
        }
    }

    /// Whether the user has a permission.
    ///
    /// # Errors
    /// The error from the API server.
    pub async fn may(&self, user: &Credential, right: Right<'_>) -> Result<bool, ApiError> {
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
        let answer: Value = self.review(user, MAY, &json!({"resourceAttributes": attributes})).await?;
        Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
    }

    /// Returns all permissions of the user in a namespace.
    ///
    /// # Errors
    /// The error from the API server.
    pub async fn rules(&self, user: &Credential, namespace: &str) -> Result<Rules, ApiError> {
        let answer: rules::Answer = self.review(user, RULES, &json!({"namespace": namespace})).await?;
        Ok(answer.status)
    }

    /// Lists the objects of a namespace, or of all namespaces if it is empty. `query` contains the encoded parameters
    /// that select them.
    ///
    /// # Errors
    /// The error from the API server; [`ApiError::TooLong`] for more than 10,000 objects or 16 MiB.
    pub async fn list<T: Kind>(
        &self,
        user: &Credential,
        namespace: &str,
        query: &str,
    ) -> Result<Vec<Object<T>>, ApiError> {
        self.list_as(user, KindInfo::of::<T>(), namespace, query).await
    }

    /// Like [`UserClient::list`], but decodes only the fields of `A` of each object.
    ///
    /// # Errors
    /// As for [`UserClient::list`].
    pub async fn list_as<A: DeserializeOwned + Send>(
        &self,
        user: &Credential,
        kind: KindInfo,
        namespace: &str,
        query: &str,
    ) -> Result<Vec<A>, ApiError> {
        let path = collection(kind, namespace)?;
        let listing = Listing { path: &path, query, page: PAGE, user: &user.headers, limit: TIMEOUT };
        let too_long = || {
            let of =
                if namespace.is_empty() { String::new() } else { format!(" of the namespace {namespace}") };
            let most = MOST_BYTES >> 20;
            ApiError::TooLong(format!(
                "the list of {}{of} has more than {MOST_OBJECTS} objects or {most} MiB",
                kind.plural
            ))
        };
        let (mut objects, mut bytes) = (Vec::new(), 0);
        let mut take = |piece: Piece<'_>| {
            let Piece::Whole(object) = piece else { return Err(too_long()) };
            bytes += object.len();
            if objects.len() == MOST_OBJECTS || bytes > MOST_BYTES {
                return Err(too_long());
            }
            objects.push(decoded(object)?);
            Ok(())
        };
        let listed = Box::pin(self.sender(user)?.list(&listing, &mut take));
        match self.breaker.pass(Effect::Read, listed).await {
            Ok(()) => Ok(objects),
            Err(error) => Err(Box::pin(self.confirmed(user, error)).await),
        }
    }

    /// Creates a review, which the API server fills in and does not store.
    async fn review<A: DeserializeOwned>(
        &self,
        user: &Credential,
        review: Review,
        spec: &Value,
    ) -> Result<A, ApiError> {
        let (path, mut body) = empty(review);
        body["spec"] = spec.clone();
        decoded(
            &self.send(Effect::Read, user, request(user, Method::POST, &path, Content::json(&body))?).await?,
        )
    }

    async fn ask<A: DeserializeOwned>(
        &self,
        user: &Credential,
        method: Method,
        path: &str,
        content: Content,
    ) -> Result<A, ApiError> {
        let effect = if method == Method::GET { Effect::Read } else { Effect::Write };
        decoded(&self.send(effect, user, request(user, method, path, content)?).await?)
    }

    async fn send(
        &self,
        effect: Effect,
        user: &Credential,
        request: Request<Full<Bytes>>,
    ) -> Result<Bytes, ApiError> {
        let sender = self.sender(user)?;
        // Boxed, as pages wait for several requests at once.
        let sent = Box::pin(async move {
            let answered = sender.exchange(request, TIMEOUT).await?;
            if answered.code.as_u16() < 400 {
                return Ok(answered.body);
            }
            Err(refusal(&answered).with_fields(&status_of(&answered)))
        });
        match self.breaker.pass(effect, sent).await {
            Ok(body) => Ok(body),
            Err(error) => Err(Box::pin(self.confirmed(user, error)).await),
        }
    }
}

/// Builds a request of a user.
fn request(
    user: &Credential,
    method: Method,
    path: &str,
    Content { media_type, body }: Content,
) -> Result<Request<Full<Bytes>>, ApiError> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, media_type)
        .body(Full::new(body));
    let mut request = request.map_err(|error| ApiError::Invalid(error.to_string()))?;
    request.headers_mut().extend(user.headers.clone());
    Ok(request)
}

/// Returns the path of a review, and its body without `spec`.
fn empty((group, plural, kind): Review) -> (String, Value) {
    let body = json!({"apiVersion": format!("{group}/v1"), "kind": kind});
    (format!("/apis/{group}/v1/{plural}"), body)
}

/// Returns the path of the objects of a namespace, or of all namespaces if it is empty.
fn collection(kind: KindInfo, namespace: &str) -> Result<String, ApiError> {
    if !namespace.is_empty() {
        check_dns_label(namespace).map_err(|error| ApiError::Invalid(error.to_string()))?;
    }
    Ok(kind.path(namespace))
}

#[cfg(test)]
mod tests;
