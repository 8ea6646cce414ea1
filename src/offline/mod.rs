//! `crownlabs plan`: the objects that the loops would make for the custom resources in files, without a
//! cluster. The plan is the very function that `run` uses; only the stores are filled from files.

pub mod fields;
mod files;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value, json};

use self::fields::UnknownField;
use self::files::Input;
use crate::api::crd::crds;
use crate::api::labels::selector_string;
use crate::api::pod_config::PodConfigKind;
use crate::api::shown;
use crate::api::{GROUP, Kind};
use crate::config::{Config, tree};
use crate::controllers::setup::Setup;
use crate::kinds::{NamespaceKind, SecretKind};
use crate::loops::{Built, BuiltLoop, LOOPS, Planned};
use crate::runtime::clock;
use crate::runtime::gate::Gate;
use crate::runtime::merge;
use crate::runtime::plan::to_value;
use crate::runtime::store::StoreFactory;

/// The output of `crownlabs plan`.
#[derive(Debug, Default)]
pub struct Output {
    /// The objects: each custom resource of which something is made, as it would be labelled, followed by that.
    pub objects: Vec<Value>,
    /// Objects that cannot be made, or were not looked at, a sentence each.
    pub messages: Vec<String>,
}

impl Output {
    /// The objects as YAML documents.
    ///
    /// # Errors
    /// Never for objects that come from [`plan`].
    pub fn yaml(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        for object in &self.objects {
            text.push_str("---\n");
            let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
            let document = serde_saphyr::to_string_with_options(object, options);
            let document = document.context("an object cannot be written as YAML")?;
            if document.contains(|character| character != '\n' && shown::is_control(character)) {
                // What the serialiser leaves as it is, such as what turns the direction of text. JSON is YAML, and has a way to
                // write it.
                text.push_str(&shown::escaped_json(&format!("{object:#}\n")));
            } else {
                text.push_str(&document);
            }
        }
        Ok(text)
    }

    /// Adds the plan for an object. `printed` are the names of the objects that have one already: two loops may work on
    /// one kind.
    fn add(&mut self, planned: Planned, config: &Config, printed: &mut BTreeSet<String>) {
        let Planned { kind, key, is_ours, object, made, messages, .. } = planned;
        let name = format!("{kind} {key}");
        if !is_ours {
            let labels = selector_string(&config.selector);
            self.messages.push(format!("{name} is left alone: it does not carry {labels} (selector)"));
            return;
        }
        let said = messages.into_iter().map(|message| format!("{name}: {}", shown::message(&message)));
        self.messages.extend(said);
        self.objects.extend(object.filter(|_| printed.insert(name)));
        self.objects.extend(made);
    }
}

/// Plans for everything in the files and folders: they are the cluster, nothing has been made in it yet, and it has
/// `KubeVirt`.
///
/// # Errors
/// When a file cannot be read or is not YAML; the message names it.
pub fn plan(files: &[PathBuf], config: &Config) -> anyhow::Result<Output> {
    let (definitions, mut documents, mut messages) = (crds(), Vec::new(), Vec::new());
    for Input { name, text } in files::read(files)? {
        // The reader's own files: no budget of documents or nodes.
        let options = serde_saphyr::options! { budget: None };
        let read: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
            .map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
        // The same once more, with the lines.
        let lines = tree::documents(&text).map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
        for UnknownField { line, message, .. } in
            lines.iter().flat_map(|document| fields::unknown(document, &definitions))
        {
            let line = line.map_or_else(String::new, |line| format!(":{line}"));
            messages.push(format!("{name}{line}: {}", shown::message(&message)));
        }
        documents.extend(read.into_iter().map(|document| (name.clone(), document)));
    }
    let mut output = plan_documents(documents, config)?;
    output.messages.splice(..0, messages);
    Ok(output)
}

/// The same for documents, each with the name of its file.
fn plan_documents(documents: Vec<(String, Value)>, config: &Config) -> anyhow::Result<Output> {
    Planning::new(documents, config)?.plan()
}

/// The loops that make objects, and the cluster that they look at.
struct Planning<'a> {
    cluster: Cluster<'a>,
    /// The loops of cluster-scoped kinds: what Workspaces and Tenants get, Instances need.
    of_cluster: Vec<Box<dyn BuiltLoop>>,
    in_namespaces: Vec<Box<dyn BuiltLoop>>,
    /// Objects that were not looked at, a sentence each.
    messages: Vec<String>,
}

impl<'a> Planning<'a> {
    fn new(documents: Vec<(String, Value)>, config: &'a Config) -> anyhow::Result<Self> {
        // Nobody is asked: every address counts as confirmed.
        let mut setup = Setup::new(config, Gate::closed());
        let mut factory = StoreFactory::default();
        let enabled = LOOPS.iter().filter(|entry| (entry.toggle)(&config.controllers).enabled);
        let built =
            enabled.map(|entry| (entry.build)(&mut setup, &mut factory)).collect::<Result<Vec<_>, _>>()?;
        // Replica loops make no objects.
        let loops = built.into_iter().filter_map(|built| match built {
            Built::Leader(built) => Some(built),
            Built::Replica(_) => None,
        });
        let (of_cluster, in_namespaces): (Vec<_>, Vec<_>) = loops.partition(|built| !built.is_namespaced());
        if let Some(file) = setup.files.iter().find(|file| !file.is_readable()) {
            anyhow::bail!("{}: {} cannot be read", file.key, file.path.display());
        }
        let mut cluster = Cluster { factory, config, seen: BTreeSet::new(), namespaces: BTreeSet::new() };
        let mut messages = Vec::new();
        for (name, document) in documents {
            for document in items(document) {
                if let Some(message) = cluster.take(document)? {
                    messages.push(format!("{name}: {message}"));
                }
            }
        }
        cluster.begin()?;
        Ok(Self { cluster, of_cluster, in_namespaces, messages })
    }

    fn plan(&mut self) -> anyhow::Result<Output> {
        let Self { cluster, of_cluster, in_namespaces, messages } = self;
        let mut output = Output { objects: Vec::new(), messages: std::mem::take(messages) };
        let mut printed = BTreeSet::new();
        for planned in of_cluster.iter().flat_map(|built| built.plan(clock::now())) {
            let namespaces = planned.made.iter().filter(|made| made["kind"] == NamespaceKind::KIND);
            for object in namespaces.chain(&planned.foreseen) {
                cluster.provide(object)?;
            }
            output.add(planned, cluster.config, &mut printed);
        }
        cluster.provide_namespaces()?;
        for planned in in_namespaces.iter().flat_map(|built| built.plan(clock::now())) {
            output.add(planned, cluster.config, &mut printed);
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
    /// The namespaces that custom resources of the files are in: a loop looks at these only if their namespace is there.
    namespaces: BTreeSet<String>,
}

impl Cluster<'_> {
    /// Takes an object of a file; a message when no loop looks at its kind.
    fn take(&mut self, mut document: Value) -> anyhow::Result<Option<String>> {
        let text =
            |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
        let is_custom =
            [GROUP, PodConfigKind::GROUP].iter().any(|group| text("/apiVersion").starts_with(group));
        self.seen.insert([kind.clone(), namespace.clone(), name.clone()]);
        if is_custom && !namespace.is_empty() {
            self.namespaces.insert(namespace);
        }
        match kind.as_str() {
            // Every namespace of the files is ours.
            NamespaceKind::KIND => self.label(&mut document),
            SecretKind::KIND => encode(&mut document),
            _ => {}
        }
        if document.pointer("/metadata/uid").is_none() {
            // The API server gives each object a uid; here a placeholder stands for it.
            merge::apply(&mut document, &json!({"metadata": {"uid": format!("<uid {kind}/{name}>")}}));
        }
        let is_input = is_custom || kind == NamespaceKind::KIND || kind == SecretKind::KIND;
        let taken =
            is_input && self.factory.offer(&document).with_context(|| format!("a {kind} cannot be read"))?;
        Ok(match kind.as_str() {
            _ if taken => None,
            SecretKind::KIND => {
                Some(format!("Secret {} is not looked at: no loop reads it", shown::shown(&name)))
            }
            kind => {
                let kind = shown::shown(kind);
                Some(format!("kind {kind} is not looked at: no loop that runs makes anything of it"))
            }
        })
    }

    /// Adds what administrators would have made, the namespace of the personal volumes, and marks every store as
    /// filled.
    fn begin(&mut self) -> anyhow::Result<()> {
        self.provide_namespace(&self.config.controllers.tenant.my_drive.namespace)?;
        self.factory.end_lists();
        Ok(())
    }

    /// Adds an object that a loop makes, unless the files have it.
    fn provide(&mut self, object: &Value) -> anyhow::Result<()> {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if !self.seen.contains(&[text("/kind"), text("/metadata/namespace"), text("/metadata/name")]) {
            self.take(object.clone())?;
        }
        Ok(())
    }

    /// Adds the namespaces of objects that nobody has made.
    fn provide_namespaces(&mut self) -> anyhow::Result<()> {
        std::mem::take(&mut self.namespaces).iter().try_for_each(|name| self.provide_namespace(name))
    }

    fn provide_namespace(&mut self, name: &str) -> anyhow::Result<()> {
        self.provide(&json!({"apiVersion": "v1", "kind": NamespaceKind::KIND, "metadata": {"name": name}}))
    }

    fn label(&self, namespace: &mut Value) {
        merge::apply(namespace, &json!({"metadata": {"labels": self.config.selector}}));
    }
}

/// The objects of a document: itself, or those of a `List`.
fn items(document: Value) -> Vec<Value> {
    match document {
        Value::Null => Vec::new(),
        // An ImageList is none: it has no items.
        Value::Object(mut list)
            if list.get("kind").and_then(Value::as_str).is_some_and(|kind| {
                kind == "List" || kind.ends_with("List") && list.contains_key("items")
            }) =>
        {
            match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        other => vec![other],
    }
}

/// Makes a Secret what the API server keeps: `stringData` encoded into `data`.
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
