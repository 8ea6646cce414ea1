//! From a request to its answer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::ACCEPT;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Bytes;
use tokio::time::sleep;
use tracing::{info, warn};

use super::access::{Action, Granted, Lookup, Refusal, World, decide};
use super::body::{self, Content};
use super::cluster::{Cluster, Failure, StoredInstance};
use super::description::description;
use super::origin;
use super::pace::OncePerSecond;
use super::page;
use super::route::{self, Target};
use super::stores::Stores;
use super::turns::{Turns, pauses};
use super::view::{InstanceView, TemplateView};
use super::write::{Write, write};
use crate::api::instance::InstancePhase;
use crate::api::{Instance, Template};
use crate::config::ExamAgentConfig;
use crate::runtime::error::ApiError;
use crate::runtime::http_server::{Peer, response};

/// How often an Instance that is being deleted is looked at again, and how long to wait before that.
const BEING_DELETED: (usize, Duration) = (5, Duration::from_millis(500));

/// The exam agent: it answers requests.
pub struct Agent {
    config: ExamAgentConfig,
    /// The description of the interface, as JSON.
    description: Bytes,
    cluster: Cluster,
    stores: Stores,
    turns: Turns,
    /// When a refusal was last logged, and a failure.
    logged: [OncePerSecond; 2],
}

/// The client of a request.
#[derive(Debug, Clone, Copy)]
struct Asking {
    /// The address; `None` if it is not known.
    client: Option<IpAddr>,
    /// The address of the other end of the connection.
    peer: Option<IpAddr>,
    /// Whether it is a browser that shows pages.
    is_browser: bool,
}

/// Why a request was not carried out.
#[derive(derive_more::From)]
enum RequestError {
    Refused(Refusal),
    Failed(Failure),
    /// Others write the same Instance; with the reason, for the client.
    Conflict(&'static str),
}

impl Agent {
    /// Answers requests as the configuration says, about the objects of `cluster`; those of clients outside of the allow-list
    /// from `stores`.
    pub fn new(config: ExamAgentConfig, cluster: Cluster, stores: Stores) -> Self {
        let description = format!("{:#}\n", description(&config.base_path)).into();
        Self { config, description, cluster, stores, turns: Turns::new(), logged: Default::default() }
    }

    /// The target of a request.
    pub fn target(&self, request: &Request<Bytes>) -> Target {
        route::target(&self.config.base_path, request.uri().path())
    }

    /// Answers a request, whose target is known.
    pub async fn answer(&self, target: &Target, request: &Request<Bytes>) -> Response<Bytes> {
        let asking = self.asking(request);
        // A name that is no text is none, and an empty one too: no method deletes a collection.
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
            (Target::Instance(_), Method::GET) => return self.show(asking, name).await,
            (Target::Instances | Target::Instance(_), Method::PUT) => {
                let failed = format!("Instance {name} cannot be unchanged");
                (self.put(asking, name, request.body()).await, name, failed)
            }
            (Target::Instances | Target::Instance(_), Method::DELETE) => {
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

    async fn templates(&self, asking: Asking) -> Result<Response<Bytes>, RequestError> {
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

    async fn instances(&self, asking: Asking, query: &str) -> Result<Response<Bytes>, RequestError> {
        self.decide(asking, Action::List(&BTreeMap::new()), World::UNREAD)?;
        let labels = route::labels(query);
        let labels = labels.ok_or_else(|| Refusal::Invalid("the query is no text in UTF-8".to_owned()))?;
        self.decide(asking, Action::List(&labels), World::UNREAD)?;
        let found = self.cluster.instances(&labels).await?;
        let shown = found.iter().filter_map(|instance| {
            let world = World { instance: Lookup::Found(instance), ..World::UNREAD };
            let granted = self.decide(asking, Action::List(&labels), world).ok()?;
            Some(InstanceView::of(instance, granted))
        });
        Ok(page::json(StatusCode::OK, &shown.collect::<Vec<_>>()))
    }

    async fn show(&self, asking: Asking, name: &str) -> Response<Bytes> {
        let error = |status, text| page::error(status, text, asking.is_browser);
        match self.see(asking, name).await {
            Ok((instance, _)) if asking.is_browser => page_of(&instance),
            Ok((instance, granted)) => page::json(StatusCode::OK, &InstanceView::of(&instance, granted)),
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

    async fn put(&self, asking: Asking, name: &str, body: &[u8]) -> Result<Response<Bytes>, RequestError> {
        let (status, found, granted) = self.store(asking, name, body).await?;
        Ok(page::json(status, &InstanceView::of(&found.instance, granted)))
    }

    /// Creates or replaces an Instance; 201 if it was created.
    async fn store(
        &self,
        asking: Asking,
        name: &str,
        body: &[u8],
    ) -> Result<(StatusCode, StoredInstance, Granted), RequestError> {
        // Who may not is told so, whatever it sends.
        self.decide(asking, Action::PutAny, World::UNREAD)?;
        let wanted = body::read(body).map_err(Refusal::Invalid)?;
        let action = Action::Put(name, &wanted);
        self.decide(asking, action, World::UNREAD)?;
        let needs_template =
            !self.config.template_selector.is_empty() || wanted.content != Content::default();
        let template = if needs_template && !wanted.template.is_empty() {
            self.cluster.template(&wanted.template).await?
        } else {
            None
        };
        let _turn = self.turns.wait(name).await.map_err(Failure::TooMany)?;
        let (mut pauses, mut deleted) = (pauses(), 0..BEING_DELETED.0);
        loop {
            let current = self.cluster.instance(name).await?;
            let instance = current.as_ref().map(|found| &found.instance);
            let world = World { instance: instance.into(), template: template.as_ref().into() };
            let granted = self.decide(asking, action, world)?;
            if instance.is_some_and(Instance::is_terminating) {
                // It will be gone, and with it what is written now.
                if deleted.next().is_none() {
                    return Err(RequestError::Conflict(
                        "the Instance is being deleted: try again when it is gone",
                    ));
                }
                sleep(BEING_DELETED.1).await;
                continue;
            }
            let read = current.as_ref().map(|found| (&found.json, &found.instance));
            let written = write(&self.config, name, &wanted, template.as_ref(), read);
            match self.send(asking, name, written, current).await {
                Ok((status, found)) => return Ok((status, found, granted)),
                // Another replica, a loop or a user was faster: look again.
                Err(Failure::Api(
                    ApiError::Conflict(_) | ApiError::AlreadyExists(_) | ApiError::NotFound(_),
                )) => match pauses.next() {
                    Some(pause) => sleep(pause).await,
                    None => {
                        return Err(RequestError::Conflict(
                            "others change the Instance all the time: try again",
                        ));
                    }
                },
                Err(Failure::Api(ApiError::Invalid(reason))) => return Err(Refusal::Invalid(reason).into()),
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Sends what is to be written; `current` is the Instance as it was read. Returns the Instance as it is stored.
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
            // Nothing is left to write of an Instance that is there.
            Write::Nothing => {
                let missing = || ApiError::NotFound(name.to_owned());
                return Ok((StatusCode::OK, current.ok_or_else(missing)?));
            }
        };
        let (instance, [client, peer]) = (format!("{}/{name}", self.config.namespace), asking.shown());
        let (template, running) = (&found.instance.spec.template_ref.name, found.instance.spec.running);
        info!(instance, template, running, client, peer, "an exam server has {verb} an Instance");
        Ok((status, found))
    }

    async fn delete(&self, asking: Asking, name: &str) -> Result<Response<Bytes>, RequestError> {
        let action = Action::Delete(name);
        self.decide(asking, action, World::UNREAD)?;
        let found = self.cluster.instance(name).await?.map(|found| found.instance);
        let world = World { instance: found.as_ref().into(), ..World::UNREAD };
        self.decide(asking, action, world)?;
        match self.cluster.delete(name, found.as_ref().map_or("", Instance::uid)).await {
            // It is gone, or another one has its name by now: this one is deleted.
            Err(Failure::Api(ApiError::NotFound(_) | ApiError::Conflict(_))) => {
                return Err(Refusal::NotFound.into());
            }
            deleted => deleted?,
        }
        let (instance, [client, peer]) = (format!("{}/{name}", self.config.namespace), asking.shown());
        info!(instance, client, peer, "an exam server has deleted an Instance");
        Ok(page::plain(StatusCode::OK, ""))
    }
}

/// Whether a client shows pages.
fn shows_pages(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| String::from_utf8_lossy(value.as_bytes()).contains("text/html"))
}

/// The page of an Instance for a browser.
fn page_of(instance: &Instance) -> Response<Bytes> {
    match instance.status.phase {
        InstancePhase::Ready => page::redirect(instance.status.open_url()).unwrap_or_else(page::starting),
        InstancePhase::Off => page::error(StatusCode::GONE, "The requested Instance is not running.", true),
        InstancePhase::Failed | InstancePhase::CreationLoopBackoff => {
            page::error(StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong.", true)
        }
        _ => page::starting(),
    }
}

impl Asking {
    /// The address of the client, and of the peer, for the log.
    fn shown(self) -> [String; 2] {
        let text = |address: IpAddr| address.to_canonical().to_string();
        [self.client, self.peer].map(|address| address.map_or_else(|| "unknown".to_owned(), text))
    }
}

impl Agent {
    /// The answer to what was not carried out; `failed` is that of a request to the API server that has failed. `about` is the
    /// name of an Instance, which may be any text where the request was refused.
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
            RequestError::Refused(Refusal::Invalid(reason)) => {
                page::plain(StatusCode::BAD_REQUEST, format!("Bad request: {reason}"))
            }
            RequestError::Refused(Refusal::NotFound) => page::plain(StatusCode::NOT_FOUND, "Not found"),
            RequestError::Failed(Failure::TooMany(too_many)) => page::too_many(too_many),
            RequestError::Conflict(reason) => {
                page::plain(StatusCode::CONFLICT, format!("Conflict: {reason}"))
            }
            RequestError::Failed(Failure::Api(error)) => {
                if failures.may(Instant::now()) {
                    warn!(about, client, peer, %error, "a request of an exam could not be carried out");
                }
                failed()
            }
        }
    }
}
