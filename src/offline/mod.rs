//! `crownlabs plan`: the objects that the loops would make for the custom resources in files, without a cluster. It
//! uses the same plan function as `run`; only the stores are filled from files.

pub mod fields;
pub mod files;
pub mod format;
mod invalid;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use self::fields::UnknownField;
use self::files::Input;
use self::format::Format;
use self::invalid::Invalid;
use crate::api::crd::crds;
use crate::api::labels::selector_string;
use crate::api::pod_config::PodConfigKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;
use crate::api::{GROUP, Kind, shown};
use crate::config::{Config, tree};
use crate::controllers::setup::Setup;
use crate::kinds::{NamespaceKind, SecretKind};
use crate::loops::{BuiltLoop, Planned, leader_loops};
use crate::runtime::gate::Gate;
use crate::runtime::plan::to_value;
use crate::runtime::store::StoreFactory;
use crate::runtime::{clock, merge};

/// The output of `crownlabs plan`.
#[derive(Debug, Default)]
pub struct Output {
    /// Each custom resource with its labels, followed by the objects that are made for it. Resources without such
    /// objects are omitted.
    pub objects: Vec<Value>,
    /// Objects that cannot be made or were ignored, one sentence each.
    pub messages: Vec<String>,
    /// Whether an object cannot be made until the files change.
    pub is_refused: bool,
}

/// Information in addition to the files.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The namespace of objects without a namespace.
    pub namespace: Option<String>,
    /// The objects of a cluster. Nothing is planned for them; objects in the files replace them.
    pub cluster: Option<Vec<Value>>,
    /// The parts of the cluster that could not be read, one sentence each.
    pub messages: Vec<String>,
}

impl Output {
    /// Formats the objects as YAML documents, or as a `List` in JSON.
    ///
    /// # Errors
    /// Never for objects that come from [`plan`].
    pub fn text(&self, format: Format) -> anyhow::Result<String> {
        let document = |object: &Value| format.write(object).map(|text| format!("---\n{text}"));
        match format {
            Format::Yaml => self.objects.iter().map(document).collect(),
            Format::Json => format.write(&json!({"apiVersion": "v1", "kind": "List", "items": self.objects})),
        }
    }

    /// Adds the plan for an object. `printed` contains the names of objects that are already in the output, because two
    /// loops may work on the same kind.
    fn add(&mut self, planned: Planned, config: &Config, printed: &mut BTreeSet<String>) {
        let Planned { kind, key, is_ours, object, made, messages, is_refused, .. } = planned;
        let name = format!("{kind} {key}");
        if !is_ours {
            let labels = selector_string(&config.selector);
            self.messages.push(format!("{name} is skipped: it does not have the labels {labels} (selector)"));
            return;
        }
        self.is_refused |= is_refused;
        let said = messages.into_iter().map(|message| format!("{name}: {}", shown::message(&message)));
        self.messages.extend(said);
        self.objects.extend(object.filter(|_| printed.insert(name)));
        self.objects.extend(made);
    }
}

/// Plans for all objects in the files and folders. Together with `around`, they are taken as the whole cluster. No object
/// has been created for them yet, and `KubeVirt` is installed.
///
/// # Errors
/// When a file cannot be read or is not YAML; the message names it.
pub fn plan(files: &[PathBuf], config: &Config, around: Surroundings) -> anyhow::Result<Output> {
    let (definitions, mut documents, mut messages) = (crds(), Vec::new(), Vec::new());
    let mut is_refused = false;
    for Input { name, text } in files::read(files)? {
        // The files come from the caller, so the number of documents and nodes is not limited.
        let options = serde_saphyr::options! { budget: None };
        let read: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
            .map_err(|error| anyhow::anyhow!("{name}: {}", tree::problem(error)))?;
        // Parse them again to get the lines.
        let lines = tree::documents(&text);
        let lines = lines.map_err(|error| anyhow::anyhow!("{name}: {}", tree::problem(error)))?;
        let mut say = |line: Option<u64>, message: &str| {
            let line = line.map_or_else(String::new, |line| format!(":{line}"));
            messages.push(format!("{name}{line}: {}", shown::message(message)));
        };
        if read.iter().all(Value::is_null) {
            say(None, "no object in it");
        }
        for document in &lines {
            for Invalid { line, message } in
                invalid::invalid(document, &definitions, around.namespace.as_deref())
            {
                is_refused = true;
                say(line, &message);
            }
            for UnknownField { line, message, .. } in fields::unknown(document, &definitions) {
                say(line, &message);
            }
        }
        let items = read.into_iter().flat_map(items).map(|mut document| {
            if let Some(namespace) = &around.namespace {
                settle(&mut document, namespace, &definitions);
            }
            (name.clone(), document)
        });
        documents.extend(items);
    }
    messages.extend(around.messages);
    let mut planning = Planning::new(documents, around.cluster, config)?;
    let mut output = planning.plan()?;
    output.messages.splice(..0, messages);
    output.is_refused |= is_refused;
    Ok(output)
}

/// Sets the namespace of an object without one, if its kind is namespaced.
fn settle(document: &mut Value, namespace: &str, definitions: &[CustomResourceDefinition]) {
    let kind = document["kind"].as_str().unwrap_or_default();
    let is_ours = |crd: &&CustomResourceDefinition| crd.spec.names.kind == kind;
    let is_namespaced = kind == SecretKind::KIND
        || definitions.iter().find(is_ours).is_some_and(|crd| crd.spec.scope == "Namespaced");
    if is_namespaced && document.pointer("/metadata/namespace").is_none() {
        merge::apply(document, &json!({"metadata": {"namespace": namespace}}));
    }
}

/// The loops that make objects, and the cluster that they observe.
struct Planning<'a> {
    cluster: Cluster<'a>,
    /// The loops of cluster-scoped kinds: Instances need the objects that these make for Workspaces and Tenants.
    of_cluster: Vec<Box<dyn BuiltLoop>>,
    in_namespaces: Vec<Box<dyn BuiltLoop>>,
    /// Objects that were ignored, one sentence each.
    messages: Vec<String>,
}

impl<'a> Planning<'a> {
    fn new(
        documents: Vec<(String, Value)>,
        known: Option<Vec<Value>>,
        config: &'a Config,
    ) -> anyhow::Result<Self> {
        // No request is sent to Keycloak: every address counts as confirmed.
        let mut setup = Setup::new(config, Gate::closed());
        let mut factory = StoreFactory::default();
        let loops = leader_loops(&config.controllers, &mut setup, &mut factory)?;
        let loops = loops.into_iter().map(|(_, built)| built);
        let (of_cluster, in_namespaces): (Vec<_>, Vec<_>) = loops.partition(|built| !built.is_namespaced());
        let mut cluster = Cluster {
            factory,
            config,
            seen: BTreeSet::new(),
            known: BTreeSet::new(),
            namespaces: BTreeSet::new(),
        };
        let (mut messages, mut courses) = (Vec::new(), Vec::new());
        for (name, document) in documents {
            courses.extend(workspaces_of(&document).into_iter().map(|course| (name.clone(), course)));
            if let Some(message) = cluster.take(document)? {
                messages.push(format!("{name}: {message}"));
            }
        }
        let place =
            if known.is_none() { "in none of the files" } else { "neither in the files nor in the cluster" };
        for object in known.into_iter().flatten() {
            let name = identity(&object);
            if !cluster.seen.contains(&name) {
                cluster.known.insert(name);
                cluster.take(object)?;
            }
        }
        for (name, (object, workspace)) in courses {
            if !cluster.seen.contains(&[WorkspaceKind::KIND.to_owned(), String::new(), workspace.clone()]) {
                let workspace = shown::shown(&workspace);
                messages.push(format!("{name}: {}: Workspace {workspace} is {place}", shown::shown(&object)));
            }
        }
        cluster.provide_namespace(&config.controllers.tenant.my_drive.namespace)?;
        cluster.factory.end_lists();
        Ok(Self { cluster, of_cluster, in_namespaces, messages })
    }

    fn plan(&mut self) -> anyhow::Result<Output> {
        let Self { cluster, of_cluster, in_namespaces, messages } = self;
        let mut output = Output { messages: std::mem::take(messages), ..Output::default() };
        let mut printed = BTreeSet::new();
        for planned in of_cluster.iter().flat_map(|built| built.plan(clock::now())) {
            let namespaces = planned.made.iter().filter(|made| made["kind"] == NamespaceKind::KIND);
            for object in namespaces.chain(&planned.foreseen) {
                cluster.provide(object)?;
            }
            if !cluster.is_known(&planned) {
                output.add(planned, cluster.config, &mut printed);
            }
        }
        for namespace in std::mem::take(&mut cluster.namespaces) {
            cluster.provide_namespace(&namespace)?;
        }
        for planned in in_namespaces.iter().flat_map(|built| built.plan(clock::now())) {
            if !cluster.is_known(&planned) {
                output.add(planned, cluster.config, &mut printed);
            }
        }
        Ok(output)
    }
}

/// The cluster that the files describe.
struct Cluster<'a> {
    factory: StoreFactory,
    config: &'a Config,
    /// Kind, namespace and name of each object.
    seen: BTreeSet<[String; 3]>,
    /// The objects that are in a cluster but not in the files.
    known: BTreeSet<[String; 3]>,
    /// The namespaces of custom resources in the files: a loop processes these only if their namespace exists.
    namespaces: BTreeSet<String>,
}

impl Cluster<'_> {
    /// Adds an object of a file. Returns a message if no loop uses its kind.
    fn take(&mut self, mut document: Value) -> anyhow::Result<Option<String>> {
        let [kind, namespace, name] = identity(&document);
        let api_version = document["apiVersion"].as_str().unwrap_or_default();
        let is_custom = [GROUP, PodConfigKind::GROUP].iter().any(|group| api_version.starts_with(group));
        self.seen.insert([kind.clone(), namespace.clone(), name.clone()]);
        if is_custom && !namespace.is_empty() {
            self.namespaces.insert(namespace);
        }
        match kind.as_str() {
            // Every namespace in the files is managed.
            NamespaceKind::KIND => {
                merge::apply(&mut document, &json!({"metadata": {"labels": self.config.selector}}));
            }
            SecretKind::KIND => encode(&mut document),
            _ => {}
        }
        if document.pointer("/metadata/uid").is_none() {
            // The API server gives each object a uid; this is a placeholder.
            merge::apply(&mut document, &json!({"metadata": {"uid": format!("<uid {kind}/{name}>")}}));
        }
        let is_input = is_custom || kind == NamespaceKind::KIND || kind == SecretKind::KIND;
        let taken =
            is_input && self.factory.offer(&document).with_context(|| format!("a {kind} cannot be read"))?;
        Ok(match kind.as_str() {
            // A document without a kind is reported with its line.
            "" => None,
            _ if taken => None,
            SecretKind::KIND => Some(format!("Secret {} is ignored: no loop reads it", shown::shown(&name))),
            kind => {
                let kind = shown::shown(kind);
                Some(format!("kind {kind} is ignored: no enabled loop creates objects for it"))
            }
        })
    }

    /// Whether the object is in a cluster but not in the files.
    fn is_known(&self, Planned { kind, key, .. }: &Planned) -> bool {
        self.known.contains(&[(*kind).to_owned(), key.namespace.to_string(), key.name.to_string()])
    }

    /// Adds an object that a loop makes, unless it is in the files.
    fn provide(&mut self, object: &Value) -> anyhow::Result<()> {
        if !self.seen.contains(&identity(object)) {
            self.take(object.clone())?;
        }
        Ok(())
    }

    /// Adds a namespace, unless it is in the files.
    fn provide_namespace(&mut self, name: &str) -> anyhow::Result<()> {
        self.provide(&json!({"apiVersion": "v1", "kind": NamespaceKind::KIND, "metadata": {"name": name}}))
    }
}

/// Returns kind, namespace and name of an object.
fn identity(object: &Value) -> [String; 3] {
    ["/kind", "/metadata/namespace", "/metadata/name"]
        .map(|pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// Returns the names of the Workspaces that an object refers to, each with a description of the object.
fn workspaces_of(object: &Value) -> Vec<(String, String)> {
    let [kind, namespace, name] = identity(object);
    let entries = object["spec"]["workspaces"].as_array().into_iter().flatten();
    let names = match kind.as_str() {
        TemplateKind::KIND => vec![&object["spec"]["workspace.crownlabs.polito.it/WorkspaceRef"]["name"]],
        TenantKind::KIND => entries.map(|entry| &entry["name"]).collect(),
        _ => Vec::new(),
    };
    let place = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    let names = names.into_iter().filter_map(Value::as_str).filter(|name| !name.is_empty());
    names.map(|workspace| (format!("{kind} {place}"), workspace.to_owned())).collect()
}

/// Returns the objects of a document: the document itself, or the items of a `List`.
fn items(mut document: Value) -> Vec<Value> {
    let kind = document["kind"].as_str().unwrap_or_default();
    // An ImageList does not count as a list, because it has no items.
    if kind == "List" || kind.ends_with("List") && document.get("items").is_some() {
        return serde_json::from_value(document["items"].take()).unwrap_or_default();
    }
    if document.is_null() { Vec::new() } else { vec![document] }
}

/// Converts a Secret to its stored form: `stringData` is encoded into `data`.
fn encode(secret: &mut Value) {
    let Some(members) = secret.as_object_mut() else { return };
    let Some(Value::Object(plain)) = members.remove("stringData") else { return };
    let encoded = plain.into_iter().map(|(key, value)| {
        let bytes = value.as_str().unwrap_or_default().as_bytes().to_vec();
        (key, to_value(&k8s_openapi::ByteString(bytes)))
    });
    let encoded: Value = encoded.collect::<serde_json::Map<_, _>>().into();
    merge::apply(secret, &json!({"data": encoded}));
}

#[cfg(test)]
mod tests;
