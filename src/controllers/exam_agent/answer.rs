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

use super::access::{Action, Granted, Known, Policy, Refusal, World, decide};
use super::body::{self, Content};
use super::cluster::{Cluster, Failure, Found};
use super::description::description;
use super::origin;
use super::pace::OncePerSecond;
use super::page;
use super::route::{self, Target};
use super::stores::Stores;
use super::turns::{Pauses, Turns};
use super::view::{InstanceView, TemplateView};
use super::write::{Place, Write, write};
use crate::api::instance::InstancePhase;
use crate::api::{Instance, Template};
use crate::config::{ExamAgentConfig, Network};
use crate::runtime::error::ApiError;
use crate::runtime::http_server::Peer;

/// How often an Instance that is being deleted is looked at again, and how long to wait before that.
const BEING_DELETED: (usize, Duration) = (5, Duration::from_millis(500));

/// What requests are answered by.
pub struct Agent {
    policy: Policy,
    place: Place,
    proxies: Vec<Network>,
    base: String,
    /// The description of the interface, as JSON.
    description: Bytes,
    cluster: Cluster,
    stores: Stores,
    turns: Turns,
    /// When a refusal was last logged, and a failure.
    logged: [OncePerSecond; 2],
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
struct Asking {
    /// The address; `None` if it is not known.
    client: Option<IpAddr>,
    /// Who has opened the connection.
    peer: Option<IpAddr>,
    /// Whether it is a browser that shows pages.
    is_browser: bool,
}

/// The end of a request that was not carried out.
enum End {
    Refused(Refusal),
    Failed(Failure),
    /// Others write the same Instance; with the reason, for the client.
    Conflict(&'static str),
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Agent {
    /// Answers requests as the configuration says, about the objects of `cluster`; those of clients outside of the allow-list
    /// from `stores`.
    pub fn new(config: &ExamAgentConfig, cluster: Cluster, stores: Stores) -> Self {
        Self {
            policy: config.into(),
            place: Place { namespace: config.namespace.clone(), tenant: config.tenant.clone() },
            proxies: config.trusted_proxies.clone(),
            base: config.base_path.clone(),
            description: format!("{:#}\n", description(&config.base_path)).into(),
            cluster,
            stores,
            turns: Turns::new(),
            logged: Default::default(),
        }
    }

    /// What a request is about.
    pub fn target(&self, request: &Request<Bytes>) -> Target {
        route::target(&self.base, request.uri().path())
    }

    /// Answers a request, whose target is known.
    pub async fn answer(&self, target: &Target, request: &Request<Bytes>) -> Response<Bytes> {
        let asking = self.asking(request);
        match (target, request.method().clone()) {
            (Target::Unknown, _) => page::plain(StatusCode::NOT_FOUND, "Not found"),
            (Target::Health, Method::GET) => page::plain(StatusCode::OK, "OK"),
            (Target::Description, Method::GET) => crate::runtime::http_server::response(
                StatusCode::OK,
                "application/json",
                self.description.clone(),
            ),
            (Target::Templates, Method::GET) => self.templates(asking).await,
            (Target::Instances, Method::GET) => {
                self.instances(asking, request.uri().query().unwrap_or_default()).await
            }
            // An empty name is none: no method deletes a collection.
            (Target::Instances, Method::PUT) => self.put(asking, "", request.body()).await,
            (Target::Instances, Method::DELETE) => self.delete(asking, "").await,
            // What is no text is no name either.
            (Target::Instance(name), Method::GET) => {
                self.show(asking, name.as_deref().unwrap_or_default()).await
            }
            (Target::Instance(name), Method::PUT) => {
                self.put(asking, name.as_deref().unwrap_or_default(), request.body()).await
            }
            (Target::Instance(name), Method::DELETE) => {
                self.delete(asking, name.as_deref().unwrap_or_default()).await
            }
            _ => page::no_such_method(target.methods()),
        }
    }

    fn asking(&self, request: &Request<Bytes>) -> Asking {
        let forwarded = origin::forwarded(request.headers());
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
        let client = peer.and_then(|peer| origin::client(peer, forwarded.as_deref(), &self.proxies));
        Asking { client, peer, is_browser: shows_pages(request.headers()) }
    }

    fn decide(&self, asking: Asking, action: Action<'_>, world: World<'_>) -> Result<Granted, Refusal> {
        decide(&self.policy, asking.client, action, world)
    }

    async fn templates(&self, asking: Asking) -> Response<Bytes> {
        let seen = async {
            let Granted { is_allowed, .. } = self.decide(asking, Action::SeeTemplates, World::UNREAD)?;
            let found = if is_allowed {
                self.cluster.templates().await?.into_iter().map(Arc::new).collect()
            } else {
                self.stores.templates()
            };
            let is_shown = |template: &&Arc<Template>| {
                let world = World { template: Known::Found(template), ..World::UNREAD };
                self.decide(asking, Action::SeeTemplates, world).is_ok()
            };
            let shown = found.iter().filter(is_shown).map(|template| TemplateView::from(&**template));
            Ok::<Vec<TemplateView>, End>(shown.collect())
        };
        match seen.await {
            Ok(templates) => page::json(StatusCode::OK, &templates),
            Err(end) => self.end(end, asking, "the list of Templates", || {
                page::plain(StatusCode::INTERNAL_SERVER_ERROR, "")
            }),
        }
    }

    async fn instances(&self, asking: Asking, query: &str) -> Response<Bytes> {
        let seen = async {
            let none = BTreeMap::new();
            self.decide(asking, Action::List(&none), World::UNREAD)?;
            let labels = route::labels(query);
            let labels =
                labels.ok_or_else(|| Refusal::Invalid("the query is no text in UTF-8".to_owned()))?;
            self.decide(asking, Action::List(&labels), World::UNREAD)?;
            let found = self.cluster.instances(&labels).await?;
            let shown = found.iter().filter_map(|instance| {
                let world = World { instance: Known::Found(instance), ..World::UNREAD };
                let granted = self.decide(asking, Action::List(&labels), world).ok()?;
                Some(InstanceView::of(instance, granted))
            });
            Ok::<Vec<InstanceView>, End>(shown.collect())
        };
        match seen.await {
            Ok(instances) => page::json(StatusCode::OK, &instances),
            Err(end) => self.end(end, asking, "the list of Instances", || {
                page::plain(StatusCode::INTERNAL_SERVER_ERROR, "Error retrieving instances")
            }),
        }
    }

    async fn show(&self, asking: Asking, name: &str) -> Response<Bytes> {
        let seen = async {
            let Granted { is_allowed, .. } = self.decide(asking, Action::See(name), World::UNREAD)?;
            let found = if is_allowed {
                self.cluster.instance(name).await?.map(|found| Arc::new(found.instance))
            } else {
                self.stores.instance(name)
            };
            let world = World { instance: found.as_deref().into(), ..World::UNREAD };
            let granted = self.decide(asking, Action::See(name), world)?;
            Ok::<_, End>((found.ok_or(Refusal::NotFound)?, granted))
        };
        match seen.await {
            Ok((instance, _)) if asking.is_browser => page_of(&instance),
            Ok((instance, granted)) => page::json(StatusCode::OK, &InstanceView::of(&instance, granted)),
            Err(End::Refused(Refusal::NotFound)) => page::error(
                StatusCode::NOT_FOUND,
                "The requested Instance does not exist.",
                asking.is_browser,
            ),
            Err(end) => self.end(end, asking, name, || {
                let text = "Cannot retrieve the requested instance.";
                page::error(StatusCode::INTERNAL_SERVER_ERROR, text, asking.is_browser)
            }),
        }
    }

    async fn put(&self, asking: Asking, name: &str, body: &[u8]) -> Response<Bytes> {
        match self.store(asking, name, body).await {
            Ok((status, found, granted)) => page::json(status, &InstanceView::of(&found.instance, granted)),
            Err(end) => self.end(end, asking, name, || {
                let text = format!("Instance {name} cannot be unchanged");
                page::plain(StatusCode::INTERNAL_SERVER_ERROR, text)
            }),
        }
    }

    /// Creates or replaces an Instance; 201 if it was created.
    async fn store(
        &self,
        asking: Asking,
        name: &str,
        body: &[u8],
    ) -> Result<(StatusCode, Found, Granted), End> {
        // Who may not is told so, whatever it sends.
        self.decide(asking, Action::PutAny, World::UNREAD)?;
        let wanted = body::read(body).map_err(Refusal::Invalid)?;
        let action = Action::Put(name, &wanted);
        self.decide(asking, action, World::UNREAD)?;
        let needs_template = !self.policy.selector.is_empty() || wanted.content != Content::default();
        let template = if needs_template && !wanted.template.is_empty() {
            self.cluster.template(&wanted.template).await?
        } else {
            None
        };
        let _turn = self.turns.wait(name).await.map_err(Failure::TooMany)?;
        let (mut pauses, mut deleted) = (Pauses::new(), 0..BEING_DELETED.0);
        loop {
            let current = self.cluster.instance(name).await?;
            let instance = current.as_ref().map(|found| &found.instance);
            let world = World { instance: instance.into(), template: template.as_ref().into() };
            let granted = self.decide(asking, action, world)?;
            if instance.is_some_and(Instance::is_terminating) {
                // It will be gone, and with it what is written now.
                if deleted.next().is_none() {
                    return Err(End::Conflict("the Instance is being deleted: try again when it is gone"));
                }
                sleep(BEING_DELETED.1).await;
                continue;
            }
            let read = current.as_ref().map(|found| (&found.json, &found.instance));
            let written = write(&self.place, name, &wanted, template.as_ref(), read);
            match self.send(asking, name, written, current).await {
                Ok((status, found)) => return Ok((status, found, granted)),
                // Another replica, a loop or a user was faster: look again.
                Err(Failure::Api(
                    ApiError::Conflict(_) | ApiError::AlreadyExists(_) | ApiError::NotFound(_),
                )) => match pauses.next() {
                    Some(pause) => sleep(pause).await,
                    None => return Err(End::Conflict("others change the Instance all the time: try again")),
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
        current: Option<Found>,
    ) -> Result<(StatusCode, Found), Failure> {
        let (status, verb, found) = match written {
            Write::Create(object) => (StatusCode::CREATED, "created", self.cluster.create(&object).await?),
            Write::Patch(patch) => (StatusCode::OK, "changed", self.cluster.patch(name, &patch).await?),
            // Nothing is left to write of an Instance that is there.
            Write::Nothing => {
                let missing = || ApiError::NotFound(name.to_owned());
                return Ok((StatusCode::OK, current.ok_or_else(missing)?));
            }
        };
        let (instance, [client, peer]) = (format!("{}/{name}", self.place.namespace), asking.shown());
        let (template, running) = (&found.instance.spec.template_ref.name, found.instance.spec.running);
        info!(instance, template, running, client, peer, "an exam server has {verb} an Instance");
        Ok((status, found))
    }

    async fn delete(&self, asking: Asking, name: &str) -> Response<Bytes> {
        let deleted = async {
            let action = Action::Delete(name);
            self.decide(asking, action, World::UNREAD)?;
            let found = self.cluster.instance(name).await?.map(|found| found.instance);
            let world = World { instance: found.as_ref().into(), ..World::UNREAD };
            self.decide(asking, action, world)?;
            let uid = found.as_ref().map_or("", Instance::uid);
            match self.cluster.delete(name, uid).await {
                // It is gone, or another one has its name by now: this one is deleted.
                Err(Failure::Api(ApiError::NotFound(_) | ApiError::Conflict(_))) => {
                    Err(Refusal::NotFound.into())
                }
                deleted => Ok::<_, End>(deleted?),
            }
        };
        match deleted.await {
            Ok(()) => {
                let (instance, [client, peer]) = (format!("{}/{name}", self.place.namespace), asking.shown());
                info!(instance, client, peer, "an exam server has deleted an Instance");
                page::plain(StatusCode::OK, "")
            }
            Err(end) => self.end(end, asking, name, || {
                page::plain(StatusCode::INTERNAL_SERVER_ERROR, "Error deleting instance")
            }),
        }
    }
}

/// Whether a client shows pages.
fn shows_pages(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| String::from_utf8_lossy(value.as_bytes()).contains("text/html"))
}

/// What a browser gets for an Instance.
fn page_of(instance: &Instance) -> Response<Bytes> {
    match instance.status.phase {
        InstancePhase::Ready => page::redirect(&instance.status.url).unwrap_or_else(page::starting),
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
    fn end(
        &self,
        end: End,
        asking: Asking,
        about: &str,
        failed: impl FnOnce() -> Response<Bytes>,
    ) -> Response<Bytes> {
        let [refusals, failures] = &self.logged;
        let [client, peer] = asking.shown();
        match end {
            End::Refused(Refusal::Forbidden(reason)) => {
                if refusals.may(Instant::now()) {
                    let about: String = about.chars().take(64).collect();
                    info!(?about, client, peer, "refused: {reason}");
                }
                page::plain(StatusCode::FORBIDDEN, "Forbidden")
            }
            End::Refused(Refusal::Invalid(reason)) => {
                page::plain(StatusCode::BAD_REQUEST, format!("Bad request: {reason}"))
            }
            End::Refused(Refusal::NotFound) => page::plain(StatusCode::NOT_FOUND, "Not found"),
            End::Failed(Failure::TooMany(too_many)) => page::too_many(too_many),
            End::Conflict(reason) => page::plain(StatusCode::CONFLICT, format!("Conflict: {reason}")),
            End::Failed(Failure::Api(error)) => {
                if failures.may(Instant::now()) {
                    warn!(about, client, peer, %error, "a request of an exam could not be carried out");
                }
                failed()
            }
        }
    }
}
