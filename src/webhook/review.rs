//! `AdmissionReview` v1 of `admission.k8s.io`: what the API server asks, and what it is answered.

use k8s_openapi::ByteString;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::decision::Decision;

/// What is to be done to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is to be created.
    Create,
    /// It is to be changed.
    Update,
    /// It is to be deleted.
    Delete,
    /// Something of it is to be connected to.
    Connect,
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name of the user.
    #[serde(deserialize_with = "or_default")]
    pub username: String,
    /// The groups that the user is in.
    #[serde(deserialize_with = "or_default")]
    pub groups: Vec<String>,
}

/// The kind that is asked about, as it stands in URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name.
    pub resource: String,
}

/// A request that waits for admission.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// What the answer is matched by.
    pub uid: String,
    /// The kind of the object.
    pub resource: Resource,
    /// The part of the object, such as `status`; empty for the object itself.
    #[serde(default, deserialize_with = "or_default")]
    pub sub_resource: String,
    /// The name of the object; empty where the API server makes one up.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The namespace of the object; empty for kinds without.
    #[serde(default, deserialize_with = "or_default")]
    pub namespace: String,
    /// What is to be done.
    pub operation: Operation,
    /// Who asks for it.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object as it would be stored; null when it is deleted.
    #[serde(default)]
    pub object: Value,
    /// The object as it is stored; null when it is created.
    #[serde(default)]
    pub old_object: Value,
    /// Whether nothing is to be stored.
    #[serde(default, deserialize_with = "or_default")]
    pub dry_run: bool,
}

impl Request {
    /// The name of the object, also where the API server made it up.
    #[must_use]
    pub fn object_name(&self) -> &str {
        let own = || self.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if self.name.is_empty() { own() } else { &self.name }
    }
}

/// Reads `null` as the default.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Why a text is not a question that can be answered.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// No `AdmissionReview` in JSON.
    #[error("the body is not an AdmissionReview: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Another version of the format.
    #[error("the body is {kind:?} of {api_version:?}; AdmissionReview of admission.k8s.io/v1 is answered")]
    Version {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// Nothing is asked.
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Reads a question.
///
/// # Errors
/// When it is none, or of another version.
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

/// The answer to the question of that uid, as the API server reads it.
#[must_use]
pub fn answer(uid: &str, decision: &Decision) -> Value {
    let mut response = json!({"uid": uid, "allowed": decision.is_allowed()});
    if !decision.warnings.is_empty() {
        response["warnings"] = json!(decision.warnings);
    }
    match &decision.outcome {
        Ok(patch) if patch.is_empty() => {}
        Ok(patch) => {
            // Texts and JSON values serialise without failure; ByteString writes base64.
            let patch = ByteString(serde_json::to_vec(patch).unwrap_or_default());
            response["patchType"] = "JSONPatch".into();
            response["patch"] = json!(patch);
        }
        Err(denial) => {
            response["status"] = json!({
                "status": "Failure", "code": denial.code(), "reason": denial.reason(),
                "message": denial.message(),
            });
        }
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
}

#[cfg(test)]
mod tests {
    use json_patch::jsonptr::PointerBuf;
    use json_patch::{PatchOperation, RemoveOperation};

    use super::*;
    use crate::webhook::decision::Denial;

    fn review(request: &Value) -> Vec<u8> {
        json!({"apiVersion": API_VERSION, "kind": KIND, "request": request}).to_string().into_bytes()
    }

    #[test]
    fn what_the_api_server_leaves_out_or_sends_as_null_has_a_default() {
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
            "options": {"kind": "UpdateOptions"},
        });
        let request = read(&review(&nulls)).expect("readable");
        assert_eq!(request.user_info.username, "ada");
        assert!(request.user_info.groups.is_empty() && request.object.is_null());
    }

    #[test]
    fn a_name_that_the_api_server_made_up_stands_in_the_object() {
        let request = json!({
            "uid": "u", "resource": {}, "operation": "CREATE", "object": {"metadata": {"name": "made-up"}},
        });
        assert_eq!(read(&review(&request)).expect("readable").object_name(), "made-up");
    }

    #[test]
    fn what_is_no_question_is_refused_with_the_reason() {
        let old = json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": KIND}).to_string();
        let empty = json!({"apiVersion": API_VERSION, "kind": KIND}).to_string();
        for (body, words) in [
            ("{", "not an AdmissionReview"),
            ("[]", "not an AdmissionReview"),
            ("{}", "admission.k8s.io/v1 is answered"),
            (old.as_str(), "v1beta1"),
            (empty.as_str(), "has no request"),
        ] {
            let error = read(body.as_bytes()).expect_err(body).to_string();
            assert!(error.contains(words), "{body}: {error}");
        }
    }

    #[test]
    fn answers_say_only_what_there_is_to_say() {
        assert_eq!(answer("u", &Decision::allowed())["response"], json!({"uid": "u", "allowed": true}));
        let path = PointerBuf::from_tokens(["a/b"]);
        let patch = vec![PatchOperation::Remove(RemoveOperation { path })];
        let response = &answer("u", &Decision::patched(patch))["response"];
        assert_eq!(response["patchType"], "JSONPatch");
        let patch: ByteString = serde_json::from_value(response["patch"].clone()).expect("base64");
        assert_eq!(patch.0, br#"[{"op":"remove","path":"/a~1b"}]"#);
        let refused = Decision::denied(Denial::forbidden("no")).with_warning("look");
        assert_eq!(
            answer("u", &refused)["response"],
            json!({
                "uid": "u", "allowed": false, "warnings": ["look"],
                "status": {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"},
            })
        );
    }
}
