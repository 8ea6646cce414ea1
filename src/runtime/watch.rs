//! Fills a store: lists the objects, watches them, and starts again whenever the watch ends.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tracing::warn;

use super::error::with_sources;
use super::resume;
use super::store::Store;
use super::watch_health::WatchHealth;
use crate::api::{Kind, Object};

/// How long to wait before asking again for a kind that is not served.
const MISSING_RETRY: Duration = Duration::from_secs(10);

/// Objects per page of the first list: enough to need few requests, and few enough to keep the peak of
/// memory low. A list streamed by the watch itself needs no pages, but its end is announced by a bookmark,
/// for which the API server takes up to a second: every restart would take a second longer.
const PAGE: u32 = 100;

/// Which objects of a kind are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those with this label, and with this value of it where one is given.
    Label {
        /// The key of the label.
        key: &'static str,
        /// Its value; any where it is `None`.
        value: Option<&'static str>,
    },
    /// Those without this label.
    Unlabelled(&'static str),
    /// Those of this name, in all namespaces or in one.
    Named {
        /// The namespace; all where it is `None`.
        namespace: Option<String>,
        /// The name.
        name: String,
    },
}

impl Selection {
    /// Those with this label, whatever its value.
    pub fn labelled(key: &'static str) -> Self {
        Self::Label { key, value: None }
    }

    /// Those with this label and value.
    pub fn label(key: &'static str, value: &'static str) -> Self {
        Self::Label { key, value: Some(value) }
    }

    /// Those of this name in any namespace.
    pub fn named(name: impl Into<String>) -> Self {
        Self::Named { namespace: None, name: name.into() }
    }

    fn label_selector(&self) -> Option<String> {
        match self {
            Self::Label { key, value: None } => Some((*key).to_owned()),
            Self::Label { key, value: Some(value) } => Some(format!("{key}={value}")),
            Self::Unlabelled(key) => Some(format!("!{key}")),
            Self::All | Self::Named { .. } => None,
        }
    }

    fn field_selector(&self) -> Option<String> {
        match self {
            Self::Named { namespace: None, name } => Some(format!("metadata.name={name}")),
            Self::Named { namespace: Some(namespace), name } => {
                Some(format!("metadata.name={name},metadata.namespace={namespace}"))
            }
            _ => None,
        }
    }

    /// The parameters that select them in the path of a list; empty for all.
    pub fn query(&self) -> String {
        let parameters = [("labelSelector", self.label_selector()), ("fieldSelector", self.field_selector())];
        // Of the characters of a selector, these are not allowed in a query as they are.
        let encoded = |text: String| text.replace('=', "%3D").replace(',', "%2C").replace('/', "%2F");
        let given = parameters.into_iter().filter_map(|(name, text)| Some((name, encoded(text?))));
        given.map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join("&")
    }

    /// Whether an object, as JSON, is one of them.
    pub fn matches(&self, object: &Value) -> bool {
        let text = |member: &str| object["metadata"][member].as_str();
        let label = |key: &str| object["metadata"]["labels"][key].as_str();
        match self {
            Self::All => true,
            Self::Label { key, value } => label(key).is_some_and(|found| value.is_none_or(|v| v == found)),
            Self::Unlabelled(key) => label(key).is_none(),
            Self::Named { namespace, name } => {
                text("name") == Some(name)
                    && (namespace.is_none() || text("namespace") == namespace.as_deref())
            }
        }
    }
}

/// An object as `kube` reads it: with the metadata that it needs itself.
#[derive(Debug, Clone)]
pub struct Watched<T: Kind> {
    /// The resource version, from which a watch resumes.
    metadata: ObjectMeta,
    /// The object.
    pub object: Object<T>,
}

impl<'de, T: Kind> Deserialize<'de> for Watched<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Object::<T>::deserialize(deserializer)?;
        let resource_version = object.metadata.resource_version.as_ref().map(ToString::to_string);
        Ok(Self { metadata: ObjectMeta { resource_version, ..ObjectMeta::default() }, object })
    }
}

impl<T: Kind> kube::Resource for Watched<T> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        T::KIND.into()
    }
    fn group((): &()) -> Cow<'_, str> {
        T::GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        T::VERSION.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        T::PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Keeps `store` in sync with the cluster. Never returns. The watch resumes where it broke off, unless etcd was restored
/// from a backup meanwhile (see [`resume`]); while the kind is not served, it is tried again every [`MISSING_RETRY`]. A
/// watch that does not `retry` ends for good if the kind is not served, or may not be read.
pub async fn run<T: Kind>(
    client: Client,
    store: Arc<Store<T>>,
    selection: Selection,
    health: WatchHealth,
    retry: bool,
) {
    let api: Api<Watched<T>> = Api::all(health.client(resume::checked(client)));
    let config = watcher::Config {
        label_selector: selection.label_selector(),
        field_selector: selection.field_selector(),
        page_size: Some(PAGE),
        ..watcher::Config::default()
    };
    loop {
        let mut events = pin!(watcher(api.clone(), config.clone()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => take(&store, event),
                Err(error) if code(&error) == Some(404) || !retry && code(&error) == Some(403) => {
                    health.rests();
                    store.mark_missing();
                    if !retry {
                        std::future::pending::<()>().await;
                    }
                    tokio::time::sleep(MISSING_RETRY).await;
                    break;
                }
                Err(error) => {
                    let error = with_sources(&error);
                    health.broke(&error);
                    warn!(kind = T::KIND, error, "the watch broke off; it resumes after a moment");
                }
            }
        }
    }
}

fn take<T: Kind>(store: &Store<T>, event: Event<Watched<T>>) {
    match event {
        Event::Init => store.begin_list(),
        Event::InitApply(object) => store.list_object(object.object),
        Event::Apply(object) => store.apply_event(object.object),
        Event::InitDone => store.end_list(),
        Event::Delete(object) => store.delete_event(&object.object),
    }
}

/// The status code with which the API server refuses the watch: 404 if the kind itself is not served (its CRD is not
/// installed, or is being removed).
fn code(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use futures::stream::{Pending, pending};
    use http::{Request, Response};
    use http_body_util::{Either, Full, StreamBody};
    use hyper::body::{Bytes, Frame};
    use kube::client::Body;
    use tokio::time::Instant;
    use tower::service_fn;

    use super::*;
    use crate::kinds::NamespaceKind;
    use crate::runtime::store::StoreState;

    /// An answer with a whole body, or one whose body never comes.
    type Answer = Response<Either<Full<Bytes>, StreamBody<Pending<Result<Frame<Bytes>, Infallible>>>>>;

    const EMPTY_LIST: &str =
        r#"{"kind": "NamespaceList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}"#;

    /// When each request was sent, and whether it was a watch.
    type Log = Arc<Mutex<Vec<(Instant, bool)>>>;

    /// An API server that accepts every watch and shows nothing. The bodies of the first `hanging` lists never come.
    fn server(hanging: usize) -> (Client, Log) {
        let log = Log::default();
        let asked = Arc::clone(&log);
        let service = service_fn(move |request: Request<Body>| {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let mut asked = asked.lock().expect("no panic");
            asked.push((Instant::now(), is_watch));
            let lists = asked.iter().filter(|(_, is_watch)| !is_watch).count();
            let body = if is_watch || lists <= hanging {
                Either::Right(StreamBody::new(pending()))
            } else {
                Either::Left(Full::from(EMPTY_LIST))
            };
            std::future::ready(Ok::<Answer, Infallible>(Response::new(body)))
        });
        (Client::new(service, "default"), log)
    }

    /// Watches for this time.
    async fn watch(client: Client, time: Duration) -> (Arc<Store<NamespaceKind>>, WatchHealth) {
        let (store, health) = (Arc::new(Store::new(true)), WatchHealth::default());
        let running = run(client, Arc::clone(&store), Selection::All, health.clone(), true);
        assert!(tokio::time::timeout(time, running).await.is_err(), "a watch never ends");
        (store, health)
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_shows_nothing_is_given_up_and_told() {
        let (client, log) = server(0);
        let begin = Instant::now();
        let (store, health) = watch(client, Duration::from_mins(16)).await;
        assert_eq!(store.state(), StoreState::Synced);
        let log = log.lock().expect("no panic").clone();
        let starts: Vec<u64> =
            log.iter().filter(|(_, is_watch)| *is_watch).map(|(at, _)| (*at - begin).as_secs()).collect();
        assert_eq!(starts, [0, 295, 590, 885], "each is given up 5 s after its end was due");
        let (silence, reason) = health.broken().expect("it is silent");
        assert!(
            silence >= Duration::from_mins(15) && reason.contains("sends nothing"),
            "{silence:?} {reason}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_whose_body_never_comes_costs_one_attempt() {
        let (client, log) = server(1);
        let (store, health) = watch(client, Duration::from_mins(1)).await;
        assert_eq!(store.state(), StoreState::Synced);
        assert_eq!(health.broken(), None);
        let log = log.lock().expect("no panic").clone();
        let (first, second) = (log[0].0, log[1].0);
        assert_eq!(log.iter().map(|(_, is_watch)| *is_watch).collect::<Vec<_>>(), [false, false, true]);
        let waited = (second - first).as_secs();
        assert!((30..35).contains(&waited), "{waited} s");
    }
}
