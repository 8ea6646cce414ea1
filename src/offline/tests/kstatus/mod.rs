//! Checks the status that kstatus computes for every kind in every phase. Flux and Argo CD wait for this status:
//! `Current` if the object is as its spec demands, `InProgress` if it may still become so, and `Failed` if a change is
//! needed.

mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::Duration;

use cluster::kstatus;
use jiff::Timestamp;

use super::*;
use crate::api::instance::InstancePhase;
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::shared_volume::SharedVolumePhase;
use crate::config::ConfigDuration;
use crate::fixtures::now;
use crate::runtime::error::ApiError;

/// How long a problem must persist.
const STALLED_AFTER: Duration = Duration::from_mins(2);

/// After this number of rounds, there must be no more writes.
const ROUNDS: usize = 32;

fn config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let mut config = Config::default();
        config.controllers.instance.stalled_after = ConfigDuration::from_secs(STALLED_AFTER.as_secs());
        config.controllers.snapshot.vm_registry = "registry.example.org".to_owned();
        config.controllers.snapshot.vm_registry_secret = "login".to_owned();
        config.controllers.pod_config.enabled = true;
        config
    })
}

/// A cluster without other controllers: writes succeed unless they are refused, and tests change the objects.
struct World {
    planning: Planning<'static>,
    /// The objects, by kind, namespace and name.
    objects: BTreeMap<[String; 3], Value>,
    version: u64,
    now: Timestamp,
    /// Writes of this kind are refused with this error.
    refused: Option<(&'static str, ApiError)>,
}

impl World {
    /// A cluster with a course, its user, its Templates, and these objects. No object has been reconciled yet.
    fn with(objects: &[Value]) -> Self {
        let planning = Planning::new(Vec::new(), None, config()).expect("the loops");
        let now = now();
        let mut world = Self { planning, objects: BTreeMap::new(), version: 0, now, refused: None };
        for object in course().iter().chain(objects) {
            world.offer(object.clone());
        }
        world
    }

    /// Stores an object as the API server does.
    fn offer(&mut self, mut object: Value) {
        self.version += 1;
        let uid = format!("<uid {}/{}>", text(&object, "/kind"), text(&object, "/metadata/name"));
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        metadata.insert("resourceVersion".to_owned(), self.version.to_string().into());
        metadata.entry("uid").or_insert(uid.into());
        metadata.entry("generation").or_insert(1.into());
        self.planning.cluster.factory.offer(&object).expect("an object");
        self.objects.insert(identity(&object), object);
    }

    /// Reconciles until there are no more writes.
    fn settle(mut self) -> Self {
        for _ in 0..ROUNDS {
            let refused = self.refused.as_ref().map(|(kind, error)| (*kind, error));
            let loops = self.planning.of_cluster.iter().chain(&self.planning.in_namespaces);
            let written: Vec<_> = loops.flat_map(|built| built.written(self.now, refused)).collect();
            if written.is_empty() {
                return self;
            }
            for (object, _) in written {
                self.offer(object);
            }
        }
        panic!("the writes do not end");
    }

    /// Changes an object like another client, and reconciles.
    fn change(mut self, kind: &str, namespace: &str, name: &str, patch: &Value) -> Self {
        let key = [kind, namespace, name].map(str::to_owned);
        let mut object = self.objects.get(&key).cloned().unwrap_or_else(|| {
            json!({"kind": kind, "metadata": {"name": name, "namespace": namespace, "uid": format!("<uid {kind}/{name}>")}})
        });
        merge::apply(&mut object, patch);
        self.offer(object);
        self.settle()
    }

    /// Advances the time by [`STALLED_AFTER`], and reconciles.
    fn later(mut self) -> Self {
        self.now += STALLED_AFTER;
        self.settle()
    }

    fn object(&self, kind: &str, namespace: &str, name: &str) -> &Value {
        &self.objects[&[kind, namespace, name].map(str::to_owned)]
    }
}

/// A course with a user and Templates.
fn course() -> Vec<Value> {
    let labels = json!({"crownlabs.polito.it/operator-selector": "production"});
    let group = "crownlabs.polito.it/v1alpha2";
    let template = |name: &str, environment: &Value| {
        let mut whole = json!({
            "name": "main", "image": "example.org/image", "mountMyDriveVolume": false,
            "resources": {"cpu": 1, "reservedCPUPercentage": 25, "memory": "1Gi"},
        });
        merge::apply(&mut whole, environment);
        json!({
            "apiVersion": group, "kind": "Template", "metadata": {"name": name, "namespace": "workspace-tea"},
            "spec": {
                "prettyName": name, "description": name, "environmentList": [whole],
                "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"},
            },
        })
    };
    let disk = json!({
        "environmentType": "CloudVM", "persistent": true, "image": "https://example.org/disk.img",
        "resources": {"disk": "10Gi"},
    });
    vec![
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        }),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "nginx"}}),
        json!({
            "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace",
            "metadata": {"name": "tea", "labels": labels},
            "spec": {"prettyName": "Tea", "quota": {"cpu": 8, "memory": "8Gi", "instances": 4}},
        }),
        tenant("ada", &json!({"workspaces": [{"name": "tea", "role": "user"}]})),
        template("box", &json!({"environmentType": "Standalone"})),
        template("disk", &disk),
        template("wrong", &json!({"environmentType": "CloudVM", "persistent": false})),
    ]
}

/// The object with this name from the course.
fn course_object(name: &str) -> Value {
    course().into_iter().find(|object| object["metadata"]["name"] == name).expect("an object of the course")
}

fn tenant(name: &str, spec: &Value) -> Value {
    let mut whole = json!({
        "firstName": "Ada", "lastName": "Rossi", "email": "ada@example.org", "lastLogin": "2099-01-01T00:00:00Z",
    });
    merge::apply(&mut whole, spec);
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant",
        "metadata": {"name": name, "labels": {"crownlabs.polito.it/operator-selector": "production"}},
        "spec": whole,
    })
}

/// The Instance `i` of a Template.
fn instance(template: &str) -> Value {
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance",
        "metadata": {"name": "i", "namespace": "tenant-ada", "creationTimestamp": "2026-03-04T05:00:00Z"},
        "spec": {
            "prettyName": "I", "running": true,
            "template.crownlabs.polito.it/TemplateRef": {"name": template, "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
        },
    })
}

/// A state of an object.
struct State {
    kind: &'static str,
    namespace: &'static str,
    name: &'static str,
    /// A description.
    what: &'static str,
    world: World,
    expected: &'static str,
}

/// Only the daemon creates and writes image lists. If the registry does not answer, the list keeps its images and has
/// the condition `Stale` instead of `Ready`.
const WITHOUT_READY: &str = "ImageList";

/// The kinds with an enumeration of their phases.
const PHASES: [(&str, &[&str]); 3] = [
    ("Instance", InstancePhase::KNOWN),
    ("InstanceSnapshot", SnapshotPhase::KNOWN),
    ("SharedVolume", SharedVolumePhase::KNOWN),
];

#[test]
fn kstatus_is_right_for_every_kind_in_every_phase() {
    let states = states::all();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for State { kind, namespace, name, what, world, expected } in &states {
        let object = world.object(kind, namespace, name);
        let phase = object["status"]["phase"].as_str().unwrap_or_default();
        seen.insert((*kind, phase.to_owned()));
        let found = kstatus::of(object);
        if found != *expected {
            wrong.push(format!("{kind}, {what}: {found}, not {expected}: {}", object["status"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (kind, phases) in PHASES {
        let missing: Vec<&&str> =
            phases.iter().filter(|phase| !seen.contains(&(kind, (**phase).to_owned()))).collect();
        assert!(missing.is_empty(), "{kind}: no state has these phases: {missing:?}");
    }
    let kinds = crds().into_iter().filter(has_status).map(|crd| crd.spec.names.kind);
    let kinds = kinds.filter(|kind| kind != WITHOUT_READY);
    let kinds: BTreeSet<String> = kinds.collect();
    let listed: BTreeSet<String> = states.iter().map(|state| state.kind.to_owned()).collect();
    assert_eq!(kinds, listed, "every kind has states");
}

#[test]
fn nothing_else_of_a_tenant_waits_for_an_unknown_course() {
    let entries = json!([{"name": "ghost", "role": "user"}, {"name": "tea", "role": "manager"}]);
    let world = World::with(&[tenant("bob", &json!({"workspaces": entries}))]).settle();
    let tenant = world.object("Tenant", "", "bob");
    let ready = tenant["status"]["conditions"].as_array().into_iter().flatten();
    let ready = ready.clone().find(|condition| condition["type"] == "Ready").expect("a condition");
    let message = ready["message"].as_str().unwrap_or_default();
    assert!(
        ready["reason"] == "WorkspaceNotFound" && message.contains("Workspace ghost does not exist"),
        "{ready}"
    );
    assert!(!message.contains("tea"), "{message}");
    assert_eq!(tenant["metadata"]["labels"]["crownlabs.polito.it/workspace-tea"], "manager");
    assert_eq!(tenant["status"]["personalNamespace"]["created"], true);
    assert_eq!(tenant["status"]["quota"]["cpu"], "8");
    let namespace = world.object("Namespace", "", "tenant-bob");
    assert_eq!(namespace["kind"], "Namespace");
}
