//! What the room of a loop writes with: the cluster, the events, and its own calendar.

use std::time::Duration;

use super::apply::Engine;
use super::error::ApiError;
use super::events::{EventNote, Recorder};
use super::key::ObjectKey;
use super::queue::{Action, resync};
use crate::api::{Kind, Object};

/// What a room writes with.
pub struct Desk {
    /// The cluster.
    pub engine: Engine,
    /// Where its events go.
    events: Recorder,
    /// The bounds of the time between two passes over an object that does not change.
    resync: (Duration, Duration),
}

impl Desk {
    /// A desk of these.
    pub fn new(engine: Engine, events: Recorder, resync: (Duration, Duration)) -> Self {
        Self { engine, events, resync }
    }

    /// Publishes the events, then what differs of the status: a crash in between tells twice rather than
    /// never. Whether the status differed.
    pub async fn tell<T: Kind>(
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

    /// When an object that has nothing left to do is wanted next; `sooner` asks for an earlier time.
    pub fn rest(&self, key: &ObjectKey, sooner: Option<Duration>) -> Action {
        resync(key, self.resync, sooner)
    }
}
