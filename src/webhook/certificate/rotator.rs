//! Rotates the webhooks' certificate. The leader renews it in a Secret and writes the authorities that sign it into the
//! webhook configurations. Every replica serves the certificate of the Secret.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::Data;
use super::bundle::{Bundle, CA_CERTIFICATE, renewed};
use super::registration::Registration;
use crate::api::{Kind, Object};
use crate::kinds::{
    CertificateSecret, CertificateSecretKind, MutatingWebhookConfigurationKind,
    ValidatingWebhookConfigurationKind, WebhookEntries,
};
use crate::runtime::certificate::resolver::CertificateResolver;
use crate::runtime::client::Writer;
use crate::runtime::controller::{ReconcileError, ReconcileKey};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;
use crate::runtime::queue::Action;
use crate::runtime::store::Store;
use crate::runtime::{ObjectKey, clock};

/// The interval between checks whether the certificate must be renewed. Certificates are valid for months, so one hour
/// is sufficient.
const PERIOD: Duration = Duration::from_hours(1);

/// The stores of the objects that the rotator writes. Each holds one object.
#[derive(Clone)]
pub struct Stores {
    /// The Secret with the certificate, its key, and the authorities.
    pub secrets: Arc<Store<CertificateSecretKind>>,
    /// The configuration of the mutating webhooks.
    pub mutating: Arc<Store<MutatingWebhookConfigurationKind>>,
    /// The configuration of the validating webhooks.
    pub validating: Arc<Store<ValidatingWebhookConfigurationKind>>,
}

/// The reconciler that renews the certificate while this replica leads.
pub struct Rotator {
    stores: Stores,
    writer: Writer,
    /// The Secret. The webhook configurations have the same name.
    secret: ObjectKey,
    /// The host names and IP addresses of the certificate.
    names: Vec<String>,
    /// The last data of the Secret that could be read. If the Secret is deleted, it is created again with this data, so
    /// that API servers and replicas still agree on it.
    known: Mutex<Option<Data>>,
    /// Reports missing webhook configurations.
    registration: Registration,
}

impl ReconcileKey for Rotator {
    const NAME: &'static str = "webhook-certificate";

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, ReconcileError> {
        self.registration.report(&self.stores, &self.secret.name);
        self.rotate(clock::now()).await?;
        Ok(Action::RequeueAfter(PERIOD))
    }
}

impl Rotator {
    /// Rotates the certificate for `names` in `secret`, and publishes its authorities in the webhook
    /// configurations of the same name. `registration` reports the configurations that are missing.
    pub fn new(
        stores: Stores,
        writer: Writer,
        secret: ObjectKey,
        names: Vec<String>,
        registration: Registration,
    ) -> Self {
        Self { stores, writer, secret, names, known: Mutex::default(), registration }
    }

    async fn rotate(&self, now: Timestamp) -> Result<(), String> {
        let stored = self.stores.secrets.get(&self.secret.namespace, &self.secret.name);
        let current = self.current(stored.as_deref());
        let next = renewed(current.as_ref(), &self.names, now)
            .map_err(|error| format!("the webhook's certificate cannot be renewed: {error}"))?;
        if next.is_some() {
            info!(secret = %self.secret, "renewing the webhook's certificate");
        }
        let Some(bundle) = next.or(current) else {
            return Err("there is no certificate".to_owned()); // `renewed` always creates a missing one
        };
        let data = bundle.data();
        if stored.as_ref().is_none_or(|stored| stored.spec != data) {
            self.store(stored.as_deref(), &data)
                .await
                .map_err(|error| format!("Secret {}: {error}", self.secret))?;
        }
        let trusted = data.get(CA_CERTIFICATE).cloned().unwrap_or_default();
        *self.known.lock() = Some(data);
        let mutating = self.publish(&self.stores.mutating, &trusted).await;
        let validating = self.publish(&self.stores.validating, &trusted).await;
        mutating.and(validating)
    }

    /// Returns the bundle of the Secret. If the Secret is missing or invalid, returns the last bundle that could be
    /// read.
    fn current(&self, stored: Option<&CertificateSecret>) -> Option<Bundle> {
        match stored.map(|stored| Bundle::read(&stored.spec)) {
            Some(Ok(bundle)) => return Some(bundle),
            Some(Err(error)) => warn!(secret = %self.secret, %error, "the webhook's certificate is invalid"),
            None => {}
        }
        let known = self.known.lock();
        Bundle::read(known.as_ref()?).ok()
    }

    /// Creates or patches the Secret. Fails with a conflict if it has changed since `stored` was read.
    async fn store(&self, stored: Option<&CertificateSecret>, data: &Data) -> Result<(), ApiError> {
        let collection = KindInfo::of::<CertificateSecretKind>().path(&self.secret.namespace);
        let (method, path, content, body) = if let Some(stored) = stored {
            let seen = json!({"uid": stored.uid(), "resourceVersion": stored.metadata.resource_version});
            let path = format!("{collection}/{}", self.secret.name);
            (Method::PATCH, path, "application/merge-patch+json", json!({"metadata": seen, "data": data}))
        } else {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data,
                "metadata": {"name": self.secret.name, "namespace": self.secret.namespace},
            });
            (Method::POST, collection, "application/json", secret)
        };
        let secret = self.send(method, &path, content, &body).await?;
        self.stores.secrets.record(secret, Self::NAME);
        Ok(())
    }

    /// Writes the authorities (PEM in base64) into the `caBundle` of each webhook of a configuration that does not have
    /// them yet. A configuration that does not exist is [reported](Registration), and is not an error.
    async fn publish<T>(&self, store: &Store<T>, trusted: &str) -> Result<(), String>
    where
        T: Kind<Spec = WebhookEntries>,
    {
        let name = self.secret.name.as_str();
        // A configuration that does not exist may be installed later, or not at all.
        let operations = store.get("", name).map_or_else(Vec::new, |found| trusting(&found.spec, trusted));
        if operations.is_empty() {
            return Ok(());
        }
        let path = format!("{}/{name}", KindInfo::of::<T>().path(""));
        let written =
            self.send(Method::PATCH, &path, "application/json-patch+json", &Value::from(operations)).await;
        let written = written.map_err(|error| format!("{} {name}: {error}", T::KIND))?;
        info!(kind = T::KIND, name, "the API server knows the webhook's authorities");
        store.record(written, Self::NAME);
        Ok(())
    }

    async fn send<T: Kind>(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
    ) -> Result<Object<T>, ApiError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?fieldManager=crownlabs"))
            .header("content-type", content)
            .header("accept", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|error| ApiError::Invalid(format!("the request cannot be built: {error}")))?;
        let answer = self.writer.send(request).await?;
        serde_json::from_slice(&answer)
            .map_err(|error| ApiError::transient(format!("the answer cannot be read: {error}")))
    }
}

/// Returns the JSON patch that updates the `caBundle` of the webhooks of a configuration that have another value. It
/// tests the name of each webhook first, so that it fails if the list has changed meanwhile.
fn trusting(entries: &WebhookEntries, trusted: &str) -> Vec<Value> {
    let mut operations = Vec::new();
    for (index, webhook) in entries.webhooks.iter().enumerate() {
        if webhook.client_config.ca_bundle.as_deref() != Some(trusted) {
            let place = format!("/webhooks/{index}");
            operations.push(json!({"op": "test", "path": format!("{place}/name"), "value": webhook.name}));
            let path = format!("{place}/clientConfig/caBundle");
            operations.push(json!({"op": "add", "path": path, "value": trusted}));
        }
    }
    operations
}

/// Serves the certificate of the Secret from now on. If the certificate is invalid, the current one stays in use and a
/// warning is logged.
pub fn serve(secret: &CertificateSecret, resolver: &CertificateResolver) {
    match Bundle::read(&secret.spec).and_then(|bundle| bundle.certified()) {
        Ok(certified) => resolver.set(certified),
        Err(error) => {
            let place = format!("Secret {}", ObjectKey::of(secret));
            resolver.refuse(&place, &format!("{error}; the leader replaces it"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_webhooks_with_another_bundle_are_patched() {
        let entries = |bundles: &[Option<&str>]| -> WebhookEntries {
            let webhooks: Vec<Value> = (0..bundles.len())
                .map(|index| {
                    let client = json!({"caBundle": bundles[index], "url": "https://x"});
                    json!({"name": format!("w{index}"), "clientConfig": client})
                })
                .collect();
            serde_json::from_value(json!({"webhooks": webhooks})).expect("webhooks")
        };
        assert_eq!(trusting(&entries(&[Some("new"), Some("new")]), "new"), Vec::<Value>::new());
        assert_eq!(trusting(&entries(&[]), "new"), Vec::<Value>::new());
        assert_eq!(
            trusting(&entries(&[Some("new"), None, Some("old")]), "new"),
            [
                json!({"op": "test", "path": "/webhooks/1/name", "value": "w1"}),
                json!({"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "new"}),
                json!({"op": "test", "path": "/webhooks/2/name", "value": "w2"}),
                json!({"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": "new"}),
            ]
        );
    }
}
