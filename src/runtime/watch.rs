//! Fills a store: lists the objects, watches them, and starts again whenever the watch ends.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tracing::warn;

use super::error::with_sources;
use super::plan::KindInfo;
use super::store::{AnyStore, Store};
use super::watch_health::WatchHealth;
use crate::api::{Kind, Object, RawObject};

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
    /// All in this namespace. They are asked for in the namespace alone, for which a Role is enough.
    In(String),
    /// Those in this namespace that have this label, whatever its value. They are asked for in the namespace alone, for
    /// which a Role is enough.
    LabelledIn {
        /// The namespace.
        namespace: String,
        /// The key of the label.
        key: &'static str,
    },
    /// Those in this namespace that have this label and value, which are asked for in the same way.
    LabelIn {
        /// The namespace.
        namespace: String,
        /// The key of the label.
        key: &'static str,
        /// Its value.
        value: &'static str,
    },
    /// The one of this name in this namespace, in which it is asked for.
    NamedIn {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
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
            Self::Label { key, value: None } | Self::LabelledIn { key, .. } => Some((*key).to_owned()),
            Self::Label { key, value: Some(value) } | Self::LabelIn { key, value, .. } => {
                Some(format!("{key}={value}"))
            }
            Self::Unlabelled(key) => Some(format!("!{key}")),
            Self::All | Self::In(_) | Self::Named { .. } | Self::NamedIn { .. } => None,
        }
    }

    fn field_selector(&self) -> Option<String> {
        match self {
            Self::Named { namespace: None, name } | Self::NamedIn { name, .. } => {
                Some(format!("metadata.name={name}"))
            }
            Self::Named { namespace: Some(namespace), name } => {
                Some(format!("metadata.name={name},metadata.namespace={namespace}"))
            }
            _ => None,
        }
    }

    /// The namespace in which they are asked for; empty for all of the cluster.
    pub fn namespace(&self) -> &str {
        match self {
            Self::In(namespace)
            | Self::LabelledIn { namespace, .. }
            | Self::LabelIn { namespace, .. }
            | Self::NamedIn { namespace, .. } => namespace,
            _ => "",
        }
    }

    /// The label that they have, with its value where it has to have one; `None` where they are selected otherwise.
    pub fn label_of_all(&self) -> Option<(&'static str, Option<&'static str>)> {
        match self {
            Self::Label { key, value } => Some((key, *value)),
            Self::LabelledIn { key, .. } => Some((key, None)),
            Self::LabelIn { key, value, .. } => Some((key, Some(value))),
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
            Self::In(namespace) => text("namespace") == Some(namespace),
            Self::LabelledIn { namespace, key } => {
                label(key).is_some() && text("namespace") == Some(namespace)
            }
            Self::LabelIn { namespace, key, value } => {
                label(key) == Some(value) && text("namespace") == Some(namespace)
            }
            Self::NamedIn { namespace, name } => {
                text("name") == Some(name) && text("namespace") == Some(namespace)
            }
            Self::Named { namespace, name } => {
                text("name") == Some(name)
                    && (namespace.is_none() || text("namespace") == namespace.as_deref())
            }
        }
    }
}

/// An object of any kind as `kube` reads it: with the metadata that it needs itself. Only its store knows the type, so
/// that the program has the code of a watch once, and not once for each kind.
#[derive(Debug, Clone)]
struct Watched<const FLAT: bool> {
    /// The resource version, from which a watch resumes.
    metadata: ObjectMeta,
    object: RawObject,
}

impl<'de, const FLAT: bool> Deserialize<'de> for Watched<FLAT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = RawObject::read(deserializer, FLAT)?;
        let resource_version = object.metadata.resource_version.as_ref().map(ToString::to_string);
        Ok(Self { metadata: ObjectMeta { resource_version, ..ObjectMeta::default() }, object })
    }
}

impl<const FLAT: bool> kube::Resource for Watched<FLAT> {
    type DynamicType = KindInfo;
    type Scope = DynamicResourceScope;

    fn kind(kind: &KindInfo) -> Cow<'_, str> {
        kind.kind.into()
    }
    fn group(kind: &KindInfo) -> Cow<'_, str> {
        kind.group.into()
    }
    fn version(kind: &KindInfo) -> Cow<'_, str> {
        kind.version.into()
    }
    fn plural(kind: &KindInfo) -> Cow<'_, str> {
        kind.plural.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The object of that name, as the API server has it now; `None` if there is none. `namespace` is empty for kinds without.
///
/// # Errors
/// When the request fails.
pub async fn get<T: Kind>(
    client: Client,
    namespace: &str,
    name: &str,
) -> Result<Option<Object<T>>, kube::Error> {
    let kind = KindInfo::of::<T>();
    let found = if T::BODY.is_empty() {
        get_raw::<true>(client, kind, namespace, name).await
    } else {
        get_raw::<false>(client, kind, namespace, name).await
    };
    Ok(found?.map(Object::decode))
}

async fn get_raw<const FLAT: bool>(
    client: Client,
    kind: KindInfo,
    namespace: &str,
    name: &str,
) -> Result<Option<RawObject>, kube::Error> {
    let api: Api<Watched<FLAT>> = if namespace.is_empty() {
        Api::all_with(client, &kind)
    } else {
        Api::namespaced_with(client, namespace, &kind)
    };
    Ok(api.get_opt(name).await?.map(|found| found.object))
}

/// Keeps `store` in sync with the cluster. Never ends. The watch resumes where it broke off, unless etcd was restored
/// from a backup meanwhile (which `client` says, see [`super::resume`]); while the kind is not served, it is tried again
/// every [`MISSING_RETRY`]. A watch that does not `retry` ends for good if the kind is not served, or may not be read.
pub fn run<T: Kind>(
    client: Client,
    store: Arc<Store<T>>,
    selection: Selection,
    health: WatchHealth,
    retry: bool,
) -> BoxFuture<'static, ()> {
    let kind = KindInfo::of::<T>();
    if T::BODY.is_empty() {
        fill::<true>(client, kind, store, selection, health, retry).boxed()
    } else {
        fill::<false>(client, kind, store, selection, health, retry).boxed()
    }
}

async fn fill<const FLAT: bool>(
    client: Client,
    kind: KindInfo,
    store: Arc<dyn AnyStore>,
    selection: Selection,
    health: WatchHealth,
    retry: bool,
) {
    let client = health.client(client);
    let api: Api<Watched<FLAT>> = match selection.namespace() {
        "" => Api::all_with(client, &kind),
        namespace => Api::namespaced_with(client, namespace, &kind),
    };
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
                Ok(event) => take(&*store, event),
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
                    warn!(kind = kind.kind, error, "the watch broke off; it resumes after a moment");
                }
            }
        }
    }
}

fn take<const FLAT: bool>(store: &dyn AnyStore, event: Event<Watched<FLAT>>) {
    match event {
        Event::Init => store.begin_list(),
        Event::InitApply(listed) => store.take_listed(listed.object),
        Event::Apply(changed) => store.take_changed(changed.object),
        Event::InitDone => store.end_list(),
        Event::Delete(deleted) => store.take_deleted(deleted.object),
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
mod tests;
