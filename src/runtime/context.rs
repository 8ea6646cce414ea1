//! The context of a control loop: the apply engine, the event recorder, and the bounds of the periodic
//! reconcile.

use std::pin::pin;
use std::time::Duration;

use futures::join;
use kube::Client;

use super::ObjectKey;
use super::apply::Engine;
use super::client::Writer;
use super::error::ApiError;
use super::events::{EventNote, Recorder};
use super::queue::{Action, resync};
use super::store::WrittenStores;
use crate::api::{Kind, Object};

/// How long the status waits for the events about it.
const EVENT_HEADSTART: Duration = Duration::from_millis(500);

/// What a control loop writes through.
pub struct Context {
    /// Writes to the cluster.
    pub engine: Engine,
    /// Publishes events.
    events: Recorder,
    /// The shortest and the longest time between two reconciles of an object that does not change.
    resync: (Duration, Duration),
}

impl Context {
    /// Publishes the events, then writes the status if it differs, and returns whether it did. In this
    /// order, a crash in between publishes an event twice rather than never. But an event that hangs does not
    /// delay the status: that is written after [`EVENT_HEADSTART`] in any case.
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

    /// When an object that needs nothing now is reconciled again: at its periodic reconcile, or after
    /// `sooner` if that is earlier.
    pub fn requeue(&self, key: &ObjectKey, sooner: Option<Duration>) -> Action {
        resync(key, self.resync, sooner)
    }
}

/// The connections that the contexts of all loops share.
pub struct Connections {
    /// `kube`'s client, which sends writes only while the lease is held. Events are written through it.
    pub client: Client,
    /// The writer of the apply engines, which sends writes only while the lease is held.
    pub writer: Writer,
    /// The name of this process, which events name as the reporting instance.
    pub identity: String,
    /// The shortest and the longest time between two reconciles of an object that does not change.
    pub resync: (Duration, Duration),
}

impl Connections {
    /// The context of the loop called `name`. `stores` are those of the kinds that it writes; its events
    /// name `event_source` as their source.
    pub fn context(&self, name: &'static str, event_source: &str, stores: WrittenStores) -> Context {
        let engine = Engine::new(self.writer.clone(), stores, name);
        let events = Recorder::new(self.client.clone(), event_source, &self.identity);
        Context { engine, events, resync: self.resync }
    }
}
