//! `crownlabs plan`: what the loops would make for the custom resources in files, without a
//! cluster. The plan is the very function that `run` uses; only the stores are filled from files.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;

use crate::api::instance::{Instance, InstanceKind};
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::{Kind, Object};
use crate::config::Config;
use crate::controllers::instance::World;
use crate::controllers::instance::mounts::MY_DRIVE_SECRET;
use crate::controllers::instance::plan;
use crate::kinds::{NamespaceKind, SecretKind};
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::hub::Hub;
use crate::runtime::merge;
use crate::runtime::plan::to_value;
use crate::runtime::store::Store;

/// What `crownlabs plan` prints.
#[derive(Debug, Default)]
pub struct Output {
    /// The objects: each Instance as it would be labelled, followed by what is made for it.
    pub objects: Vec<Value>,
    /// What cannot be made, and what was not looked at, a sentence each.
    pub remarks: Vec<String>,
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
            text.push_str(&document.context("an object cannot be written as YAML")?);
        }
        Ok(text)
    }
}

/// Plans for everything in the files.
///
/// # Errors
/// When a file cannot be read or is not YAML; the message names it.
pub fn plan(files: &[PathBuf], config: &Config) -> anyhow::Result<Output> {
    let world = world();
    let mut output = Output::default();
    for file in files {
        let (name, text) = read(file)?;
        // The reader's own files: no budget of documents or nodes.
        let options = serde_saphyr::options! { budget: None };
        let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
            .map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
        for document in documents.into_iter().flat_map(items) {
            if let Some(remark) = take(&world, document)? {
                output.remarks.push(format!("{name}: {remark}"));
            }
        }
    }
    finish(&world);
    let key_file = &config.controllers.instance.webssh_master_key_file;
    if !key_file.is_empty() {
        let key = std::fs::read_to_string(key_file).with_context(|| {
            format!("controllers.instance.websshMasterKeyFile: {key_file} cannot be read")
        })?;
        world.set_master_key(Some(&key));
    }
    let mut keys = world.instances.keys();
    keys.sort();
    for key in keys {
        let Some(observed) = world.observe(&key) else { continue };
        let plan = plan::plan(&observed, &config.controllers.instance, clock::now());
        output
            .remarks
            .extend(plan.notices.iter().map(|notice| format!("Instance {key}: {}", notice.message)));
        output.objects.push(patched(&observed.instance, plan.patches.first().map(|patch| &patch.patch)));
        output
            .objects
            .extend(plan.ensure.iter().filter_map(|desired| Some(desired.manifest.as_ref()?.json().clone())));
    }
    Ok(output)
}

/// Stores that claim to be complete: the files are the cluster, and it has `KubeVirt`.
fn world() -> World {
    // Every namespace is ours.
    let world = World::new(&mut Hub::default(), &BTreeMap::new(), false);
    world.machines.end_list();
    world.machine_instances.end_list();
    world
}

fn read(file: &Path) -> anyhow::Result<(String, String)> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
        return Ok(("standard input".to_owned(), text));
    }
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("{name} cannot be read"))?;
    Ok((name, text))
}

/// The objects of a document: itself, or those of a `List`.
fn items(document: Value) -> Vec<Value> {
    match document {
        Value::Null => Vec::new(),
        Value::Object(mut list)
            if list.get("kind").and_then(Value::as_str).is_some_and(|k| k.ends_with("List")) =>
        {
            match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        other => vec![other],
    }
}

/// Puts an object into its store; a remark when no loop looks at its kind.
fn take(world: &World, document: Value) -> anyhow::Result<Option<String>> {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        InstanceKind::KIND => put(&world.instances, document)?,
        TemplateKind::KIND => put(&world.templates, document)?,
        TenantKind::KIND => put(&world.tenants, document)?,
        SharedVolumeKind::KIND => put(&world.shared_volumes, document)?,
        NamespaceKind::KIND => put(&world.namespaces, document)?,
        SecretKind::KIND => {
            let name =
                document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if name != MY_DRIVE_SECRET {
                return Ok(Some(format!("Secret {name} is not looked at: no loop reads it")));
            }
            put(&world.my_drives, encoded(document))?;
        }
        other => {
            return Ok(Some(format!(
                "kind {other} is not looked at: no loop that runs makes anything of it"
            )));
        }
    }
    Ok(None)
}

fn put<T: Kind>(store: &Store<T>, document: Value) -> anyhow::Result<()> {
    let mut object: Object<T> =
        serde_json::from_value(document).with_context(|| format!("a {} cannot be read", T::KIND))?;
    if object.metadata.uid.is_none() {
        // The API server gives each object a uid; here a placeholder stands for it.
        object.metadata.uid = Some(format!("<uid {}/{}>", T::KIND, object.name()));
    }
    store.apply_event(object);
    Ok(())
}

/// A Secret as the API server keeps it: `stringData` encoded into `data`.
fn encoded(mut document: Value) -> Value {
    let Some(members) = document.as_object_mut() else { return document };
    if let Some(Value::Object(plain)) = members.remove("stringData") {
        let data = members.entry("data").or_insert_with(|| Value::Object(serde_json::Map::new()));
        for (key, value) in plain {
            let bytes = value.as_str().unwrap_or_default().as_bytes().to_vec();
            if let Some(data) = data.as_object_mut() {
                data.insert(key, to_value(&k8s_openapi::ByteString(bytes)));
            }
        }
    }
    document
}

/// What the API server and the other loops would have added: a namespace for every Instance.
fn finish(world: &World) {
    let instances: BTreeMap<ObjectKey, Arc<Instance>> = world
        .instances
        .keys()
        .into_iter()
        .filter_map(|key| Some((key.clone(), world.instances.get(&key.namespace, &key.name)?)))
        .collect();
    for key in instances.keys() {
        if world.namespaces.get("", &key.namespace).is_none() {
            let mut namespace = Object::<NamespaceKind>::new(None, &key.namespace, crate::kinds::Unread {});
            namespace.metadata.uid = Some(format!("<uid Namespace/{}>", key.namespace));
            world.namespaces.apply_event(namespace);
        }
    }
}

/// The Instance after the patch.
fn patched(instance: &Instance, patch: Option<&Value>) -> Value {
    let mut object = to_value(instance);
    if let Some(patch) = patch {
        merge::apply(&mut object, patch);
    }
    object
}
