//! Events, for those who read `kubectl describe`.
//!
//! An event says that something changed; loops publish one when a condition changes, so a fault that lasts
//! is told once. Events are best effort: one that cannot be written is logged. `kube`'s recorder aggregates
//! them: the same event about the same object within six minutes is counted, not written again.

use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{self, Reporter};
use tracing::warn;

use super::error::with_sources;
use super::plan::KindInfo;
use crate::api::{Kind, Object};

pub use kube::runtime::events::EventType;

/// An event before it is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNote {
    /// Whether it asks for attention.
    pub type_: EventType,
    /// A stable word in `CamelCase`.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl EventNote {
    /// An event that asks for attention.
    pub fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self { type_: EventType::Warning, reason: reason.to_owned(), message: message.into() }
    }
}

/// The longest event message that the API accepts, in bytes.
const MESSAGE_LIMIT: usize = 1024;

/// Publishes the events of one loop.
#[derive(Clone)]
pub struct Recorder(events::Recorder);

impl Recorder {
    /// A recorder that names `controller` as the source of its events, and this process, `identity`, as the
    /// instance of it.
    pub fn new(client: Client, controller: &str, identity: &str) -> Self {
        let reporter = Reporter { controller: controller.to_owned(), instance: Some(identity.to_owned()) };
        Self(events::Recorder::new(client, reporter))
    }

    /// Publishes an event about an object.
    pub async fn publish<T: Kind>(&self, object: &Object<T>, note: &EventNote) {
        let reference = ObjectReference {
            api_version: Some(KindInfo::of::<T>().api_version()),
            kind: Some(T::KIND.to_owned()),
            name: Some(object.name().to_owned()),
            namespace: Some(object.namespace().to_owned()).filter(|namespace| !namespace.is_empty()),
            uid: Some(object.uid().to_owned()),
            ..ObjectReference::default()
        };
        self.publish_about(&reference, note).await;
    }

    /// Publishes an event about what the reference names.
    pub async fn publish_about(&self, reference: &ObjectReference, note: &EventNote) {
        let mut message = note.message.clone();
        message.truncate(message.floor_char_boundary(MESSAGE_LIMIT));
        // The recorder counts events of one action and reason as one and keeps the first message, so events
        // that say something else are another action.
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        let event = events::Event {
            type_: note.type_,
            reason: note.reason.clone(),
            action: format!("Reconcile-{:08x}", hasher.finish() >> 32),
            note: Some(message),
            secondary: None,
        };
        if let Err(error) = self.0.publish(&event, reference).await {
            let name = reference.name.as_deref().unwrap_or_default();
            warn!(
                name,
                reason = note.reason,
                error = with_sources(&error),
                "an event could not be published"
            );
        }
    }
}
