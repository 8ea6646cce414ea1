//! Objects in files that no API server would store: without a kind, a version or a name.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::api::{Kind as _, names};
use crate::config::tree::{Content, Node};
use crate::kinds::SecretKind;

/// The remedy for a document that is not an object.
const EXPECTED: &str = "expected an object with apiVersion, kind and metadata";

/// A fault of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Its line in the file, from 1; `None` if the parser does not know it.
    pub line: Option<u64>,
    /// The object and the fault.
    pub message: String,
}

/// The faults of a document: an object of one of our kinds, a Secret, or a `List` of such objects. Objects of other kinds
/// have none. Objects without a namespace are in `namespace`, if there is one.
pub fn invalid(
    document: &Node,
    definitions: &[CustomResourceDefinition],
    namespace: Option<&str>,
) -> Vec<Invalid> {
    let text = |key: &str| document.get(key).and_then(Node::text).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let fault = |message: String| Invalid { line: document.line, message };
    match &document.content {
        Content::Scalar(Value::Null) => return Vec::new(),
        Content::Map(_) if kind.is_empty() => return vec![fault(format!("kind is missing; {EXPECTED}"))],
        Content::Map(_) => {}
        Content::List(_) | Content::Scalar(_) => return vec![fault(format!("not an object; {EXPECTED}"))],
    }
    if let (true, Some(Content::List(items))) =
        (kind.ends_with("List"), document.get("items").map(|items| &items.content))
    {
        return items.iter().flat_map(|item| invalid(item, definitions, namespace)).collect();
    }
    let metadata = |key: &str| document.get("metadata").and_then(|metadata| metadata.get(key)?.text());
    let name = metadata("name").unwrap_or_default();
    if kind == SecretKind::KIND {
        return not_text(document, name);
    }
    let Some(definition) = definitions.iter().find(|definition| definition.spec.names.kind == kind) else {
        return Vec::new();
    };
    let group = &definition.spec.group;
    if api_version.split_once('/').is_some_and(|(other, _)| other != group) {
        return Vec::new();
    }
    let versions: Vec<String> =
        definition.spec.versions.iter().map(|version| format!("{group}/{}", version.name)).collect();
    let mut faults = Vec::new();
    if !versions.iter().any(|version| version == api_version) {
        let expected = versions.join(" or ");
        faults.push(fault(format!("{kind} {name}: apiVersion is {api_version:?}; expected {expected}")));
    }
    if name.is_empty() {
        faults.push(fault(format!("{kind}: metadata.name is missing; give the object a name")));
    } else if let Err(error) = names::check_object_name(name) {
        faults.push(fault(format!("{kind}: metadata.name: {error}")));
    }
    let is_namespaced = definition.spec.scope == "Namespaced";
    match metadata("namespace").or(namespace) {
        None if is_namespaced => faults.push(fault(format!(
            "{kind} {name}: metadata.namespace is missing; set it, or pass --namespace NAME"
        ))),
        Some(place) if is_namespaced => {
            if let Err(error) = names::check_dns_label(place) {
                faults.push(fault(format!("{kind} {name}: metadata.namespace: {error}")));
            }
        }
        _ => {}
    }
    faults
}

/// The members of `stringData` of a Secret that are not texts.
fn not_text(secret: &Node, name: &str) -> Vec<Invalid> {
    let Some(Content::Map(entries)) = secret.get("stringData").map(|data| &data.content) else {
        return Vec::new();
    };
    let wrong = entries.iter().filter(|entry| entry.value.text().is_none());
    wrong
        .map(|entry| {
            let key = &entry.key;
            let message = format!("Secret {name}: stringData.{key} is not a text; put it in quotes");
            Invalid { line: entry.line, message }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::crd::crds;
    use crate::config::tree::documents;

    /// The faults of the documents in a text, each with its line.
    fn faults(text: &str, namespace: Option<&str>) -> Vec<String> {
        let definitions = crds();
        let documents = documents(text).expect("YAML");
        let found = documents.iter().flat_map(|document| invalid(document, &definitions, namespace));
        found.map(|Invalid { line, message }| format!("{}: {message}", line.expect("a line"))).collect()
    }

    const TENANT: &str = "apiVersion: crownlabs.polito.it/v1alpha2\nkind: Tenant\n";
    const INSTANCE: &str = "apiVersion: crownlabs.polito.it/v1alpha2\nkind: Instance\n";

    #[test]
    fn an_object_without_kind_version_or_valid_name_is_a_fault() {
        for (text, expected) in [
            ("a: b", "1: kind is missing; expected an object with apiVersion, kind and metadata"),
            ("- a", "1: not an object; expected an object with apiVersion, kind and metadata"),
            ("3", "1: not an object; expected an object with apiVersion, kind and metadata"),
            (
                "kind: Workspace\nmetadata: {name: netlab}",
                "1: Workspace netlab: apiVersion is \"\"; expected crownlabs.polito.it/v1alpha1",
            ),
            (TENANT, "1: Tenant: metadata.name is missing; give the object a name"),
            (
                &*format!("{TENANT}metadata: {{name: A b}}"),
                "1: Tenant: metadata.name: name \"A b\" must consist of lower-case letters, digits, dashes and dots, and \
                 begin and end with a letter or digit",
            ),
            (
                &*format!("# a comment\n---\n{INSTANCE}metadata: {{name: a}}"),
                "3: Instance a: metadata.namespace is missing; set it, or pass --namespace NAME",
            ),
            (
                "kind: List\nitems:\n- kind: Tenant\n  apiVersion: crownlabs.polito.it/v1alpha2\n",
                "3: Tenant: metadata.name is missing; give the object a name",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  port: 5\n",
                "5: Secret s: stringData.port is not a text; put it in quotes",
            ),
        ] {
            assert_eq!(faults(text, None), [expected], "{text}");
        }
    }

    #[test]
    fn valid_objects_and_objects_of_others_have_no_faults() {
        let instance = format!("{INSTANCE}metadata: {{name: a}}");
        for (text, namespace) in [
            ("", None),
            ("---\n---\n", None),
            (&*format!("{TENANT}metadata: {{name: ada.rossi}}"), None),
            (&*instance, Some("tenant-ada")),
            (&*instance.replace("name: a", "name: a, namespace: b"), None),
            ("apiVersion: example.org/v1\nkind: Instance\n", None),
            ("apiVersion: v1\nkind: Pod\n", None),
            ("apiVersion: v1\nkind: Secret\nstringData: {port: \"5\"}\n", None),
        ] {
            assert_eq!(faults(text, namespace), Vec::<String>::new(), "{text}");
        }
    }
}
