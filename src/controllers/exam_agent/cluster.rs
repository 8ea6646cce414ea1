//! The requests to the API server for clients in the allow-list. They need no lease, because each one carries out a
//! request of one client.

use std::collections::BTreeMap;
use std::time::Instant;

use http::header::CONTENT_TYPE;
use http::{Method, Request};
use kube::Client;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::pace::{Pace, TooMany};
use crate::api::instance::InstanceKind;
use crate::api::labels::selector_string;
use crate::api::template::TemplateKind;
use crate::api::{Instance, Kind, Object, Template};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The number of lists that are read at the same time: a list of all Instances of an exam is large.
const LISTS: usize = 4;

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The API server rejected the request or did not answer.
    #[error("{0}")]
    Api(#[from] ApiError),
    /// The request was not sent because too many requests are waiting.
    #[error("there are too many requests")]
    TooMany(TooMany),
}

/// An Instance as it was read: as JSON, the base of a patch, and decoded.
#[derive(Debug, Clone)]
pub struct StoredInstance {
    /// The Instance as the API server stores it.
    pub json: Value,
    /// The same, decoded.
    pub instance: Instance,
}

impl TryFrom<Value> for StoredInstance {
    type Error = Failure;

    fn try_from(json: Value) -> Result<Self, Failure> {
        let decoded = Instance::deserialize(&json);
        let instance =
            decoded.map_err(|error| ApiError::transient(format!("the answer cannot be read: {error}")))?;
        Ok(Self { json, instance })
    }
}

/// The Instances and Templates of one namespace.
pub struct Cluster {
    client: Client,
    namespace: String,
    pace: Mutex<Pace>,
    lists: Semaphore,
}

#[derive(Deserialize)]
#[serde(bound = "")]
struct List<T: Kind> {
    items: Vec<Object<T>>,
}

impl Cluster {
    /// Requests for the objects of a namespace. The client sends writes without the lease.
    pub fn new(client: Client, namespace: &str, pace: Pace) -> Self {
        let lists = Semaphore::new(LISTS);
        Self { client, namespace: namespace.to_owned(), pace: Mutex::new(pace), lists }
    }

    /// The Templates, sorted by name.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn templates(&self) -> Result<Vec<Template>, Failure> {
        self.list::<TemplateKind>(&BTreeMap::new()).await
    }

    /// The Instances with these labels, sorted by name.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn instances(&self, labels: &BTreeMap<String, String>) -> Result<Vec<Instance>, Failure> {
        self.list::<InstanceKind>(labels).await
    }

    /// Returns a Template, or `None` if it does not exist. The name must be a valid object name.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn template(&self, name: &str) -> Result<Option<Template>, Failure> {
        let path = self.path::<TemplateKind>(name);
        missing_is_none(self.send(Method::GET, &path, None).await)
    }

    /// Returns an Instance, or `None` if it does not exist. The name must be a valid object name.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn instance(&self, name: &str) -> Result<Option<StoredInstance>, Failure> {
        let path = self.path::<InstanceKind>(name);
        let found: Option<Value> = missing_is_none(self.send(Method::GET, &path, None).await)?;
        found.map(StoredInstance::try_from).transpose()
    }

    /// Creates an Instance and returns the stored object.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn create(&self, object: &Value) -> Result<StoredInstance, Failure> {
        let path = KindInfo::of::<InstanceKind>().path(&self.namespace);
        let stored: Value = self.send(Method::POST, &path, Some(("application/json", object))).await?;
        stored.try_into()
    }

    /// Changes an Instance by a merge patch and returns the stored object.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn patch(&self, name: &str, changes: &Value) -> Result<StoredInstance, Failure> {
        let path = self.path::<InstanceKind>(name);
        let body = Some(("application/merge-patch+json", changes));
        let stored: Value = self.send(Method::PATCH, &path, body).await?;
        stored.try_into()
    }

    /// Deletes the Instance with this uid. A newer Instance with the same name is not deleted.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn delete(&self, name: &str, uid: &str) -> Result<(), Failure> {
        let path = self.path::<InstanceKind>(name);
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        let body = Some(("application/json", &options));
        self.send::<Value>(Method::DELETE, &path, body).await.map(drop)
    }

    fn path<T: Kind>(&self, name: &str) -> String {
        format!("{}/{name}", KindInfo::of::<T>().path(&self.namespace))
    }

    async fn list<T: Kind>(&self, labels: &BTreeMap<String, String>) -> Result<Vec<Object<T>>, Failure> {
        let mut path = KindInfo::of::<T>().path(&self.namespace);
        if !labels.is_empty() {
            let selector = selector_string(labels);
            path.push_str("?labelSelector=");
            path.extend(utf8_percent_encode(&selector, NON_ALPHANUMERIC));
        }
        // The semaphore is never closed.
        let _place = self.lists.acquire().await.ok();
        let list: List<T> = self.send(Method::GET, &path, None).await?;
        Ok(list.items)
    }

    /// Sends a request when the pace allows it and decodes the response. The client sets the timeout.
    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<T, Failure> {
        let taken = self.pace.lock().take(Instant::now());
        let wait = taken.map_err(Failure::TooMany)?;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let mut request = Request::builder().method(method).uri(path);
        if let Some((content_type, _)) = body {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let body = body.map(|(_, body)| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(body).map_err(|error| ApiError::Invalid(error.to_string()))?;
        Ok(self.client.request(request).await.map_err(ApiError::from)?)
    }
}

/// Maps a "not found" error to `None`.
fn missing_is_none<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Api(ApiError::NotFound(_))) => Ok(None),
        Err(failure) => Err(failure),
    }
}
