//! Fills a store: lists the objects, watches them, and starts again whenever the watch ends.
//!
//! `kube` collects a whole page of a list before it decodes it, and a whole line of a watch, without a size limit. Here
//! each object is decoded while the response arrives ([`super::pieces`]), so no more than one object is in memory in
//! addition to the store.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use http::header::{ACCEPT_ENCODING, HeaderValue};
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, Status};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::DefaultBackoff;
use metrics::counter;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::warn;

use super::ObjectKey;
use super::answer::ask;
use super::error::with_sources;
use super::pieces::{Lines, Piece};
use super::plan::KindInfo;
pub use super::selection::Selection;
use super::store::{AnyStore, Store};
use super::watch_health::WatchHealth;
use crate::api::meta::Metadata;
use crate::api::{Kind, Object};

/// The maximum pause between attempts, and the pause for a kind that is not served.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The number of objects per page of a list: large enough to need few requests. A list streamed by the watch itself
/// needs no pages, but a bookmark marks its end, which the API server sends up to a second later. Every restart would
/// take a second longer.
const PAGE: u32 = 250;

/// After a page with more bytes, the next page has half as many objects; after one with less than a quarter of these
/// bytes, twice as many. The API server holds the whole page in memory, and must respond in time.
const LARGE_PAGE: usize = 8 << 20;

/// A watch that shows nothing for this long is abandoned: `kube` asks the API server to end it after 290 s.
const LONGEST_WATCH: Duration = Duration::from_secs(295);

/// A watch that ends earlier was interrupted: the API server ends a watch after the 290 s that `kube` requests.
const SHORTEST_WATCH: Duration = Duration::from_secs(280);

/// Reads an object from the API server; `None` if it does not exist. `namespace` is empty for cluster-scoped kinds.
///
/// # Errors
/// When the request fails.
pub async fn get<T: Kind>(
    client: Client,
    namespace: &str,
    name: &str,
) -> Result<Option<Object<T>>, kube::Error> {
    let request = Request::new(KindInfo::of::<T>().path(namespace));
    let request = request.get(name, &kube::api::GetParams::default()).map_err(kube::Error::BuildRequest)?;
    match client.request(request).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Keeps `store` in sync with the cluster. Never ends. The watch resumes where it was interrupted, unless `client`
/// reports that etcd was restored from a backup meanwhile (see [`super::resume`]). While the kind is not served, the
/// watch is retried every [`LONGEST_PAUSE`]. Without `retry`, the watch ends permanently if, after one such pause, the
/// kind is still not served, or may still not be read.
///
/// An API server that starts answers 404 or 403 for a moment to requests for kinds that it serves. So the store of a
/// kind that was served becomes [`super::store::StoreState::Missing`] only after [`LONGEST_PAUSE`].
pub fn run<T: Kind>(
    client: Client,
    store: Arc<Store<T>>,
    selection: Selection,
    health: WatchHealth,
    retry: bool,
) -> BoxFuture<'static, ()> {
    let watched = Watched {
        client,
        kind: store.kind(),
        is_metadata: Object::<T>::IS_METADATA,
        store,
        selection,
        health,
        page: PAGE,
        version: None,
        was_served: false,
        refused_since: None,
        backoff: DefaultBackoff::default(),
    };
    watched.follow(retry).boxed()
}

/// A store, and the state of its watch. Only the store knows the type, so the code of a watch is compiled once rather
/// than for each kind.
struct Watched {
    client: Client,
    kind: KindInfo,
    /// Whether only the metadata of the objects is requested.
    is_metadata: bool,
    store: Arc<dyn AnyStore>,
    selection: Selection,
    health: WatchHealth,
    /// The number of objects per page, see [`LARGE_PAGE`].
    page: u32,
    /// The version where the watch resumes; `None` if the objects have to be listed.
    version: Option<String>,
    /// Whether the objects have been listed since the kind was last found missing.
    was_served: bool,
    /// The time of the first of the latest responses that said that the kind is not served, or may not be read.
    refused_since: Option<Instant>,
    backoff: DefaultBackoff,
}

/// An event of a watch.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The fields of a bookmark that we read.
#[derive(Deserialize)]
struct Bookmark {
    metadata: Metadata,
}

impl Watched {
    async fn follow(mut self, retry: bool) {
        loop {
            let done = match self.version.clone() {
                None => self.list().await,
                Some(version) => {
                    let begin = Instant::now();
                    let done = self.watch(&version).await;
                    if begin.elapsed() < SHORTEST_WATCH {
                        self.health.was_interrupted();
                    }
                    done
                }
            };
            match done {
                Ok(()) => {}
                Err(error) if self.is_missing(&error, retry) => {
                    self.health.rests();
                    self.store.mark_missing();
                    if !retry && self.refused_for() >= LONGEST_PAUSE {
                        std::future::pending::<()>().await;
                    }
                    (self.version, self.was_served) = (None, false);
                    tokio::time::sleep(LONGEST_PAUSE).await;
                }
                Err(error) => {
                    // The version no longer exists, which is normal after a restart of the API server.
                    if code(&error) == Some(410) {
                        self.version = None;
                        self.backoff.reset();
                    }
                    let error = with_sources(&error);
                    self.health.broke(&error);
                    let kind = self.kind.kind;
                    warn!(kind, error, "the watch was interrupted; resuming shortly");
                    let pause = self.backoff.next().unwrap_or(LONGEST_PAUSE);
                    tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                }
            }
        }
    }

    /// Whether a failed request shows that the kind is not served, or, without `retry`, that it may not be read.
    fn is_missing(&mut self, error: &kube::Error, retry: bool) -> bool {
        let is_refused = code(error) == Some(404) || !retry && code(error) == Some(403);
        if is_refused {
            self.refused_since.get_or_insert_with(Instant::now);
        }
        is_refused && (!self.was_served || self.refused_for() >= LONGEST_PAUSE)
    }

    /// How long every response has said that the kind is not served, or may not be read.
    fn refused_for(&self) -> Duration {
        self.refused_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Records a successful response.
    fn works(&mut self) {
        self.refused_since = None;
        self.health.works();
    }

    fn request(&self) -> Request {
        Request::new(self.kind.path(self.selection.namespace()))
    }

    /// Lists all objects, page by page, into the store.
    async fn list(&mut self) -> kube::Result<()> {
        self.store.begin_list();
        let mut next = None;
        loop {
            let params = ListParams {
                label_selector: self.selection.label_selector(),
                field_selector: self.selection.field_selector(),
                limit: Some(self.page),
                continue_token: next.take(),
                ..ListParams::default()
            };
            let request = if self.is_metadata {
                self.request().list_metadata(&params)
            } else {
                self.request().list(&params)
            };
            self.health.asks();
            let answer = ask(&self.client, request.map_err(kube::Error::BuildRequest)?).await?;
            let page = answer.page(|piece| self.take_listed(&piece)).await?;
            let (head, length) = page.ok_or_else(|| broken("the response is not a list, or is truncated"))?;
            self.works();
            self.health.hears();
            self.page = match length {
                LARGE_PAGE.. => (self.page / 2).max(1),
                length if length < LARGE_PAGE / 4 => (self.page * 2).min(PAGE),
                _ => self.page,
            };
            match (head.next.is_empty(), head.resource_version.is_empty()) {
                (false, _) => next = Some(head.next),
                (true, true) => return Err(broken("the list has no version")),
                (true, false) => {
                    self.store.end_list();
                    self.backoff.reset();
                    self.was_served = true;
                    self.version = Some(head.resource_version);
                    return Ok(());
                }
            }
        }
    }

    /// Stores an object of a list.
    fn take_listed(&self, piece: &Piece<'_>) -> kube::Result<()> {
        match piece {
            Piece::Whole(item) => match self.store.take_listed(item) {
                Err(error) if error.is_data() => self.keep(item, &error.to_string()),
                taken => return taken.map_err(kube::Error::SerdeError),
            },
            Piece::Begin(begin) => self.keep(begin, TOO_LARGE),
        }
        Ok(())
    }

    /// Keeps the stored copy of an object that is listed but cannot be decoded.
    fn keep(&self, begin: &[u8], why: &str) {
        self.store.keep_listed(&self.skip(begin, why));
    }

    /// Reports an object that cannot be decoded, given the beginning of its JSON.
    fn skip(&self, begin: &[u8], why: &str) -> ObjectKey {
        let (key, kind) = (Piece::key(begin), self.kind.kind);
        counter!("crownlabs_objects_skipped_total", "kind" => self.kind.plural).increment(1);
        warn!(kind, object = %key, why, "the object is skipped; its cached copy is kept. Delete or shorten it");
        key
    }

    /// Watches the objects until the watch ends.
    async fn watch(&mut self, version: &str) -> kube::Result<()> {
        let params = WatchParams {
            label_selector: self.selection.label_selector(),
            field_selector: self.selection.field_selector(),
            ..WatchParams::default()
        };
        let request = if self.is_metadata {
            self.request().watch_metadata(&params, version)
        } else {
            self.request().watch(&params, version)
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        // Newer API servers compress each event separately.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        self.health.asks();
        let mut answer = ask(&self.client, request).await?;
        self.works();
        let mut lines = Lines::default();
        loop {
            let Ok(chunk) = tokio::time::timeout(LONGEST_WATCH, answer.frame()).await else { return Ok(()) };
            let chunk = chunk?;
            self.health.hears();
            let mut shown = Ok(());
            let is_over = chunk.is_none();
            let mut take = |piece: Piece<'_>| {
                if shown.is_ok() {
                    shown = self.take(&piece);
                }
            };
            match chunk {
                Some(chunk) => lines.feed(&chunk, &mut take),
                None => lines.finish(&mut take),
            }
            shown?;
            if is_over {
                return Ok(());
            }
        }
    }

    /// Processes an event of the watch.
    fn take(&mut self, piece: &Piece<'_>) -> kube::Result<()> {
        let line = match piece {
            Piece::Whole(line) if line.trim_ascii().is_empty() => return Ok(()),
            Piece::Whole(line) => *line,
            Piece::Begin(begin) => {
                self.skip(begin, TOO_LARGE);
                return Ok(());
            }
        };
        let event: Event<'_> = match serde_json::from_slice(line) {
            Ok(event) => event,
            // The watch was interrupted within the line.
            Err(error) if error.is_eof() => return Ok(()),
            Err(error) => {
                let status = serde_json::from_slice::<Status>(line);
                return Err(
                    status.map_or(kube::Error::SerdeError(error), |status| kube::Error::Api(status.boxed()))
                );
            }
        };
        let object = event.object.get().as_bytes();
        let version = match &*event.kind {
            "ADDED" | "MODIFIED" => self.store.take_changed(object),
            "DELETED" => self.store.take_deleted(object),
            "BOOKMARK" => {
                serde_json::from_slice(object).map(|Bookmark { metadata }| metadata.resource_version)
            }
            _ => {
                let status = serde_json::from_slice::<Status>(object).map_err(kube::Error::SerdeError)?;
                return Err(kube::Error::Api(status.boxed()));
            }
        };
        self.backoff.reset();
        match version {
            Ok(Some(version)) => self.version = Some(version.to_string()),
            Ok(None) => {
                self.version = None;
                return Err(broken("an object has no version"));
            }
            Err(error) => drop(self.skip(line, &error.to_string())),
        }
        Ok(())
    }
}

/// The reason for skipping a large object.
const TOO_LARGE: &str = "it exceeds the maximum size of an object";

fn broken(why: &'static str) -> kube::Error {
    kube::Error::Service(why.into())
}

/// Returns the status code of a rejected watch: 404 if the kind is not served (its CRD is not installed, or is being
/// removed).
fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
