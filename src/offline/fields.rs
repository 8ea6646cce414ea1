//! Unknown fields of custom resources, which the API server would drop.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::config::nearest;
use crate::config::tree::{Content, Entry, Node};

/// The members of `metadata` in Kubernetes; the schemas of custom resources do not list them.
const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// A field that the schema of its object does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    /// Its line in the file, from 1; `None` if the parser does not know it.
    pub line: Option<u64>,
    /// The kind of the object.
    pub kind: String,
    /// The path of the field.
    pub path: String,
    /// The fault, with the object and the path of the field.
    pub message: String,
}

/// The unknown fields of a document: an object of one of our kinds, or a `List` of such objects. Other documents have
/// none.
pub fn unknown(document: &Node, definitions: &[CustomResourceDefinition]) -> Vec<UnknownField> {
    let text = |key: &str| document.get(key).and_then(Node::text).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if let (true, Some(Content::List(items))) =
        (kind.ends_with("List"), document.get("items").map(|items| &items.content))
    {
        return items.iter().flat_map(|item| unknown(item, definitions)).collect();
    }
    let of_kind = definitions.iter().find(|crd| crd.spec.names.kind == kind);
    let Some((definition, (group, version))) = of_kind.zip(api_version.split_once('/')) else {
        return Vec::new();
    };
    let mut versions = definition.spec.versions.iter();
    let version = versions.find(|known| definition.spec.group == group && known.name == version);
    let schema = version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    let Some(schema) = schema else { return Vec::new() };
    let metadata = |key: &str| document.get("metadata").and_then(|metadata| metadata.get(key));
    let name = |key: &str| metadata(key).and_then(Node::text).unwrap_or_default();
    let object = match name("namespace") {
        "" => format!("{kind} {}", name("name")),
        namespace => format!("{kind} {namespace}/{}", name("name")),
    };
    let mut found = UnknownFields { kind, object, fields: Vec::new() };
    found.node("", document, schema);
    if let Some(Content::Map(entries)) = document.get("metadata").map(|metadata| &metadata.content) {
        for entry in entries.iter().filter(|entry| !METADATA.contains(&&*entry.key)) {
            found.field("metadata", entry, METADATA.into_iter());
        }
    }
    found.fields.sort_by_key(|field| field.line);
    found.fields
}

/// The unknown fields of one object.
struct UnknownFields<'a> {
    kind: &'a str,
    /// Kind, namespace and name of the object.
    object: String,
    fields: Vec<UnknownField>,
}

impl UnknownFields<'_> {
    /// Compares a value with its schema. Other faults are left to the API server.
    fn node(&mut self, path: &str, node: &Node, schema: &JSONSchemaProps) {
        match &node.content {
            Content::Map(entries) => entries.iter().for_each(|entry| self.entry(path, entry, schema)),
            Content::List(items) => {
                let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items else { return };
                for (index, item) in items.iter().enumerate() {
                    self.node(&format!("{path}[{index}]"), item, schema);
                }
            }
            Content::Scalar(_) => {}
        }
    }

    fn entry(&mut self, path: &str, entry: &Entry, schema: &JSONSchemaProps) {
        let inner = join(path, &entry.key);
        if let Some(known) = schema.properties.as_ref().and_then(|known| known.get(&entry.key)) {
            return self.node(&inner, &entry.value, known);
        }
        match (&schema.additional_properties, &schema.properties) {
            (Some(JSONSchemaPropsOrBool::Schema(others)), _) => self.node(&inner, &entry.value, others),
            (None, Some(known)) if schema.x_kubernetes_preserve_unknown_fields != Some(true) => {
                self.field(path, entry, known.keys().map(String::as_str));
            }
            // Anything is allowed here.
            _ => {}
        }
    }

    fn field<'a>(&mut self, path: &str, entry: &Entry, known: impl Iterator<Item = &'a str>) {
        let suggestion = nearest(&entry.key, known);
        let suggestion = suggestion.map_or_else(String::new, |known| format!("; did you mean \"{known}\"?"));
        let (object, path) = (&self.object, join(path, &entry.key));
        let message = format!("{object}: unknown field {path}, which the API server drops{suggestion}");
        self.fields.push(UnknownField { line: entry.line, kind: self.kind.to_owned(), path, message });
    }
}

/// Returns the path of a field. A name with a dot or slash, such as a reference to a Workspace, is put in brackets and
/// quotes.
fn join(path: &str, key: &str) -> String {
    match (path, key.contains(['.', '/'])) {
        ("", false) => key.to_owned(),
        (path, false) => format!("{path}.{key}"),
        (path, true) => format!("{path}[{key:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::crd::crds;
    use crate::config::tree::documents;

    fn found(text: &str) -> Vec<(Option<u64>, String)> {
        let documents = documents(text).expect("YAML");
        let crds = crds();
        let found = documents.iter().flat_map(|document| unknown(document, &crds));
        found.map(|field| (field.line, field.message)).collect()
    }

    #[test]
    fn each_unknown_field_is_named_with_its_line_and_path() {
        let text = r"# A comment before the first document.
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata:
  name: web
  namespace: workspace-tea
  lables: {a: b}
  labels: {any: thing}
spec:
  prettyName: Web
  workspace.crownlabs.polito.it/WorkspaceRef: {name: tea, cluster: x}
  environmentList:
  - name: main
    resources: {cpu: 1, otherResources: {nvidia.com/gpu: '1'}}
  - name: other
    resources:
      memroy: 1Gi
---
apiVersion: v1
kind: ConfigMap
metadata: {name: any}
data: {whatever: x}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {name: one, namespace: tenant-ada}
spec:
  runing: true
  zzz: 1
status: {phase: Ready, nonsense: 1}
";
        let template = "Template workspace-tea/web: unknown field";
        let instance = "Instance tenant-ada/one: unknown field";
        let reference = r#"spec["workspace.crownlabs.polito.it/WorkspaceRef"].cluster"#;
        let dropped = "which the API server drops";
        let expected = [
            (7, format!("{template} metadata.lables, {dropped}; did you mean \"labels\"?")),
            (11, format!("{template} {reference}, {dropped}")),
            (
                17,
                format!(
                    "{template} spec.environmentList[1].resources.memroy, {dropped}; did you mean \"memory\"?"
                ),
            ),
            (28, format!("{instance} spec.runing, {dropped}; did you mean \"running\"?")),
            (29, format!("{instance} spec.zzz, {dropped}")),
            (30, format!("{instance} status.nonsense, {dropped}")),
        ];
        assert_eq!(found(text), expected.map(|(line, message)| (Some(line), message)));
    }

    #[test]
    fn the_items_of_a_list_are_checked() {
        let text = "kind: List\nitems:\n- apiVersion: crownlabs.polito.it/v1alpha1\n  kind: Workspace\n  \
                    metadata: {name: tea}\n  spec: {pretyName: Tea}\n";
        let message = "Workspace tea: unknown field spec.pretyName, which the API server drops; did you mean \
                       \"prettyName\"?";
        assert_eq!(found(text), [(Some(6), message.to_owned())]);
    }

    #[test]
    fn content_without_a_schema_is_not_checked() {
        for text in [
            "apiVersion: crownlabs.polito.it/v9\nkind: Instance\nspec: {x: 1}\n",
            "apiVersion: example.org/v1alpha2\nkind: Instance\nspec: {x: 1}\n",
            "kind: Instance\nspec: {x: 1}\n",
            "apiVersion: crownlabs.polito.it/v1alpha2\nkind: Instance\nspec: text\n",
            "just text\n",
            "[1, 2]\n",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}
