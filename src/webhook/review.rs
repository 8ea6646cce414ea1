//! Reads the `AdmissionReview` (`admission.k8s.io/v1`) that the API server sends, and writes the response.

use std::fmt::Display;

use k8s_openapi::ByteString;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::bounded::{self, BoundedObject};
use super::decision::{Decision, Denial, FieldCause};
use crate::api::{Kind, Object};

/// The operation of a request on its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It creates the object.
    Create,
    /// It changes the object.
    Update,
    /// It deletes the object.
    Delete,
    /// It connects to the object, for example with `kubectl exec`.
    Connect,
}

/// The user who sent the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The user name.
    #[serde(deserialize_with = "or_default")]
    pub username: String,
    /// The groups of the user.
    #[serde(deserialize_with = "bounded::texts")]
    pub groups: Vec<String>,
}

/// The resource of the object, as in the URL of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name of the kind, in lower case.
    #[serde(rename = "resource")]
    pub plural: String,
}

/// A request to the API server that needs admission.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The id of the review, which the response repeats.
    pub uid: String,
    /// The resource of the object.
    pub resource: Resource,
    /// The subresource, such as `status`; empty for the object itself.
    #[serde(default, deserialize_with = "or_default")]
    pub sub_resource: String,
    /// The name of the object; empty where the API server generates it.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The namespace of the object; empty for cluster-scoped kinds.
    #[serde(default, deserialize_with = "or_default")]
    pub namespace: String,
    /// The operation of the request.
    pub operation: Operation,
    /// The user who sent the request.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object as it would be stored, without `status` and `metadata.managedFields`; null for a deletion.
    #[serde(default)]
    pub object: BoundedObject,
    /// The object as it is stored now, in the same way; null for a creation.
    #[serde(default)]
    pub old_object: BoundedObject,
    /// Whether the request is a dry run, which stores nothing.
    #[serde(default, deserialize_with = "or_default")]
    pub dry_run: bool,
    /// The options of the request.
    #[serde(default, deserialize_with = "or_default")]
    pub options: Options,
}

/// The options of a request: `CreateOptions`, `UpdateOptions`, `PatchOptions` or `DeleteOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Options {
    /// The field manager that the client has set; empty if it has set none.
    #[serde(deserialize_with = "or_default")]
    pub field_manager: String,
}

impl Request {
    /// The name of the object, even if the API server has generated it, or the request deletes a whole collection.
    pub fn object_name(&self) -> &str {
        if !self.name.is_empty() {
            return &self.name;
        }
        let objects = [&self.object, &self.old_object];
        objects.into_iter().find_map(|object| object.pointer("/metadata/name")?.as_str()).unwrap_or_default()
    }

    /// Whether the request creates or changes the object.
    pub fn is_write(&self) -> bool {
        matches!(self.operation, Operation::Create | Operation::Update)
    }
}

/// Decodes an object of a request. Every member must have the type of the schema. `what` names the object in the
/// message.
///
/// # Errors
/// When the object cannot be read.
pub fn decoded<T: Kind>(json: &Value, what: &str) -> Result<Object<T>, Denial> {
    let unreadable = |fault: &dyn Display| Denial::malformed(format!("the {what} cannot be read: {fault}"));
    let object = Object::<T>::deserialize(json).map_err(|error| unreadable(&error))?;
    match object.malformed {
        Some(fault) => Err(unreadable(&fault)),
        None => Ok(object),
    }
}

/// Reads a member that may be `null`, which counts as the default value.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// The reason why a body is not a valid `AdmissionReview`.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The body is not JSON, or a member has the wrong type.
    #[error("the body is not an AdmissionReview: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The body is another kind of object, or another version of `AdmissionReview`.
    #[error("the body is {kind:?} of {api_version:?}; expected AdmissionReview of admission.k8s.io/v1")]
    Version {
        /// The `apiVersion` of the body.
        api_version: String,
        /// The `kind` of the body.
        kind: String,
    },
    /// The `AdmissionReview` has no `request`.
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Reads the request of an `AdmissionReview`.
///
/// # Errors
/// When the body is not an `AdmissionReview`, has another version, or has no request.
pub fn read(body: &[u8]) -> Result<Request, ReviewError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Review {
        #[serde(default)]
        api_version: String,
        #[serde(default)]
        kind: String,
        request: Option<Request>,
    }
    let Review { api_version, kind, request } = serde_json::from_slice(body)?;
    if api_version != API_VERSION || kind != KIND {
        return Err(ReviewError::Version { api_version, kind });
    }
    request.ok_or(ReviewError::NoRequest)
}

/// Returns the `AdmissionReview` with the response to the request with this uid.
pub fn response(uid: &str, decision: &Decision) -> Value {
    let mut response = json!({"uid": uid, "allowed": decision.is_allowed()});
    if !decision.warnings.is_empty() {
        response["warnings"] = json!(decision.warnings);
    }
    match &decision.outcome {
        Ok(patch) if patch.is_empty() => {}
        Ok(patch) => {
            // JSON values serialise without failure; ByteString writes base64.
            let patch = ByteString(serde_json::to_vec(patch).unwrap_or_default());
            response["patchType"] = "JSONPatch".into();
            response["patch"] = json!(patch);
        }
        Err(Denial { code, reason, message, causes, fields }) => {
            let mut status = json!({"status": "Failure", "code": code, "reason": reason, "message": message});
            // As the API server reports the fields that its own validation rejects.
            let fields = fields.iter().map(|FieldCause { path, message }| {
                json!({"reason": "FieldValueInvalid", "message": message, "field": path})
            });
            let causes: Vec<Value> = causes.iter().map(|cause| json!(cause)).chain(fields).collect();
            if !causes.is_empty() {
                status["details"] = json!({"causes": causes});
            }
            response["status"] = status;
        }
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
}

#[cfg(test)]
mod tests {
    use json_patch::jsonptr::PointerBuf;
    use json_patch::{PatchOperation, RemoveOperation};

    use super::*;
    use crate::api::denial::DenialReason;

    fn review(request: &Value) -> Vec<u8> {
        json!({"apiVersion": API_VERSION, "kind": KIND, "request": request}).to_string().into_bytes()
    }

    #[test]
    fn absent_and_null_members_have_defaults() {
        let least = json!({
            "uid": "u", "resource": {"group": "g", "version": "v", "resource": "r"}, "operation": "CREATE",
        });
        let request = read(&review(&least)).expect("readable");
        assert_eq!(
            (request.operation, request.name.as_str(), request.dry_run),
            (Operation::Create, "", false)
        );
        let nulls = json!({
            "uid": "u", "resource": {"group": "g", "version": "v", "resource": "r"}, "operation": "UPDATE",
            "subResource": null, "name": null, "namespace": null, "dryRun": null, "object": null,
            "oldObject": null, "userInfo": {"username": "ada", "groups": null, "extra": {"a": ["b"]}},
            "options": {"kind": "UpdateOptions", "fieldManager": "kubectl-edit"},
        });
        let request = read(&review(&nulls)).expect("readable");
        assert_eq!(request.options.field_manager, "kubectl-edit");
        assert_eq!(request.user_info.username, "ada");
        assert!(request.user_info.groups.is_empty() && request.object.is_null());
    }

    #[test]
    fn a_generated_name_is_read_from_the_object() {
        let request = json!({
            "uid": "u", "resource": {}, "operation": "CREATE", "object": {"metadata": {"name": "made-up"}},
        });
        assert_eq!(read(&review(&request)).expect("readable").object_name(), "made-up");
    }

    #[test]
    fn a_body_that_is_no_review_is_refused_with_the_reason() {
        let old = json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": KIND}).to_string();
        let empty = json!({"apiVersion": API_VERSION, "kind": KIND}).to_string();
        for (body, words) in [
            ("{", "not an AdmissionReview"),
            ("[]", "not an AdmissionReview"),
            ("{}", "expected AdmissionReview of admission.k8s.io/v1"),
            (old.as_str(), "v1beta1"),
            (empty.as_str(), "has no request"),
        ] {
            let error = read(body.as_bytes()).expect_err(body).to_string();
            assert!(error.contains(words), "{body}: {error}");
        }
    }

    #[test]
    fn responses_have_no_empty_members() {
        assert_eq!(response("u", &Decision::allowed())["response"], json!({"uid": "u", "allowed": true}));
        let removal = RemoveOperation { path: PointerBuf::from_tokens(["a/b"]) };
        let patch = vec![PatchOperation::Remove(removal)];
        let admitted = &response("u", &Decision::patched(patch))["response"];
        assert_eq!(admitted["patchType"], "JSONPatch");
        let patch: ByteString = serde_json::from_value(admitted["patch"].clone()).expect("base64");
        assert_eq!(patch.0, br#"[{"op":"remove","path":"/a~1b"}]"#);
        let refused = Decision::denied(Denial::forbidden("no")).with_warning("look");
        assert_eq!(
            response("u", &refused)["response"],
            json!({
                "uid": "u", "allowed": false, "warnings": ["look"],
                "status": {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"},
            })
        );
        let denial = Denial::forbidden("no").because(DenialReason::NotEnrolled, "tea");
        let denial = denial.because(DenialReason::NoTenant, "").at("spec.x".to_owned(), "no");
        assert_eq!(
            response("u", &Decision::denied(denial))["response"]["status"]["details"],
            json!({"causes": [
                {"reason": "NotEnrolled", "message": "tea"},
                {"reason": "NoTenant"},
                {"reason": "FieldValueInvalid", "message": "no", "field": "spec.x"},
            ]})
        );
    }
}
