//! What a loop writes with: the apply engine, the events, and the bounds of the periodic reconcile.

use std::time::Duration;

use kube::Client;

use super::ObjectKey;
use super::apply::Engine;
use super::client::Writer;
use super::error::ApiError;
use super::events::{EventNote, Recorder};
use super::queue::{Action, resync};
use super::store::WrittenStores;
use crate::api::{Kind, Object};

/// What a loop writes with.
pub struct Context {
    /// Writes to the cluster.
    pub engine: Engine,
    /// Publishes events.
    events: Recorder,
    /// The least and the longest time between two reconciles of an object that does not change.
    resync: (Duration, Duration),
}

impl Context {
    /// Publishes the events, then what differs of the status: a crash in between tells twice rather than
    /// never. Whether the status differed.
    ///
    /// # Errors
    /// When the status could not be written; an event that could not is logged.
    pub async fn publish<T: Kind>(
        &self,
        object: &Object<T>,
        events: &[EventNote],
        status: &T::Status,
    ) -> Result<bool, ApiError> {
        for note in events {
            self.events.publish(object, note).await;
        }
        self.engine.publish(object, status).await
    }

    /// When an object that has nothing left to do is wanted next: at its periodic reconcile, or after
    /// `sooner`.
    pub fn requeue(&self, key: &ObjectKey, sooner: Option<Duration>) -> Action {
        resync(key, self.resync, sooner)
    }
}

/// What the contexts of all loops are made of.
pub struct Connections {
    /// The client whose writes pass only while the lease is held.
    pub client: Client,
    /// What the apply engine writes through, gated in the same way.
    pub writer: Writer,
    /// The name of this process, the instance that events name.
    pub identity: String,
    /// The least and the longest time between two reconciles of an object that does not change.
    pub resync: (Duration, Duration),
}

impl Connections {
    /// The context of the loop of that name, which writes the kinds of these stores, and whose events name
    /// `event_source`.
    pub fn context(&self, name: &'static str, event_source: &str, stores: WrittenStores) -> Context {
        let engine = Engine::new(self.writer.clone(), stores, name);
        let events = Recorder::new(self.client.clone(), event_source, &self.identity);
        Context { engine, events, resync: self.resync }
    }
}
