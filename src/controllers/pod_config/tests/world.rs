//! A cluster in memory: objects with versions, writes with the preconditions of the API server, and nodes that follow
//! the protocol of the records.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::config::Config;
use crate::controllers::pod_config::PodConfigReconciler;
use crate::controllers::pod_config::observe::{FINALIZER, LABEL, Observed, Settings};
use crate::controllers::pod_config::plan::plan;
use crate::controllers::pod_config::report::report;
use crate::controllers::pod_config::stores::records;
use crate::controllers::pod_network::{Allocation, LinkProblem, POOL, POOL_KEY, Pool, RECORD};
use crate::controllers::setup::{Definition, Setup};
use crate::fixtures::time;
use crate::kinds::{NetworkRecordKind, NetworkedPodKind, NodeKind, SampleDeploymentKind};
use crate::runtime::gate::Gate;
use crate::runtime::plan::{ObjectPatch, Plan, to_value};
use crate::runtime::reconciler::{Outcome, Reconciler};
use crate::runtime::store::StoreFactory;
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;
use crate::runtime::{ObjectKey, finalizer, merge};

/// The namespace of the records.
pub const SYSTEM: &str = "crownlabs-system";

/// A live link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Its allocation.
    pub allocation: Allocation,
    /// The namespace of its pod.
    pub namespace: String,
    /// The prefix length.
    pub prefix: u8,
}

/// The cluster.
pub struct World {
    factory: StoreFactory,
    reconciler: PodConfigReconciler,
    settings: Settings,
    /// The configuration of the daemon.
    pub config: Config,
    /// Objects by kind, namespace and name.
    pub objects: BTreeMap<(String, String, String), Value>,
    version: u64,
    uids: u64,
    /// The time.
    pub now: Timestamp,
    /// The links of each node, by uid of the pod and attachment.
    pub links: BTreeMap<(String, String, String), Live>,
    /// Reasons and messages of events.
    pub events: Vec<String>,
    /// The problems that nodes report for attachments of this name, instead of creating them.
    pub broken: BTreeMap<String, LinkProblem>,
    /// The number of writes by the daemon.
    pub writes: usize,
    /// The addresses on links of lost nodes. Until the cluster settles, others may have them.
    pub excused: BTreeSet<IpAddr>,
}

/// The loop, with stores that `factory` makes.
pub fn build(config: &Config, mut factory: StoreFactory) -> (StoreFactory, PodConfigReconciler, Settings) {
    let mut set = StoreSet::new("podConfig", &mut factory);
    let built = PodConfigReconciler::build(&mut Setup::new(config, Gate::open()), &mut set);
    let (reconciler, settings) = built.expect("a configuration");
    (factory, reconciler, (*settings).clone())
}

impl World {
    /// An empty cluster with two nodes.
    pub fn new() -> Self {
        let mut config = Config::default();
        config.controllers.pod_config.reserved_cidrs = vec!["10.96.0.0/12".to_owned()];
        config.controllers.pod_config.namespaces = vec!["lab".to_owned(), "other".to_owned()];
        let (factory, reconciler, settings) = build(&config, StoreFactory::default());
        let mut world = Self {
            factory,
            reconciler,
            settings,
            config,
            objects: BTreeMap::new(),
            version: 0,
            uids: 0,
            now: time("2026-01-02T00:00:00Z"),
            links: BTreeMap::new(),
            events: Vec::new(),
            broken: BTreeMap::new(),
            writes: 0,
            excused: BTreeSet::new(),
        };
        for name in ["n1", "n2"] {
            world.node(name, "True");
        }
        world
    }

    /// Replaces the daemon's process. The new process only knows the state of the API server.
    pub fn restart(&mut self) {
        (self.factory, self.reconciler, self.settings) = build(&self.config, StoreFactory::default());
        self.objects.values().for_each(|object| {
            self.factory.offer(object).expect("an object");
        });
    }

    /// The same, with other `namespaces` in the configuration.
    pub fn restart_with(&mut self, namespaces: &[&str]) {
        self.config.controllers.pod_config.namespaces =
            namespaces.iter().map(|name| (*name).to_owned()).collect();
        self.restart();
    }

    /// Creates an object, or a new version of it.
    pub fn put(&mut self, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut object = object.clone();
        let metadata = &object["metadata"];
        let key = (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]));
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if let Some(old) = self.objects.get(&key) {
            object["metadata"]["uid"] = old["metadata"]["uid"].clone();
        } else {
            self.uids += 1;
            object["metadata"]["uid"] = format!("uid-{}", self.uids).into();
        }
        let is_gone = !object["metadata"]["deletionTimestamp"].is_null()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        self.factory.offer(&object).expect("an object");
        self.objects.insert(key.clone(), object);
        if is_gone {
            self.remove(&key.0, &key.1, &key.2);
        }
    }

    /// Removes an object.
    pub fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        let Some(object) = self.objects.remove(&key) else { return };
        let read = || object.clone();
        macro_rules! gone {
            ($kind:ty, $selection:expr) => {
                self.factory
                    .store::<$kind>(&$selection)
                    .delete_event(&serde_json::from_value(read()).expect("an object"))
            };
        }
        match kind {
            "PodConfig" => gone!(crate::api::pod_config::PodConfigKind, Selection::ALL),
            "Pod" => gone!(NetworkedPodKind, Selection::labelled(LABEL)),
            "Node" => gone!(NodeKind, Selection::ALL),
            "Deployment" => gone!(SampleDeploymentKind, Selection::labelled(LABEL)),
            _ => gone!(NetworkRecordKind, records(SYSTEM)),
        }
    }

    /// An object.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
    }

    /// Patches an object with a merge patch.
    pub fn patch(&mut self, kind: &str, namespace: &str, name: &str, patch: &Value) {
        let mut object = self.get(kind, namespace, name).expect("it exists").clone();
        merge::apply(&mut object, patch);
        self.put(&object);
    }

    /// Creates or updates a node; its condition `Ready` has this status since now.
    pub fn node(&mut self, name: &str, ready: &str) {
        let since = self.now.to_string();
        self.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": since}]}}));
    }

    /// Creates a pod on a node.
    pub fn pod(&mut self, namespace: &str, name: &str, config: &str, node: &str) {
        self.put(&json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "labels": {LABEL: config}},
            "spec": {"nodeName": node}, "status": {"phase": "Running"}}));
    }

    /// Creates or updates a `PodConfig` with attachments, each as `name bridge range`.
    pub fn config(&mut self, namespace: &str, name: &str, attachments: &[&str]) {
        let list: Vec<Value> = attachments
            .iter()
            .map(|text| {
                let parts: Vec<&str> = text.split(' ').collect();
                json!({"name": parts[0], "linkType": "veth", "parent": "", "master": parts[1], "cidr": parts[2]})
            })
            .collect();
        let old = self.get("PodConfig", namespace, name).cloned();
        let mut object = old.unwrap_or_else(|| {
            json!({"apiVersion": "podconfig.opdev.io/v1alpha1", "kind": "PodConfig",
                "metadata": {"namespace": namespace, "name": name, "generation": 1,
                    "creationTimestamp": self.now.to_string()}})
        });
        object["spec"]["networkAttachments"] = json!(list);
        self.put(&object);
    }

    /// Requests the deletion of a `PodConfig`.
    pub fn delete(&mut self, namespace: &str, name: &str) {
        let now = self.now.to_string();
        self.patch("PodConfig", namespace, name, &json!({"metadata": {"deletionTimestamp": now}}));
    }

    /// The observed state of a `PodConfig`.
    pub fn observed(&self, namespace: &str, name: &str) -> Option<Observed> {
        self.reconciler.observe(&ObjectKey::new(namespace, name))
    }

    /// The plan for a `PodConfig`.
    pub fn planned(&self, namespace: &str, name: &str) -> Plan {
        plan(&self.observed(namespace, name).expect("it is ours"), &self.settings, self.now)
    }

    /// Runs one reconcile as the driver does. The process dies after this number of writes.
    pub fn reconcile(&mut self, namespace: &str, name: &str, limit: usize) {
        let key = ObjectKey::new(namespace, name);
        let Some(observed) = self.reconciler.observe(&key) else { return };
        if observed.config.is_terminating() && !finalizer::holds(&observed.config, FINALIZER) {
            return;
        }
        let end = self.writes.saturating_add(limit);
        let plan = plan(&observed, &self.settings, self.now);
        let Some(is_success) = self.apply(&plan, end) else { return };
        let Some(observed) = self.reconciler.observe(&key) else { return };
        if let Some(finalizer) = plan.remove_finalizer.filter(|_| is_success) {
            if let Some(patch) = finalizer::removal(&*observed.config, finalizer) {
                self.writes += 1;
                assert!(self.send(&patch), "there is no other writer");
            }
            return;
        }
        let report = report(&observed, &self.settings, &plan, &Outcome::default(), self.now);
        for event in &report.events {
            let about = event.regarding.as_ref().map(|other| format!("{} ", other.key)).unwrap_or_default();
            self.events.push(format!("{about}{} {}", event.reason, event.message));
        }
        if report.status != observed.config.status {
            self.writes += 1;
            self.patch("PodConfig", namespace, name, &json!({"status": null}));
            self.patch("PodConfig", namespace, name, &json!({"status": to_value(&report.status)}));
        }
    }

    /// Carries out a plan. Returns whether all writes succeeded, or `None` if the process dies.
    fn apply(&mut self, plan: &Plan, end: usize) -> Option<bool> {
        let mut is_success = true;
        for desired in &plan.ensure {
            let (kind, key) = (desired.kind.kind, &desired.key);
            match (self.get(kind, &key.namespace, &key.name).cloned(), &desired.manifest) {
                (None, Some(manifest)) => {
                    self.begin(end)?;
                    self.put(&manifest.json().clone());
                }
                (Some(mut object), _) if desired.fields.is_object() => {
                    self.begin(end)?;
                    merge::apply(&mut object, &desired.fields);
                    self.put(&object);
                }
                (Some(_), _) => {}
                (None, None) => is_success = false,
            }
        }
        for patch in &plan.patches {
            self.begin(end)?;
            is_success &= self.send(patch);
        }
        for removal in &plan.remove {
            self.begin(end)?;
            let found = self.get(removal.kind.kind, &removal.key.namespace, &removal.key.name);
            let is_same =
                found.is_some_and(|found| found["metadata"]["resourceVersion"] == removal.resource_version);
            is_success &= is_same;
            if is_same {
                self.remove(removal.kind.kind, &removal.key.namespace, &removal.key.name);
            }
        }
        Some(is_success)
    }

    fn begin(&mut self, end: usize) -> Option<()> {
        (self.writes < end).then(|| self.writes += 1)
    }

    /// Sends a patch; `false` if the object has another version.
    fn send(&mut self, patch: &ObjectPatch) -> bool {
        let Some(object) = self.get(patch.kind.kind, &patch.key.namespace, &patch.key.name) else {
            return false;
        };
        let version = object["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        if version != patch.resource_version {
            return false;
        }
        self.patch(patch.kind.kind, &patch.key.namespace, &patch.key.name, &patch.patch);
        true
    }

    /// The records of one value of the label.
    pub fn records(&self, value: &str) -> Vec<Value> {
        let is_one = |object: &&Value| object["metadata"]["labels"][RECORD] == value;
        self.objects.values().filter(is_one).cloned().collect()
    }

    /// The recorded pools, each with its allocations by the uid of the pod.
    pub fn pools(&self) -> Vec<(Pool, BTreeMap<String, Vec<Allocation>>)> {
        let read = |object: &Value| {
            let data: BTreeMap<String, String> = serde_json::from_value(object["data"].clone()).ok()?;
            let pool = serde_json::from_str(data.get(POOL_KEY)?).ok()?;
            let entries = data.iter().filter(|(key, _)| *key != POOL_KEY);
            let entries =
                entries.filter_map(|(uid, text)| Some((uid.clone(), serde_json::from_str(text).ok()?)));
            Some((pool, entries.collect()))
        };
        self.records(POOL).iter().filter_map(read).collect()
    }

    /// Runs all components until nothing changes.
    pub fn settle(&mut self) {
        for _ in 0..60 {
            let before = self.version;
            let configs: Vec<_> =
                self.objects.keys().filter(|(kind, ..)| kind == "PodConfig").cloned().collect();
            for (_, namespace, name) in configs {
                self.reconcile(&namespace, &name, usize::MAX);
                self.check();
            }
            for namespace in ["lab", "other", ""] {
                self.reconcile(namespace, "", usize::MAX);
                self.check();
            }
            let nodes: Vec<_> = self.objects.keys().filter(|(kind, ..)| kind == "Node").cloned().collect();
            for (_, _, node) in
                nodes.into_iter().filter(|(_, _, node)| self.is_ready(node)).collect::<Vec<_>>()
            {
                self.work(&node);
                self.check();
            }
            if self.version == before {
                self.excused.clear();
                self.check();
                return;
            }
        }
        panic!("the cluster does not settle: {:#?}", self.objects);
    }

    /// Asserts the invariants: no address occurs twice, on live links or in records, and no link has an address that
    /// pods cannot have.
    pub fn check(&self) {
        let mut seen = BTreeMap::new();
        let is_excused = |live: &Live| self.excused.contains(&live.allocation.address);
        for (key, live) in self.links.iter().filter(|(_, live)| !is_excused(live)) {
            let other = seen.insert(live.allocation.address, key);
            assert!(other.is_none(), "{} is on {key:?} and {other:?}", live.allocation.address);
        }
        let mut recorded = BTreeMap::new();
        for (pool, entries) in self.pools() {
            let range = crate::controllers::pod_config::ranges::Range::parse(&pool.range).expect("a range");
            for (uid, allocation) in
                entries.iter().flat_map(|(uid, list)| list.iter().map(move |one| (uid, one)))
            {
                let address = allocation.address;
                assert!(range.is_for_pods(address) && address != pool.gateway, "{address} of {}", pool.range);
                let other = recorded.insert(address, uid.clone());
                assert!(other.is_none(), "{address} of {uid} and {other:?}");
                let live = self.links.iter().find(|(_, live)| live.allocation.address == address);
                let is_same = live.is_none_or(|((_, of, _), live)| of == uid || is_excused(live));
                assert!(is_same, "{address} is recorded for {uid}, and on a link of {live:?}");
            }
        }
    }

    /// The addresses of a pod, as `attachment address`.
    pub fn addresses(&self, namespace: &str, pod: &str) -> Vec<String> {
        let Some(pod) = self.get("Pod", namespace, pod) else { return Vec::new() };
        let uid = &pod["metadata"]["uid"];
        let own = self.links.iter().filter(|((_, of, _), _)| uid == of);
        own.map(|((_, _, attachment), live)| format!("{attachment} {}", live.allocation.address)).collect()
    }
}
