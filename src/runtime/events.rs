//! Kubernetes Events, which `kubectl describe` shows.
//!
//! Loops publish an event when a condition changes, so a lasting problem is reported once. Events are best effort: if
//! one cannot be written, the failure is logged. `kube`'s recorder aggregates them: a repeated event about the same
//! object within six minutes increments a count instead of creating another event, if it is among the last events of the
//! loop.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{self, Reporter};
use parking_lot::Mutex;
use tracing::warn;

use super::ObjectKey;
use super::error::with_sources;
use super::plan::KindInfo;
use crate::api::reason::Reason;
use crate::api::{Kind, Object, shown};

pub use kube::runtime::events::EventType;

/// An event before it is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNote {
    /// Its type, `Normal` or `Warning`.
    pub type_: EventType,
    /// Its reason.
    pub reason: Reason,
    /// Its message, a sentence for users.
    pub message: String,
    /// The object that it is about; `None` for the reconciled object.
    pub regarding: Option<Regarding>,
}

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regarding {
    /// Its kind.
    pub kind: KindInfo,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: String,
}

impl Regarding {
    fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.kind.api_version()),
            kind: Some(self.kind.kind.to_owned()),
            name: Some(self.key.name.to_string()),
            namespace: Some(self.key.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }
}

impl EventNote {
    /// Creates an event.
    pub fn new(type_: EventType, reason: Reason, message: impl Into<String>) -> Self {
        #[cfg(test)]
        assert!(crate::api::reason::Row::declares(reason, "Event"), "{reason} is not declared for events");
        Self { type_, reason, message: message.into(), regarding: None }
    }

    /// Creates an event of type `Warning`.
    pub fn warning(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason, message)
    }
}

/// The longest event message that the API accepts, in bytes.
const MESSAGE_LIMIT: usize = 1024;

/// The time limit for writing an event.
const DEADLINE: Duration = Duration::from_secs(5);

/// The number of events after which `kube`'s recorder is replaced. It keeps each event with its texts for six minutes, and
/// goes through all of them at each publication. An event takes 3 KB, and ten thousand Instances may begin to wait at once.
const MOST_KEPT: usize = 128;

/// Publishes the events of one loop.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    reporter: Reporter,
    /// The recorder of `kube`, and the number of events that it was used for.
    current: Arc<Mutex<(events::Recorder, usize)>>,
}

impl Recorder {
    /// Creates a recorder whose events have `controller` as the reporting controller, and `identity`, the name of this
    /// process, as the reporting instance.
    pub fn new(client: Client, controller: &str, identity: &str) -> Self {
        let reporter = Reporter { controller: controller.to_owned(), instance: Some(identity.to_owned()) };
        let recorder = events::Recorder::new(client.clone(), reporter.clone());
        Self { client, reporter, current: Arc::new(Mutex::new((recorder, 0))) }
    }

    /// Returns the recorder for one event.
    fn current(&self) -> events::Recorder {
        let mut current = self.current.lock();
        if current.1 == MOST_KEPT {
            *current = (events::Recorder::new(self.client.clone(), self.reporter.clone()), 0);
        }
        current.1 += 1;
        current.0.clone()
    }

    /// Publishes an event about an object, or about the object in `note.regarding`.
    pub async fn publish<T: Kind>(&self, object: &Object<T>, note: &EventNote) {
        let own = || Regarding {
            kind: KindInfo::of::<T>(),
            key: ObjectKey::of(object),
            uid: object.uid().to_owned(),
        };
        let regarding = note.regarding.clone().unwrap_or_else(own);
        self.publish_about(&regarding.reference(), note).await;
    }

    /// Publishes an event about the referenced object.
    pub async fn publish_about(&self, reference: &ObjectReference, note: &EventNote) {
        let mut message = shown::message(&note.message);
        message.truncate(message.floor_char_boundary(MESSAGE_LIMIT));
        // The recorder merges events with the same action and reason and keeps the first message, so the action
        // contains a hash of the message.
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        let event = events::Event {
            type_: note.type_,
            reason: note.reason.into(),
            action: format!("Reconcile-{:08x}", hasher.finish() >> 32),
            note: Some(message),
            secondary: None,
        };
        let failed = match tokio::time::timeout(DEADLINE, self.current().publish(&event, reference)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => with_sources(&error),
            Err(_) => "the API server did not answer in time".to_owned(),
        };
        let name = reference.name.as_deref().unwrap_or_default();
        warn!(name, reason = %note.reason, error = failed, "an event could not be published");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::reason;
    use crate::api::tenant::TenantKind;
    use crate::kinds::ServiceKind;
    use crate::runtime::api_server::ApiServer;

    fn object<T: Kind>(namespace: &str) -> Object<T> {
        let metadata = json!({"name": "a", "namespace": namespace, "uid": "u1"});
        serde_json::from_value(json!({"metadata": metadata})).expect("an object")
    }

    #[tokio::test]
    async fn an_event_names_its_object() {
        let api = ApiServer::start(|asked| (201, asked.body.clone())).await;
        let recorder = Recorder::new(api.client(), "Tests", "replica-1");
        let note = EventNote::warning(reason::EXPIRED, "this is odd");
        recorder.publish(&object::<ServiceKind>("ns"), &note).await;
        recorder.publish(&object::<TenantKind>(""), &note).await;
        let (kind, key) = (KindInfo::of::<ServiceKind>(), ObjectKey::new("other", "a"));
        let regarding = Some(Regarding { kind, key, uid: "u1".to_owned() });
        recorder.publish(&object::<TenantKind>(""), &EventNote { regarding, ..note.clone() }).await;
        let about = |namespace: &str, regarding: Value| {
            (format!("POST /apis/events.k8s.io/v1/namespaces/{namespace}/events?"), regarding)
        };
        let expected = [
            about(
                "ns",
                json!({"apiVersion": "v1", "kind": "Service", "name": "a", "namespace": "ns", "uid": "u1"}),
            ),
            about(
                "default",
                json!({"apiVersion": KindInfo::of::<TenantKind>().api_version(), "kind": "Tenant", "name": "a", "uid": "u1"}),
            ),
            about(
                "other",
                json!({"apiVersion": "v1", "kind": "Service", "name": "a", "namespace": "other", "uid": "u1"}),
            ),
        ];
        let asked = api.asked();
        let found = asked.iter().map(|asked| (asked.line.clone(), asked.body["regarding"].clone()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let body = &asked[0].body;
        for (member, expected) in [
            ("reason", "Expired"),
            ("note", "this is odd"),
            ("type", "Warning"),
            ("reportingController", "Tests"),
            ("reportingInstance", "replica-1"),
        ] {
            assert_eq!(body[member], expected, "{member}");
        }
    }

    #[tokio::test]
    async fn a_repetition_is_counted_until_many_other_events_have_followed() {
        let api = ApiServer::start(|asked| (201, asked.body.clone())).await;
        let recorder = Recorder::new(api.client(), "Tests", "replica-1");
        let object = object::<ServiceKind>("ns");
        let publish = async |message: &str| {
            recorder.publish(&object, &EventNote::warning(reason::EXPIRED, message)).await;
            let asked = api.asked();
            let last = asked.last().expect("a request");
            (last.line.split(' ').next().unwrap_or_default().to_owned(), last.body["series"]["count"].clone())
        };
        assert_eq!(publish("first").await, ("POST".to_owned(), Value::Null));
        assert_eq!(publish("first").await, ("PATCH".to_owned(), json!(2)));
        for n in 0..MOST_KEPT {
            assert_eq!(publish(&n.to_string()).await.0, "POST");
        }
        assert_eq!(publish("first").await, ("POST".to_owned(), Value::Null));
        assert_eq!(recorder.clone().current.lock().1, 3, "clones share it");
    }
}
