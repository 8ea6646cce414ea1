//! A change of an object as a request, which the client of users and `kube`'s client can send.

use http::header::CONTENT_TYPE;
use http::{Method, Request};
use serde_json::{Value, json};

use super::{Content, Patch, collection};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;
use crate::runtime::{ObjectKey, merge};

const JSON: &str = "application/json";

/// A request that changes an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    media_type: &'static str,
    body: Value,
}

impl Call {
    /// Creates an object. `body` contains everything except `apiVersion` and `kind`.
    ///
    /// # Errors
    /// [`ApiError::Invalid`] if the namespace is not a valid name.
    pub fn create(kind: KindInfo, namespace: &str, body: &Value) -> Result<Self, ApiError> {
        let mut body = body.clone();
        merge::apply(&mut body, &json!({"apiVersion": kind.api_version(), "kind": kind.kind}));
        Ok(Self { method: Method::POST, path: collection(kind, namespace)?, media_type: JSON, body })
    }

    /// Changes an object.
    ///
    /// # Errors
    /// [`ApiError::Invalid`] if the key is invalid.
    pub fn patch(kind: KindInfo, key: &ObjectKey, change: Patch<'_>) -> Result<Self, ApiError> {
        let (media_type, body) = match change {
            Patch::Merge(body) => ("application/merge-patch+json", body),
            Patch::Json(body) => ("application/json-patch+json", body),
        };
        Ok(Self { method: Method::PATCH, path: kind.object_path(key)?, media_type, body: body.clone() })
    }

    /// Deletes the object that has this uid.
    ///
    /// # Errors
    /// [`ApiError::Invalid`] if the key is invalid.
    pub fn delete(kind: KindInfo, key: &ObjectKey, uid: &str) -> Result<Self, ApiError> {
        let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        Ok(Self { method: Method::DELETE, path: kind.object_path(key)?, media_type: JSON, body })
    }

    /// Makes the API server and its webhooks check the change without carrying it out.
    #[must_use]
    pub fn dry(mut self) -> Self {
        // The API server ignores the query of a deletion that has a body, but its audit log shows the query.
        if self.method == Method::DELETE {
            self.body["dryRun"] = json!(["All"]);
        }
        self.path.push_str("?dryRun=All");
        self
    }

    /// Returns the content.
    pub(super) fn content(&self) -> Content {
        Content { media_type: self.media_type, ..Content::json(&self.body) }
    }

    /// Returns the request for `kube`'s client.
    ///
    /// # Errors
    /// [`ApiError::Invalid`] if the path is not valid in a URL.
    pub fn request(self) -> Result<Request<Vec<u8>>, ApiError> {
        let Self { method, path, media_type, body } = self;
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, media_type);
        let request = request.body(body.to_string().into_bytes());
        request.map_err(|error| ApiError::Invalid(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::instance::InstanceKind;

    const KIND: KindInfo = KindInfo::of::<InstanceKind>();
    const PATH: &str = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-ada/instances";

    #[test]
    fn a_change_is_a_request_with_its_method_path_and_body() {
        let key = ObjectKey::new("tenant-ada", "vm");
        let patch = json!({"spec": {"running": true}});
        for (call, line, media_type, body) in [
            (
                Call::create(KIND, "tenant-ada", &json!({"metadata": {"name": "vm"}})),
                format!("POST {PATH}"),
                "application/json",
                json!({"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "metadata": {"name": "vm"}}),
            ),
            (
                Call::patch(KIND, &key, Patch::Merge(&patch)),
                format!("PATCH {PATH}/vm"),
                "application/merge-patch+json",
                patch.clone(),
            ),
            (
                Call::delete(KIND, &key, "u1"),
                format!("DELETE {PATH}/vm"),
                "application/json",
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u1"}}),
            ),
        ] {
            let call = call.expect("valid names");
            let dry = call.clone().dry().request().expect("a request");
            let sent: Value = serde_json::from_slice(dry.body()).expect("JSON");
            let is_in_body = sent["dryRun"] == json!(["All"]);
            assert_eq!(is_in_body, dry.method() == Method::DELETE);
            assert_eq!(format!("{} {}", dry.method(), dry.uri()), format!("{line}?dryRun=All"));
            let request = call.request().expect("a request");
            assert_eq!(format!("{} {}", request.method(), request.uri()), line);
            assert_eq!(request.headers()[CONTENT_TYPE], media_type);
            assert_eq!(serde_json::from_slice::<Value>(request.body()).expect("JSON"), body);
        }
    }

    #[test]
    fn a_change_with_an_invalid_name_is_not_sent() {
        for key in [ObjectKey::new("tenant-ada", "a/b"), ObjectKey::new("..", "vm")] {
            assert!(matches!(Call::delete(KIND, &key, "u1"), Err(ApiError::Invalid(_))), "{key}");
        }
        assert!(Call::create(KIND, "a/b", &json!({})).is_err());
    }
}
