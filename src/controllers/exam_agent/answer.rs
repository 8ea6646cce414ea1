//! Handles a request and builds its response.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Bytes;
use tokio::time::sleep;
use tracing::{info, warn};

use super::access::{Action, Granted, Lookup, Refusal, World, decide};
use super::body::{self, Content};
use super::cluster::{Cluster, Failure, StoredInstance};
use super::description::description;
use super::pace::OncePerSecond;
use super::route::{self, Target};
use super::stores::Stores;
use super::turns::{Turns, pauses};
use super::view::{InstanceView, TemplateView};
use super::write::{Write, write};
use super::{origin, page, token};
use crate::api::instance::InstancePhase;
use crate::api::{Instance, Template};
use crate::config::ExamAgentConfig;
use crate::runtime::error::ApiError;
use crate::runtime::http_server::{Peer, response};

/// How often, and how long apart, an Instance that is being deleted is read again.
const BEING_DELETED: (usize, Duration) = (5, Duration::from_millis(500));

/// The types that clients send by default: an empty one, and the defaults of curl and of browsers.
const DEFAULT_TYPES: [&str; 4] =
    ["", "application/x-www-form-urlencoded", "text/plain", "application/octet-stream"];

/// The exam agent: answers requests.
pub struct Agent {
    config: ExamAgentConfig,
    /// The OpenAPI description of the interface, as JSON.
    description: Bytes,
    cluster: Cluster,
    stores: Stores,
    turns: Turns,
    /// Limits the log lines about refusals and about failures.
    logged: [OncePerSecond; 2],
}

/// The client of a request.
#[derive(Debug, Clone, Copy)]
struct Asking {
    /// The client's address; `None` if it is unknown.
    client: Option<IpAddr>,
    /// The address at the other end of the connection.
    peer: Option<IpAddr>,
    /// Whether the client is a browser that displays pages.
    is_browser: bool,
}

/// The reason why a request was not carried out.
#[derive(derive_more::From)]
enum RequestError {
    Refused(Refusal),
    Failed(Failure),
    /// Another writer changes the same Instance. The reason is for the client.
    Conflict(&'static str),
}

/// The response to a request, or the reason why it was not carried out.
type Answer = Result<Response<Bytes>, RequestError>;

impl Agent {
    /// An agent that answers requests as the configuration says. Clients in the allow-list work on the objects of
    /// `cluster`, and all others read from `stores`.
    pub fn new(config: ExamAgentConfig, cluster: Cluster, stores: Stores) -> Self {
        let description = format!("{:#}\n", description(&config.base_path)).into();
        Self { config, description, cluster, stores, turns: Turns::new(), logged: Default::default() }
    }

    /// The target of a request.
    pub fn target(&self, request: &Request<Bytes>) -> Target {
        route::target(&self.config.base_path, request.uri().path())
    }

    /// Answers a request whose target is known.
    pub async fn answer(&self, target: &Target, request: &Request<Bytes>) -> Response<Bytes> {
        let asking = self.asking(request);
        // A name that is not valid UTF-8 counts as empty. PUT and DELETE need a name.
        let name = target.instance();
        let (answer, about, failed) = match (target, request.method().clone()) {
            (Target::Unknown, _) => return page::plain(StatusCode::NOT_FOUND, "Not found"),
            (Target::Health, Method::GET) => return page::plain(StatusCode::OK, "OK"),
            (Target::Description, Method::GET) => {
                return response(StatusCode::OK, "application/json", self.description.clone());
            }
            (Target::Templates, Method::GET) => {
                (self.templates(asking).await, "the list of Templates", String::new())
            }
            (Target::Instances, Method::GET) => {
                let query = request.uri().query().unwrap_or_default();
                let failed = "Error retrieving instances".to_owned();
                (self.instances(asking, query).await, "the list of Instances", failed)
            }
            (Target::Instance(_), Method::GET) => {
                return self.show(asking, name, request.uri().query().unwrap_or_default()).await;
            }
            (Target::Instance(_), Method::PUT) => {
                let failed = format!("Instance {name} cannot be unchanged");
                (self.put(asking, name, request).await, name, failed)
            }
            (Target::Instance(_), Method::DELETE) => {
                (self.delete(asking, name).await, name, "Error deleting instance".to_owned())
            }
            _ => return page::no_such_method(target.methods()),
        };
        let failed = || page::plain(StatusCode::INTERNAL_SERVER_ERROR, failed);
        answer.unwrap_or_else(|error| self.refuse(error, asking, about, failed))
    }

    fn asking(&self, request: &Request<Bytes>) -> Asking {
        let forwarded = origin::forwarded(request.headers());
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
        let client =
            peer.and_then(|peer| origin::client(peer, forwarded.as_deref(), &self.config.trusted_proxies));
        Asking { client, peer, is_browser: shows_pages(request.headers()) }
    }

    fn decide(&self, asking: Asking, action: Action<'_>, world: World<'_>) -> Result<Granted, Refusal> {
        decide(&self.config, asking.client, action, world)
    }

    async fn templates(&self, asking: Asking) -> Answer {
        let Granted { is_allowed, .. } = self.decide(asking, Action::SeeTemplates, World::UNREAD)?;
        let found = if is_allowed {
            self.cluster.templates().await?.into_iter().map(Arc::new).collect()
        } else {
            self.stores.templates()
        };
        let is_shown = |template: &&Arc<Template>| {
            let world = World { template: Lookup::Found(template), ..World::UNREAD };
            self.decide(asking, Action::SeeTemplates, world).is_ok()
        };
        let shown = found.iter().filter(is_shown).map(|template| TemplateView::from(&**template));
        Ok(page::json(StatusCode::OK, &shown.collect::<Vec<_>>()))
    }

    async fn instances(&self, asking: Asking, query: &str) -> Answer {
        self.decide(asking, Action::List(&BTreeMap::new()), World::UNREAD)?;
        let labels = route::labels(query);
        let labels = labels.ok_or_else(|| Refusal::Malformed("the query is not valid UTF-8".to_owned()))?;
        self.decide(asking, Action::List(&labels), World::UNREAD)?;
        let found = self.cluster.instances(&labels).await?;
        let shown = found.iter().filter_map(|instance| {
            let world = World { instance: Lookup::Found(instance), ..World::UNREAD };
            let granted = self.decide(asking, Action::List(&labels), world).ok()?;
            Some(self.view(instance, granted))
        });
        Ok(page::json(StatusCode::OK, &shown.collect::<Vec<_>>()))
    }

    /// The view of an Instance for a client with these rights.
    fn view(&self, instance: &Instance, granted: Granted) -> InstanceView {
        let is_shown = self.config.require_token && granted.sees_urls;
        let token = if is_shown { token::of(instance) } else { String::new() };
        InstanceView { token, ..InstanceView::of(instance, granted) }
    }

    async fn show(&self, asking: Asking, name: &str, query: &str) -> Response<Bytes> {
        let error = |status, text| page::error(status, text, asking.is_browser);
        match self.see(asking, name).await {
            Ok((instance, granted)) if asking.is_browser => {
                let may_open =
                    !self.config.require_token || granted.sees_urls || token::is_in(query, &instance);
                page_of(&instance, may_open)
            }
            Ok((instance, granted)) => page::json(StatusCode::OK, &self.view(&instance, granted)),
            Err(RequestError::Refused(Refusal::NotFound)) => {
                error(StatusCode::NOT_FOUND, "The requested Instance does not exist.")
            }
            Err(failure) => self.refuse(failure, asking, name, || {
                error(StatusCode::INTERNAL_SERVER_ERROR, "Cannot retrieve the requested instance.")
            }),
        }
    }

    async fn see(&self, asking: Asking, name: &str) -> Result<(Arc<Instance>, Granted), RequestError> {
        let Granted { is_allowed, .. } = self.decide(asking, Action::See(name), World::UNREAD)?;
        let found = if is_allowed {
            self.cluster.instance(name).await?.map(|found| Arc::new(found.instance))
        } else {
            self.stores.instance(name)
        };
        let world = World { instance: found.as_deref().into(), ..World::UNREAD };
        let granted = self.decide(asking, Action::See(name), world)?;
        Ok((found.ok_or(Refusal::NotFound)?, granted))
    }

    /// Creates or replaces an Instance; the status is 201 if it was created.
    async fn put(&self, asking: Asking, name: &str, request: &Request<Bytes>) -> Answer {
        // A client without the right is refused before its body is read.
        self.decide(asking, Action::PutAny, World::UNREAD)?;
        if !may_be_json(request.headers()) {
            return Err(Refusal::UnsupportedType.into());
        }
        let wanted = body::read(request.body())?;
        let action = Action::Put(name, &wanted);
        self.decide(asking, action, World::UNREAD)?;
        let needs_template =
            !self.config.template_selector.is_empty() || wanted.content != Content::default();
        let template = if needs_template { self.cluster.template(&wanted.template).await? } else { None };
        let _turn = self.turns.wait(name).await.map_err(Failure::TooMany)?;
        let (mut pauses, mut deleted) = (pauses(), 0..BEING_DELETED.0);
        loop {
            let current = self.cluster.instance(name).await?;
            let instance = current.as_ref().map(|found| &found.instance);
            let world = World { instance: instance.into(), template: template.as_ref().into() };
            let granted = self.decide(asking, action, world)?;
            if instance.is_some_and(Instance::is_terminating) {
                // The deletion would also discard a change made now.
                if deleted.next().is_none() {
                    let why = "the Instance is being deleted: try again when it no longer exists";
                    return Err(RequestError::Conflict(why));
                }
                sleep(BEING_DELETED.1).await;
                continue;
            }
            let read = current.as_ref().map(|found| (&found.json, &found.instance));
            let written = write(&self.config, name, &wanted, template.as_ref(), read);
            match self.send(asking, name, written, current).await {
                Ok((status, found)) => {
                    return Ok(page::json(status, &self.view(&found.instance, granted)));
                }
                // Another replica, a control loop or a user was faster: read the Instance again.
                Err(Failure::Api(
                    ApiError::Conflict(_) | ApiError::AlreadyExists(_) | ApiError::NotFound(_),
                )) => {
                    let why = "another client keeps changing the Instance: try again";
                    sleep(pauses.next().ok_or(RequestError::Conflict(why))?).await;
                }
                Err(Failure::Api(ApiError::Invalid(reason))) => return Err(Refusal::Invalid(reason).into()),
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Sends the write to the API server and returns the stored Instance. `current` is the Instance as it was read.
    async fn send(
        &self,
        asking: Asking,
        name: &str,
        written: Write,
        current: Option<StoredInstance>,
    ) -> Result<(StatusCode, StoredInstance), Failure> {
        let (status, verb, found) = match written {
            Write::Create(object) => (StatusCode::CREATED, "created", self.cluster.create(&object).await?),
            Write::Patch(patch) => (StatusCode::OK, "changed", self.cluster.patch(name, &patch).await?),
            // The Instance exists and is up to date.
            Write::Nothing => {
                let missing = || ApiError::NotFound(name.to_owned());
                return Ok((StatusCode::OK, current.ok_or_else(missing)?));
            }
        };
        let (instance, [client, peer]) = (format!("{}/{name}", self.config.namespace), asking.shown());
        let (template, running) =
            (found.instance.spec.template_ref.name.as_str(), found.instance.spec.running);
        info!(instance, template, running, client, peer, "an exam server has {verb} an Instance");
        Ok((status, found))
    }

    async fn delete(&self, asking: Asking, name: &str) -> Answer {
        let action = Action::Delete(name);
        self.decide(asking, action, World::UNREAD)?;
        let found = self.cluster.instance(name).await?.map(|found| found.instance);
        let world = World { instance: found.as_ref().into(), ..World::UNREAD };
        self.decide(asking, action, world)?;
        match self.cluster.delete(name, found.as_ref().map_or("", Instance::uid)).await {
            // The Instance is gone, or another one has its name now. Either way this one is deleted.
            Err(Failure::Api(ApiError::NotFound(_) | ApiError::Conflict(_))) => {
                return Err(Refusal::NotFound.into());
            }
            deleted => deleted?,
        }
        let (instance, [client, peer]) = (format!("{}/{name}", self.config.namespace), asking.shown());
        info!(instance, client, peer, "an exam server has deleted an Instance");
        Ok(page::plain(StatusCode::OK, ""))
    }

    /// The response to a request that was not carried out. `failed` builds the response for a failed request to the API
    /// server. `about` is the name of an Instance; in a refused request it may be any text.
    fn refuse(
        &self,
        error: RequestError,
        asking: Asking,
        about: &str,
        failed: impl FnOnce() -> Response<Bytes>,
    ) -> Response<Bytes> {
        let [refusals, failures] = &self.logged;
        let [client, peer] = asking.shown();
        match error {
            RequestError::Refused(Refusal::Forbidden(reason)) => {
                if refusals.may(Instant::now()) {
                    let about: String = about.chars().take(64).collect();
                    info!(?about, client, peer, "refused: {reason}");
                }
                page::plain(StatusCode::FORBIDDEN, "Forbidden")
            }
            RequestError::Refused(Refusal::Malformed(reason)) => {
                page::plain(StatusCode::BAD_REQUEST, format!("Bad request: {reason}"))
            }
            RequestError::Refused(Refusal::Invalid(reason)) => {
                page::plain(StatusCode::UNPROCESSABLE_ENTITY, format!("Unprocessable content: {reason}"))
            }
            RequestError::Refused(Refusal::UnsupportedType) => page::unsupported_type(),
            RequestError::Refused(Refusal::NotFound) => page::plain(StatusCode::NOT_FOUND, "Not found"),
            RequestError::Failed(Failure::TooMany(too_many)) => page::too_many(too_many),
            RequestError::Conflict(reason) => {
                page::plain(StatusCode::CONFLICT, format!("Conflict: {reason}"))
            }
            RequestError::Failed(Failure::Api(error)) => {
                if failures.may(Instant::now()) {
                    warn!(about, client, peer, %error, "a request to the exam agent failed");
                }
                failed()
            }
        }
    }
}

/// Whether the `Content-Type` allows a JSON body. Clients of the Go program send no type, or the default of curl or of
/// a browser.
fn may_be_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    let media_type = text.split(';').next().unwrap_or_default().trim();
    media_type.ends_with("/json") || media_type.ends_with("+json") || DEFAULT_TYPES.contains(&media_type)
}

/// Whether the client accepts HTML.
fn shows_pages(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter();
    accepted.any(|value| String::from_utf8_lossy(value.as_bytes()).contains("text/html"))
}

/// The page that shows an Instance in a browser, which may open its desktop or not.
fn page_of(instance: &Instance, may_open: bool) -> Response<Bytes> {
    match instance.status.phase {
        InstancePhase::Ready if !may_open => {
            let text =
                "This link lacks the token of the machine. Open the machine from the page of the exam.";
            page::error(StatusCode::FORBIDDEN, text, true)
        }
        InstancePhase::Ready => page::redirect(instance.status.open_url()).unwrap_or_else(page::starting),
        InstancePhase::Off => page::error(StatusCode::GONE, "The requested Instance is not running.", true),
        InstancePhase::Failed | InstancePhase::CreationLoopBackoff => {
            page::error(StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong.", true)
        }
        _ => page::starting(),
    }
}

impl Asking {
    /// The addresses of the client and of the peer, for the log.
    fn shown(self) -> [String; 2] {
        let text = |address: IpAddr| address.to_canonical().to_string();
        [self.client, self.peer].map(|address| address.map_or_else(|| "unknown".to_owned(), text))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_body_is_json_unless_its_type_says_otherwise() {
        for (media_type, expected) in [
            (None, true),
            (Some(""), true),
            (Some("application/json"), true),
            (Some("Application/JSON; charset=utf-8"), true),
            (Some("text/json"), true),
            (Some("application/merge-patch+json"), true),
            (Some("application/x-www-form-urlencoded"), true),
            (Some("text/plain;charset=UTF-8"), true),
            (Some("application/octet-stream"), true),
            (Some("application/yaml"), false),
            (Some("application/xml"), false),
            (Some("multipart/form-data; boundary=json"), false),
            (Some("json"), false),
        ] {
            let value = media_type.map(HeaderValue::from_static);
            let headers: HeaderMap = value.into_iter().map(|value| (CONTENT_TYPE, value)).collect();
            assert_eq!(may_be_json(&headers), expected, "{media_type:?}");
        }
    }
}
