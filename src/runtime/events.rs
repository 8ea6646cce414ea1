//! Events, for those who read `kubectl describe`.
//!
//! An event says that something changed; loops publish one when a condition changes, so a fault
//! that lasts is told once. Events are best effort: one that cannot be written is logged.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::Request;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use tracing::warn;

use super::clock;
use super::error::{ApiError, with_sources};
use super::plan::to_value;
use crate::api::{Kind, Object};

/// Whether an event asks for attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// For information.
    Normal,
    /// Somebody should look.
    Warning,
}

/// An event before it is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNote {
    /// Type.
    pub type_: EventType,
    /// A stable word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// The longest event message that the API accepts, in bytes.
const MESSAGE_LIMIT: usize = 1024;

/// Publishes the events of one loop.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    component: &'static str,
}

impl Recorder {
    /// A recorder that names `component` as the source.
    pub fn new(client: Client, component: &'static str) -> Self {
        Self { client, component }
    }

    /// Publishes an event about an object.
    pub async fn publish<T: Kind>(&self, object: &Object<T>, note: &EventNote) {
        let version =
            if T::GROUP.is_empty() { T::VERSION.to_owned() } else { format!("{}/{}", T::GROUP, T::VERSION) };
        let reference = ObjectReference {
            api_version: Some(version),
            kind: Some(T::KIND.to_owned()),
            name: object.metadata.name.clone(),
            namespace: object.metadata.namespace.clone(),
            uid: object.metadata.uid.clone(),
            resource_version: object.metadata.resource_version.clone(),
            field_path: None,
        };
        self.publish_about(reference, note).await;
    }

    /// Publishes an event about what the reference names.
    pub async fn publish_about(&self, reference: ObjectReference, note: &EventNote) {
        if let Err(error) = self.send(reference.clone(), note).await {
            let (name, reason) = (reference.name.unwrap_or_default(), &note.reason);
            warn!(name, reason, error = with_sources(&error), "an event could not be published");
        }
    }

    async fn send(&self, reference: ObjectReference, note: &EventNote) -> Result<(), ApiError> {
        let now = clock::now();
        let mut hasher = DefaultHasher::new();
        (&reference.uid, &note.reason, &note.message, now.as_millisecond()).hash(&mut hasher);
        let name = format!("{}.{:016x}", reference.name.as_deref().unwrap_or_default(), hasher.finish());
        // Events about cluster-scoped objects live in `default` (client-go does the same).
        let namespace = reference.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let mut message = note.message.clone();
        while message.len() > MESSAGE_LIMIT {
            message.pop();
        }
        let event = Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            involved_object: reference,
            type_: Some(format!("{:?}", note.type_)),
            reason: Some(note.reason.clone()),
            message: Some(message),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            source: Some(EventSource { component: Some(self.component.to_owned()), host: None }),
            ..Event::default()
        };
        let request = Request::builder()
            .method("POST")
            .uri(format!("/api/v1/namespaces/{namespace}/events?fieldManager=crownlabs"))
            .header("content-type", "application/json")
            .body(to_value(&event).to_string().into_bytes())
            .map_err(|error| ApiError::Invalid(error.to_string()))?;
        self.client.request_text(request).await?;
        Ok(())
    }
}
