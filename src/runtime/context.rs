//! The context of a control loop: the apply engine, the event recorder, and the bounds of the resync period.

use std::pin::pin;
use std::time::Duration;

use futures::join;
use kube::Client;

use super::apply::Engine;
use super::client::Writer;
use super::error::ApiError;
use super::events::{EventNote, Recorder};
use super::store::WrittenStores;
use crate::api::{Kind, Object};

/// The time that the status waits for its events.
const EVENT_HEADSTART: Duration = Duration::from_millis(500);

/// The clients and settings that a control loop writes with.
pub struct Context {
    /// Writes to the cluster.
    pub engine: Engine,
    /// Publishes events.
    events: Recorder,
    /// The shortest and the longest time between two reconciles of an unchanged object.
    pub resync: (Duration, Duration),
}

impl Context {
    /// Publishes the events, then writes the status if it differs. Returns whether the status was written. In this
    /// order, a crash in between publishes an event twice rather than never. A hanging event does not block the status:
    /// it is written after [`EVENT_HEADSTART`] at the latest.
    ///
    /// # Errors
    /// When the status could not be written. An event that could not be written is only logged.
    pub async fn publish<T: Kind>(
        &self,
        object: &Object<T>,
        events: &[EventNote],
        status: &T::Status,
    ) -> Result<bool, ApiError> {
        let mut published = pin!(async {
            for note in events {
                self.events.publish(object, note).await;
            }
        });
        if tokio::time::timeout(EVENT_HEADSTART, &mut published).await.is_ok() {
            return self.engine.publish(object, status).await;
        }
        let (written, ()) = join!(self.engine.publish(object, status), published);
        written
    }
}

/// The connections that all contexts share.
pub struct Connections {
    /// `kube`'s client, which sends writes only while the lease is held. It is used for events.
    pub client: Client,
    /// The writer of the apply engines, which sends writes only while the lease is held.
    pub writer: Writer,
    /// The name of this process, which is the reporting instance of its events.
    pub identity: String,
    /// The shortest and the longest time between two reconciles of an unchanged object.
    pub resync: (Duration, Duration),
}

impl Connections {
    /// Creates the context of the loop called `name`. `stores` are the stores of the kinds that it writes;
    /// `event_source` is the source of its events.
    pub fn context(&self, name: &'static str, event_source: &str, stores: WrittenStores) -> Context {
        let engine = Engine::new(self.writer.clone(), stores, name);
        let events = Recorder::new(self.client.clone(), event_source, &self.identity);
        Context { engine, events, resync: self.resync }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http::{Request, Response};
    use http_body_util::{BodyExt, Full};
    use hyper::body::{Bytes, Incoming};
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use kube::Config;
    use serde_json::{Value, json};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;

    use super::*;
    use crate::api::instance::{Instance, InstanceKind};
    use crate::runtime::client;
    use crate::runtime::gate::Gate;
    use crate::runtime::store::Store;
    use crate::runtime::watch::Selection;

    fn instance(phase: &str) -> Value {
        json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance",
            "metadata": {"name": "box", "namespace": "ns", "uid": "u1", "resourceVersion": "7"},
            "spec": {}, "status": {"phase": phase},
        })
    }

    /// Whether the status was written, and whether the event got a response.
    #[derive(Default)]
    struct Seen {
        status: Notify,
        event: AtomicBool,
    }

    /// An API server that does not respond to an event before the status is written.
    async fn answer(
        seen: Arc<Seen>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let is_event = request.uri().path().contains("/events");
        let body = request.into_body().collect().await.expect("a body").to_bytes();
        if !is_event {
            seen.status.notify_one();
            return Ok(Response::new(Full::from(instance("Ready").to_string())));
        }
        // If the client gives up, this future is dropped here.
        seen.status.notified().await;
        seen.event.store(true, Ordering::SeqCst);
        Ok(Response::new(Full::new(body)))
    }

    async fn serve(seen: Arc<Seen>) -> Config {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                let service = service_fn(move |request| answer(Arc::clone(&seen), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        let mut config = Config::new(format!("http://{address}").parse().expect("a URL"));
        config.root_cert = Some(Vec::new());
        config
    }

    #[tokio::test]
    async fn an_event_without_an_answer_does_not_delay_the_status() {
        let seen = Arc::<Seen>::default();
        let config = serve(Arc::clone(&seen)).await;
        let connections = Connections {
            client: client::build(config.clone(), Gate::open()).expect("a client"),
            writer: Writer::new(config, Gate::open()).expect("a writer"),
            identity: "test".to_owned(),
            resync: (Duration::from_hours(1), Duration::from_hours(2)),
        };
        let mut stores = WrittenStores::default();
        stores.add::<InstanceKind>(&Arc::new(Store::new(true)), &Selection::ALL);
        let context = connections.context("test", "Test", stores);
        let read = |value: Value| -> Instance { serde_json::from_value(value).expect("an Instance") };
        let (before, after) = (read(instance("Starting")), read(instance("Ready")));
        let notes = [EventNote::warning(crate::api::reason::EXPIRED, "a message")];
        assert_eq!(context.publish(&before, &notes, &after.status).await, Ok(true));
        assert!(seen.event.load(Ordering::SeqCst), "the event was abandoned before the status was written");
    }
}
