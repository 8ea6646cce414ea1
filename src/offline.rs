//! `crownlabs plan`: what the loops would make for the custom resources in files, without a
//! cluster. The plan is the very function that `run` uses; only the stores are filled from files.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;

use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, Object};
use crate::config::Config;
use crate::controllers::instance::mounts::MY_DRIVE_SECRET;
use crate::controllers::public_exposure::plan::{give, policy, service};
use crate::controllers::public_exposure::wish::{Denial, Wish, wish};
use crate::controllers::snapshot::step::{Step, step};
use crate::controllers::tenant::lifetime::{self, Presence};
use crate::controllers::tenant::observe::Account;
use crate::controllers::{instance, public_exposure, shared_volume, snapshot, tenant, workspace};
use crate::kinds::{NamespaceKind, SecretKind};
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::factory::StoreFactory;
use crate::runtime::merge;
use crate::runtime::plan::{Plan, to_value};
use crate::runtime::store::Store;

/// What `crownlabs plan` prints.
#[derive(Debug, Default)]
pub struct Output {
    /// The objects: each custom resource as it would be labelled, followed by what is made for it.
    pub objects: Vec<Value>,
    /// What cannot be made, and what was not looked at, a sentence each.
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
    let worlds = Worlds::new(config)?;
    let mut output = Output::default();
    for file in files {
        let (name, text) = read(file)?;
        // The reader's own files: no budget of documents or nodes.
        let options = serde_saphyr::options! { budget: None };
        let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
            .map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
        for document in documents.into_iter().flat_map(items) {
            if let Some(problem) = worlds.take(document)? {
                output.messages.push(format!("{name}: {problem}"));
            }
        }
    }
    worlds.finish(config);
    let key_file = &config.controllers.instance.webssh_master_key_file;
    if !key_file.is_empty() {
        let key = std::fs::read_to_string(key_file).with_context(|| {
            format!("controllers.instance.websshMasterKeyFile: {key_file} cannot be read")
        })?;
        worlds.instances.set_master_key(Some(&key));
    }
    if config.controllers.workspace.enabled {
        worlds.plan_workspaces(&mut output);
    }
    if config.controllers.tenant.enabled {
        worlds.plan_tenants(config, &mut output);
    }
    if config.controllers.instance.enabled {
        worlds.plan_instances(config, &mut output);
    }
    if config.controllers.public_exposure.enabled {
        worlds.plan_exposure(&mut output);
    }
    if config.controllers.shared_volume.enabled {
        worlds.plan_shared_volumes(config, &mut output);
    }
    if config.controllers.snapshot.enabled {
        worlds.plan_snapshots(config, &mut output);
    }
    Ok(output)
}

impl Output {
    /// Takes what is planned for an object.
    fn add<T: Kind>(&mut self, object: &Object<T>, plan: &Plan) {
        let name = format!("{} {}", T::KIND, ObjectKey::of(object));
        self.messages.extend(plan.problems.iter().map(|problem| format!("{name}: {}", problem.message)));
        let patch = plan.patches.iter().find(|patch| patch.uid == object.uid());
        self.objects.push(patched(object, patch.map(|patch| &patch.patch)));
        self.made(plan);
    }

    /// Takes the objects of a plan.
    fn made(&mut self, plan: &Plan) {
        let made = plan.ensure.iter().filter_map(|desired| Some(desired.manifest.as_ref()?.json().clone()));
        self.objects.extend(made);
    }
}

/// What the loops read: the files are the cluster, and it has `KubeVirt`.
struct Worlds {
    instances: instance::World,
    tenants: tenant::World,
    workspaces: workspace::World,
    shared_volumes: shared_volume::World,
    snapshots: snapshot::World,
    exposure: public_exposure::World,
    exposed: Arc<public_exposure::Settings>,
    selector: BTreeMap<String, String>,
}

impl Worlds {
    fn new(config: &Config) -> anyhow::Result<Self> {
        let mut factory = StoreFactory::default();
        let exposed = Arc::new(public_exposure::settings(&config.controllers.public_exposure)?);
        let settings =
            tenant::Settings { selector: config.selector.clone(), config: config.controllers.tenant.clone() };
        let worlds = Self {
            // Every namespace is ours.
            instances: instance::World::new(&mut factory, &BTreeMap::new(), false),
            tenants: tenant::World::new(&mut factory, settings),
            workspaces: workspace::World::new(&mut factory, &config.selector),
            shared_volumes: shared_volume::World::new(&mut factory, &BTreeMap::new()),
            snapshots: snapshot::World::new(&mut factory, &BTreeMap::new()),
            exposure: public_exposure::World::new(&mut factory, &BTreeMap::new(), Arc::clone(&exposed)),
            exposed,
            selector: config.selector.clone(),
        };
        worlds.instances.machines.end_list();
        worlds.instances.machine_instances.end_list();
        Ok(worlds)
    }

    fn plan_workspaces(&self, output: &mut Output) {
        for key in sorted(self.workspaces.workspaces.keys()) {
            match self.workspaces.observe(&key) {
                Some(observed) => output.add(&observed.workspace, &workspace::plan::plan(&observed)),
                None => output.messages.push(self.not_ours("Workspace", &key)),
            }
        }
    }

    fn plan_tenants(&self, config: &Config, output: &mut Output) {
        let settings =
            tenant::Settings { selector: self.selector.clone(), config: config.controllers.tenant.clone() };
        for key in sorted(self.tenants.tenants.keys()) {
            let Some(observed) = self.tenants.observe(&key, Account::Off) else {
                output.messages.push(self.not_ours("Tenant", &key));
                continue;
            };
            let now = clock::now();
            output.add(&observed.tenant, &tenant::plan::plan(&observed, &settings, now));
            if lifetime::presence(&observed, &settings, now) == Presence::Unwanted {
                output.messages.push(format!(
                    "Tenant {key}: the last login is too long ago for a personal namespace (spec.lastLogin, \
                     controllers.tenant.keepAlive): it is made at the next"
                ));
            }
        }
    }

    fn plan_instances(&self, config: &Config, output: &mut Output) {
        let world = &self.instances;
        for key in sorted(world.instances.keys()) {
            let Some(observed) = world.observe(&key) else { continue };
            let plan = instance::plan::plan(&observed, &config.controllers.instance, clock::now());
            output.add(&observed.instance, &plan);
        }
    }

    /// The addresses and ports are those that an empty cluster would give, in the order of names.
    fn plan_exposure(&self, output: &mut Output) {
        let mut allocator = self.exposure.allocator();
        for key in sorted(self.exposure.instances.keys()) {
            let Some(observed) = self.exposure.observe(&key) else { continue };
            let denial = match wish(&observed, &self.exposed) {
                Wish::Unknown | Wish::Nothing => continue,
                Wish::Denied(denial) | Wish::Kept(denial) => denial,
                Wish::Ports(wanted) => match give(&mut allocator, &observed, &key, wanted, &self.exposed) {
                    Some(given) => {
                        output.made(&service(&observed, &self.exposed, &given));
                        output.made(&policy(&observed, &given));
                        continue;
                    }
                    None => Denial::no_free_port(),
                },
            };
            output.messages.push(format!("Instance {key}: {}", denial.message));
        }
    }

    fn plan_shared_volumes(&self, config: &Config, output: &mut Output) {
        let world = &self.shared_volumes;
        for key in sorted(world.volumes.keys()) {
            let Some(observed) = world.observe(&key) else { continue };
            let plan = shared_volume::plan::plan(&observed, &config.controllers.shared_volume);
            output.add(&observed.volume, &plan);
        }
    }

    fn plan_snapshots(&self, config: &Config, output: &mut Output) {
        let (world, config) = (&self.snapshots, &config.controllers.snapshot);
        for key in sorted(world.snapshots.keys()) {
            let Some(observed) = world.observe(&key) else { continue };
            match step(&observed, config, clock::now()) {
                Step::Export(export) => {
                    output.add(&observed.snapshot, &snapshot::job::plan(&observed, config, &export));
                }
                Step::Wait { message, .. } | Step::Refuse(message) | Step::Fail(message) => {
                    output.messages.push(format!("InstanceSnapshot {key}: {message}"));
                }
                Step::Ended | Step::Running { .. } | Step::Complete { .. } => {}
            }
        }
    }

    fn not_ours(&self, kind: &str, key: &ObjectKey) -> String {
        let labels: Vec<String> = self.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!("{kind} {key} is left alone: it does not carry {} (selector)", labels.join(","))
    }

    /// Puts an object into its store; a problem when no loop looks at its kind.
    fn take(&self, document: Value) -> anyhow::Result<Option<String>> {
        let world = &self.instances;
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            InstanceKind::KIND => put(&world.instances, document)?,
            TemplateKind::KIND => put(&world.templates, document)?,
            WorkspaceKind::KIND => put(&self.workspaces.workspaces, document)?,
            TenantKind::KIND => put(&world.tenants, document)?,
            InstanceSnapshotKind::KIND => put(&self.snapshots.snapshots, document)?,
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

    /// What the API server and administrators would have added: a namespace for every object, and that of
    /// the personal volumes.
    fn finish(&self, config: &Config) {
        let instances = self.instances.instances.keys().into_iter();
        let volumes = self.shared_volumes.volumes.keys().into_iter();
        let snapshots = self.snapshots.snapshots.keys().into_iter();
        let namespaces = instances.chain(volumes).chain(snapshots).map(|key| key.namespace);
        for name in namespaces.chain([config.controllers.tenant.my_drive.namespace.clone()]) {
            if self.instances.namespaces.get("", &name).is_none() {
                let mut namespace = Object::<NamespaceKind>::new(None, &name, crate::kinds::Unread {});
                namespace.metadata.uid = Some(format!("<uid Namespace/{name}>"));
                self.instances.namespaces.apply_event(namespace);
            }
        }
    }
}

fn sorted(mut keys: Vec<ObjectKey>) -> Vec<ObjectKey> {
    keys.sort();
    keys
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

/// The object after the patch.
fn patched<T: Kind>(object: &Object<T>, patch: Option<&Value>) -> Value {
    let mut object = to_value(object);
    if let Some(patch) = patch {
        merge::apply(&mut object, patch);
    }
    object
}
