//! Fills a store: discovery, first list, watch, and again whenever any of them ends.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tracing::warn;

use super::error::with_sources;
use super::store::Store;
use crate::api::{Kind, Object};

/// How long to wait before asking again for a kind that is not served.
const MISSING_RETRY: Duration = Duration::from_secs(10);

/// Objects in a page of a first list: enough to need few requests, few enough to keep the peak of
/// memory low. A list streamed by the watch itself would need no pages, but its end is announced by
/// a bookmark, for which the API server takes up to a second: a second more for every restart.
const PAGE: u32 = 250;

/// What to watch of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Label selector, empty for all.
    pub labels: String,
    /// Field selector, empty for all.
    pub fields: String,
}

impl Selection {
    /// Objects with these labels.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { labels: selector.into(), fields: String::new() }
    }

    /// Objects with these fields.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { labels: String::new(), fields: selector.into() }
    }
}

/// Keeps `store` equal to the cluster, for ever. The watch resumes where it broke off; a kind that
/// is not served is asked for again until it is.
pub async fn run<T: Kind>(client: Client, store: Arc<Store<T>>, selection: Selection) {
    let api: Api<Object<T>> = Api::all(client);
    // An empty selector would be sent as such.
    let given = |selector: String| Some(selector).filter(|selector| !selector.is_empty());
    let config = watcher::Config {
        label_selector: given(selection.labels),
        field_selector: given(selection.fields),
        page_size: Some(PAGE),
        ..watcher::Config::default()
    };
    loop {
        let mut events = pin!(watcher(api.clone(), config.clone()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => take(&store, event),
                Err(error) if is_missing(&error) => {
                    store.mark_missing();
                    tokio::time::sleep(MISSING_RETRY).await;
                    break;
                }
                Err(error) => {
                    let error = with_sources(&error);
                    warn!(kind = T::KIND, error, "the watch broke off; it resumes after a moment");
                }
            }
        }
    }
}

fn take<T: Kind>(store: &Store<T>, event: Event<Object<T>>) {
    match event {
        Event::Init => store.begin_list(),
        Event::InitApply(object) | Event::Apply(object) => store.apply_event(object),
        Event::InitDone => store.end_list(),
        Event::Delete(object) => store.delete_event(&object),
    }
}

/// Whether the kind itself is not served (its CRD is not installed, or is being removed).
fn is_missing(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 404,
        _ => false,
    }
}
