//! The sources of a new Template: another Template, a snapshot, or a machine.

use serde_json::{Value, json};

use super::draft::{Draft, new_environment};
use super::fields::{ENVIRONMENTS, TEMPLATES, WORKSPACE};
use super::place::Place;
use super::value::set;
use crate::api::condition::READY;
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::{InstanceSnapshot, InstanceSnapshotKind, SnapshotPhase};
use crate::api::names::CanonicalName;
use crate::api::template::TemplateKind;
use crate::api::{Instance, Template};
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::read::{Reads, or_none};
use crate::controllers::dashboard::student::{Rights as _, template_title, title};
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;

/// The maximum number of sources of each kind on a page.
const MOST: usize = 50;

/// The sources that the page of a new Template offers, each as `namespace/name` with its title.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The Templates of the place.
    pub templates: Vec<(String, String)>,
    /// The images that the user has saved.
    pub snapshots: Vec<(String, String)>,
    /// The machines of the user.
    pub machines: Vec<(String, String)>,
}

impl Sources {
    /// Reads the sources for a place.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn read(reads: &Reads<'_>, place: &Place) -> Result<Self, ApiError> {
        let own = CanonicalName::of(&reads.user.name).tenant_namespace();
        let templates: Vec<Template> = reads.list::<TemplateKind>(place.namespace()).await?;
        let instances: Vec<Instance> = reads.list::<InstanceKind>(&own).await?;
        let rules = reads.rules(&own).await?;
        let snapshots = if rules.may(&own, &Right::to::<InstanceSnapshotKind>("list")) {
            reads.list::<InstanceSnapshotKind>(&own).await?
        } else {
            Vec::new()
        };
        let key = |namespace: &str, name: &str| format!("{namespace}/{name}");
        let completed = snapshots.iter().filter(|snapshot| image(snapshot).is_some());
        Ok(Self {
            templates: templates
                .iter()
                .take(MOST)
                .map(|one| (key(one.namespace(), one.name()), template_title(one).to_owned()))
                .collect(),
            snapshots: completed
                .take(MOST)
                .map(|one| (key(one.namespace(), one.name()), one.spec.image_name.clone()))
                .collect(),
            machines: instances
                .iter()
                .take(MOST)
                .map(|one| (key(one.namespace(), one.name()), title(one).to_owned()))
                .collect(),
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.templates.is_empty() && self.snapshots.is_empty() && self.machines.is_empty()
    }
}

/// Returns a new Template of a place, from the source that the query names: `from`, `snapshot` or `machine`.
///
/// # Errors
/// The error of the API server; [`ApiError::NotFound`] also if a name is invalid, or if a snapshot has no image.
pub async fn draft(reads: &Reads<'_>, place: &Place, query: &Fields) -> Result<Draft, ApiError> {
    let source = |parameter: &str| Some(query.get(parameter)).filter(|name| !name.is_empty());
    if let Some(name) = source("from") {
        return Ok(copied(&template(reads, &key(name)?).await?, place.workspace()));
    }
    if let Some(name) = source("machine") {
        let instance: Instance = get(reads, &key(name)?).await?;
        let template = of_machine(reads, &instance).await?;
        return Ok(from_machine(&instance, template.as_ref(), place.workspace()));
    }
    if let Some(name) = source("snapshot") {
        let found = key(name)?;
        let (client, credential) = (&reads.users.client, &reads.user.credential);
        let snapshot = client.get::<InstanceSnapshotKind>(credential, &found).await?;
        let machine = paths::machine(&found.namespace, &snapshot.spec.instance_ref.name);
        let instance: Option<Instance> = match machine {
            Some(machine) => or_none(get(reads, &machine).await)?,
            None => None,
        };
        let template = match &instance {
            Some(instance) => of_machine(reads, instance).await?,
            None => None,
        };
        let draft = from_snapshot(&snapshot, template.as_ref(), place.workspace());
        return draft.ok_or_else(|| ApiError::NotFound(format!("the snapshot {name} has no image")));
    }
    Ok(Draft::new(place.workspace()))
}

fn key(text: &str) -> Result<ObjectKey, ApiError> {
    let key = text.split_once('/').and_then(|(namespace, name)| paths::machine(namespace, name));
    key.ok_or_else(|| ApiError::NotFound(format!("no object can have the name {text:?}")))
}

async fn get(reads: &Reads<'_>, key: &ObjectKey) -> Result<Instance, ApiError> {
    reads.users.client.get::<InstanceKind>(&reads.user.credential, key).await
}

/// Reads a Template as it is stored.
///
/// # Errors
/// The error of the API server.
pub async fn template(reads: &Reads<'_>, key: &ObjectKey) -> Result<Value, ApiError> {
    reads.users.client.get_as::<Value>(&reads.user.credential, TEMPLATES, key).await
}

/// Reads the Template of a machine; `None` if it does not exist or the user may not read it.
async fn of_machine(reads: &Reads<'_>, instance: &Instance) -> Result<Option<Value>, ApiError> {
    let reference = &instance.spec.template_ref;
    match paths::machine(&reference.namespace, &reference.name) {
        Some(key) => or_none(template(reads, &key).await),
        None => Ok(None),
    }
}

/// Returns a copy of a Template for a course, with another name.
fn copied(template: &Value, workspace: &str) -> Draft {
    let mut draft = Draft::of(template);
    draft.name = if draft.name.is_empty() { String::new() } else { format!("{}-copy", draft.name) };
    draft.metadata = json!({});
    set(&mut draft.spec, &[WORKSPACE], Some(json!({"name": workspace})));
    draft
}

/// Returns a Template like that of a machine, for its nodes.
fn from_machine(instance: &Instance, template: Option<&Value>, workspace: &str) -> Draft {
    let mut draft = template.map_or_else(|| Draft::new(workspace), |template| copied(template, workspace));
    draft.name = instance.name().replace('.', "-");
    set(&mut draft.spec, &["prettyName"], Some(title(instance).into()));
    if let Some(selector) = instance.spec.node_selector.as_ref().filter(|selector| !selector.is_empty()) {
        set(&mut draft.spec, &["nodeSelector"], Some(json!(selector)));
    }
    draft
}

/// Returns a Template whose machines start from the image of a snapshot; `None` if it has none. The environment is that
/// of the machine that was saved, without the others.
fn from_snapshot(snapshot: &InstanceSnapshot, template: Option<&Value>, workspace: &str) -> Option<Draft> {
    let image = image(snapshot)?;
    let mut draft = template.map_or_else(|| Draft::new(workspace), |template| copied(template, workspace));
    let saved = snapshot.spec.environment_ref.name.as_str();
    let mut known = draft.environments().iter().filter(|known| saved.is_empty() || known["name"] == saved);
    let mut environment = known.next().cloned().unwrap_or_else(|| new_environment("desktop"));
    environment["image"] = image.into();
    // The image is the disk of a virtual machine in a container image.
    environment["environmentType"] = "VirtualMachine".into();
    let name = snapshot.spec.image_name.as_str();
    draft.name = name.replace(['.', '_'], "-");
    draft.keys = vec![0];
    set(&mut draft.spec, &["prettyName"], Some(name.into()));
    set(&mut draft.spec, &[ENVIRONMENTS], Some(vec![environment].into()));
    Some(draft)
}

/// Returns the full name of the image of a snapshot, which its condition has; `None` unless it is complete.
fn image(snapshot: &InstanceSnapshot) -> Option<&str> {
    if snapshot.status.phase != SnapshotPhase::Completed {
        return None;
    }
    let ready = snapshot.status.conditions.iter().find(|condition| condition.type_ == READY)?;
    let (image, _) = ready.message.strip_prefix("Image ")?.split_once(' ')?;
    Some(image)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn stored() -> Value {
        json!({
            "metadata": {"name": "desktop", "namespace": "workspace-tea", "labels": {"a": "b"}, "uid": "u1"},
            "spec": {
                "prettyName": "Desktop", "description": "d", WORKSPACE: {"name": "tea"}, "environmentList": [
                    {"name": "web", "image": "w", "environmentType": "Standalone"},
                    {"name": "vm", "image": "x", "environmentType": "CloudVM", "persistent": true},
                ],
            },
        })
    }

    #[test]
    fn a_copy_belongs_to_its_new_course() {
        let draft = copied(&stored(), "net");
        assert_eq!((draft.name.as_str(), &draft.metadata), ("desktop-copy", &json!({})));
        let mut spec = stored()["spec"].clone();
        spec[WORKSPACE] = json!({"name": "net"});
        assert_eq!((draft.spec, draft.keys), (spec, vec![0, 1]));
    }

    #[test]
    fn a_template_from_a_machine_has_its_title_and_its_nodes() {
        let instance = |more: Value| -> Instance {
            let mut spec = json!({"prettyName": "My lab"});
            json_patch::merge(&mut spec, &more);
            let metadata = json!({"name": "vm.1", "namespace": "tenant-ada"});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an Instance")
        };
        let draft =
            from_machine(&instance(json!({"nodeSelector": {"disk": "fast"}})), Some(&stored()), "net");
        assert_eq!((draft.name.as_str(), &draft.spec["prettyName"]), ("vm-1", &json!("My lab")));
        assert_eq!(draft.spec["nodeSelector"], json!({"disk": "fast"}));
        assert_eq!(
            draft.environments(),
            stored()["spec"][ENVIRONMENTS].as_array().expect("a list").as_slice()
        );
        let unread = from_machine(&instance(json!({})), None, "net");
        assert_eq!((unread.environments().len(), unread.spec.get("nodeSelector")), (1, None));
    }

    #[test]
    fn a_template_from_a_snapshot_starts_from_its_image() {
        let snapshot = |phase: &str, message: &str, environment: &str| -> InstanceSnapshot {
            let condition = json!({
                "type": "Ready", "status": "True", "reason": "Completed", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            serde_json::from_value(json!({
                "metadata": {"name": "s", "namespace": "tenant-ada"},
                "spec": {"instanceRef": {"name": "vm"}, "environmentRef": {"name": environment}, "imageName": "lab_1"},
                "status": {"phase": phase, "conditions": [condition]},
            }))
            .expect("a snapshot")
        };
        let message = "Image registry.example.org/ada/lab_1:20260101 created and uploaded in 3m";
        let draft =
            from_snapshot(&snapshot("Completed", message, "vm"), Some(&stored()), "net").expect("a draft");
        assert_eq!(
            (draft.name.as_str(), &draft.spec["prettyName"], draft.keys.len()),
            ("lab-1", &json!("lab_1"), 1)
        );
        let expected = json!({
            "name": "vm", "image": "registry.example.org/ada/lab_1:20260101", "environmentType": "VirtualMachine",
            "persistent": true,
        });
        assert_eq!(draft.environments(), [expected]);
        let alone = from_snapshot(&snapshot("Completed", message, ""), None, "net").expect("a draft");
        assert_eq!(alone.environments()[0]["image"], "registry.example.org/ada/lab_1:20260101");
        for (phase, message) in [("Processing", message), ("Completed", "done")] {
            assert_eq!(
                from_snapshot(&snapshot(phase, message, "vm"), None, "net"),
                None,
                "{phase}: {message}"
            );
        }
    }
}
