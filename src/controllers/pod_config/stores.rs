//! The stores of the loop, and the `PodConfig`s that each change adds to the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cache::{Cache, Concerns, Known};
use super::claims::{InUse, decide};
use super::observe::{FINALIZER, LABEL, Member, NodeState, Observed, PoolView, Settings};
use super::ranges::Range;
use super::records::{PoolRecord, address, read, read_pool};
use super::validate::{Decisions, validate};
use crate::api::meta::Metadata;
use crate::api::pod_config::{PodConfig, PodConfigKind, PodConfigSpec};
use crate::api::text::Text;
use crate::controllers::pod_network::{RECORD, listed, report_name};
use crate::kinds::{
    NetworkRecord, NetworkRecordKind, NetworkedPod, NetworkedPodKind, NodeKind, SampleDeploymentKind,
};
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{ByController, ByNamespace, Change, Store, index};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;
use crate::runtime::{ObjectKey, finalizer};

/// The maximum number of namespaces that a message names.
const NAMED: usize = 5;

/// The stores of the loop.
pub struct Stores {
    /// The settings of the loop.
    pub settings: Arc<Settings>,
    own_configs: OwnConfigs,
    /// Pods with the label, in all namespaces.
    pods: Arc<Store<NetworkedPodKind>>,
    nodes: Arc<Store<NodeKind>>,
    /// The records, which are only in the daemon's namespace.
    records: Arc<Store<NetworkRecordKind>>,
    /// Deployments with the label.
    deployments: Arc<Store<SampleDeploymentKind>>,
    cache: Arc<Cache>,
    queue: Arc<Queue>,
}

index! {
    /// Pods by the `PodConfig` in their namespace that their label names.
    struct ByPodConfig of NetworkedPodKind by ObjectKey;
    |pod| config_of(pod).into_iter().collect()
}

fn config_of(pod: &NetworkedPod) -> Option<ObjectKey> {
    pod.label(LABEL).map(|name| ObjectKey::new(pod.metadata.namespace.clone(), name))
}

/// The key for reconciling leftovers in a namespace without `PodConfig`s: links of deleted `PodConfig`s on nodes that
/// were unavailable. The key with an empty namespace is for the reports of deleted nodes. No object has such a key.
pub fn leftovers(namespace: &str) -> ObjectKey {
    ObjectKey::new(namespace, "")
}

/// The `PodConfig`s that are reconciled.
#[derive(Clone)]
struct OwnConfigs {
    configs: Arc<Store<PodConfigKind>>,
    /// The namespaces of the `PodConfig`s; empty for all.
    namespaces: BTreeSet<String>,
}

impl OwnConfigs {
    fn is_ours(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    /// Whether it is reconciled. In a namespace that the configuration no longer lists, only deletions are completed.
    fn is_one(&self, config: &PodConfig) -> bool {
        self.is_ours(config.namespace()) || config.is_terminating() && finalizer::holds(config, FINALIZER)
    }

    /// Whether a namespace has reconciled `PodConfig`s.
    fn are_in(&self, namespace: &str) -> bool {
        let is_held = |config: &PodConfig| finalizer::holds(config, FINALIZER);
        let configs = self.configs.by::<ByNamespace>(namespace);
        self.is_ours(namespace) && !configs.is_empty() || configs.iter().any(|config| is_held(config))
    }

    /// Queues all `PodConfig`s of a namespace except the one named `but`, or the namespace's leftovers.
    fn wake(&self, namespace: &str, but: &str, queue: &Queue) {
        let others = self.configs.keys_by::<ByNamespace>(namespace).into_iter();
        let leftovers = (!self.are_in(namespace)).then(|| leftovers(namespace));
        for key in others.filter(|key| *key.name != *but).chain(leftovers) {
            queue.add(key, Priority::Change);
        }
    }
}

/// The records that the loop reads and writes.
pub fn records(namespace: &str) -> Selection {
    Selection::labelled(RECORD).within(namespace)
}

impl Stores {
    /// Declares the stores. `cache` is updated with them.
    pub fn declare(set: &mut StoreSet<'_>, settings: &Arc<Settings>, cache: &Arc<Cache>) -> Self {
        let (all, labelled) = (Selection::ALL, Selection::labelled(LABEL));
        let changed = Arc::clone(cache);
        // The decisions must become stale before a change adds anything to the queue.
        let configs = set.store::<PodConfigKind>(&all).requests("patch");
        let expiring = configs.on_change(move |change, _| {
            let part = |config: &PodConfig| (config.spec.clone(), config.uid().to_owned());
            if change.object_if(part).is_some() {
                changed.expire();
            }
        });
        let configs: Arc<Store<PodConfigKind>> = expiring.objects(|_| true).index::<ByNamespace>().get();
        let own_configs = OwnConfigs { configs, namespaces: settings.namespaces.clone() };
        wake_siblings(&own_configs, set.queue());
        Self {
            settings: Arc::clone(settings),
            pods: set.store(&labelled).index::<ByPodConfig>().on_change(wake_by_pod).get(),
            nodes: declare_nodes(set, &own_configs, cache),
            records: declare_records(set, &own_configs, &settings.namespace, cache),
            own_configs,
            deployments: set
                .store(&labelled)
                .child()
                .index::<ByController>()
                .wakes_controller::<PodConfigKind>()
                .get(),
            cache: Arc::clone(cache),
            queue: Arc::clone(set.queue()),
        }
    }

    /// The state of a `PodConfig` in the stores. `None` if it does not exist, or if it is in a namespace that is not
    /// reconciled and has no finalizer of ours. For a key of [`leftovers`], the leftovers of a namespace, if there are
    /// any.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let mut decisions = self.decisions(key);
        let is_leftovers = key.name.is_empty();
        let own = &self.own_configs;
        let config = if is_leftovers {
            let spec = PodConfigSpec::default();
            (!own.are_in(&key.namespace)).then(|| Arc::new(PodConfig::new(Some(&key.namespace), "", spec)))
        } else {
            own.configs.get(&key.namespace, &key.name).filter(|config| own.is_one(config))
        }?;
        let siblings = own.configs.by::<ByNamespace>(&key.namespace);
        if siblings.iter().any(|sibling| !decisions.contains_key(&ObjectKey::of(&**sibling))) {
            // A sibling has just been created.
            self.cache.expire();
            decisions = self.decisions(key);
        }
        let members: Vec<Member> =
            siblings.into_iter().map(|sibling| self.member(sibling, &decisions)).collect();
        let known = self.cache.all();
        let former = self.former(&known);
        let pools = self.pools(key, &members, &known);
        if is_leftovers && pools.is_empty() && former.is_empty() {
            return None;
        }
        let sample = config.spec.sample_deployment.as_ref().map_or("", |sample| &sample.name);
        Some(Observed {
            host_network: self.host_network(key),
            sample: self.deployments.get(&key.namespace, sample),
            samples: self.deployments.by::<ByController>(config.uid()),
            nodes: self.nodes(&members, &pools, &known),
            members,
            pools,
            reports: known.reports,
            former,
            config,
        })
    }

    /// A message about recorded networks in namespaces that the configuration no longer lists.
    pub fn outside(&self) -> Option<String> {
        let pools = self.cache.all().pools;
        let namespaces = pools.iter().map(|pool| pool.namespace.clone());
        let outside: BTreeSet<String> =
            namespaces.filter(|namespace| !self.own_configs.is_ours(namespace)).collect();
        let named: Vec<&str> = outside.iter().take(NAMED).map(String::as_str).collect();
        (!outside.is_empty()).then(|| {
            format!(
                "{} namespaces have pod networks but are not listed in controllers.podConfig.namespaces: {}. The networks stay \
                 unchanged until their PodConfigs are deleted",
                outside.len(),
                listed(&named, NAMED)
            )
        })
    }

    /// The decisions about ranges and bridges. Other `PodConfig`s whose decisions have changed are added to the queue.
    fn decisions(&self, key: &ObjectKey) -> Arc<Decisions> {
        let (decisions, changed) = self.cache.decisions(|in_use: &[InUse]| {
            let all: Vec<_> = self.own_configs.configs.objects().collect();
            let all: Vec<_> = all.iter().map(|config| (ObjectKey::of(&**config), &**config)).collect();
            decide(&all, &self.settings.reserved, in_use)
        });
        for other in changed.into_iter().filter(|other| other != key) {
            self.queue.add(other, Priority::Change);
        }
        decisions
    }

    fn member(&self, config: Arc<PodConfig>, decisions: &Decisions) -> Member {
        let key = ObjectKey::of(&*config);
        let pods = self.pods.by::<ByPodConfig>(&key);
        let has_network = |pod: &Arc<NetworkedPod>| !pod.spec.host_network && !has_ended(pod);
        Member {
            validated: validate(&config, decisions.get(&key).map_or(&[], Vec::as_slice)),
            is_leaving: config.is_terminating(),
            is_outside: !config.is_terminating() && !self.own_configs.is_ours(&key.namespace),
            pods: pods.into_iter().filter(has_network).collect(),
            config,
        }
    }

    fn host_network(&self, key: &ObjectKey) -> Vec<Metadata> {
        let pods = self.pods.by::<ByPodConfig>(key);
        let is_left_alone =
            |pod: &&Arc<NetworkedPod>| pod.spec.host_network && !has_ended(pod) && !pod.is_terminating();
        pods.iter().filter(is_left_alone).map(|pod| pod.metadata.clone()).collect()
    }

    /// The pools of a namespace: recorded pools, pools that its `PodConfig`s request, and pools with reported live
    /// links.
    fn pools(&self, key: &ObjectKey, members: &[Member], known: &Known) -> Vec<PoolView> {
        let Known { pools: known, reports } = known;
        let namespace = key.namespace.as_str();
        let recorded = known.iter().filter(|pool| pool.namespace == namespace).map(|pool| pool.range);
        let named = members.iter().flat_map(|member| &member.validated.attachments);
        let named = named.map(|(attachment, _)| attachment.range);
        let links = reports.values().flat_map(|report| report.links.values().flatten());
        let live = links.filter(|link| link.namespace == namespace && address(link).is_some());
        let live = live.filter_map(|link| Range::parse(&link.address).ok());
        let ranges: BTreeSet<Range> = recorded.chain(named).chain(live).collect();
        ranges.into_iter().map(|range| self.view(namespace, range)).collect()
    }

    /// A pool, read from the record that will be patched. The cache may briefly hold another version.
    fn view(&self, namespace: &str, range: Range) -> PoolView {
        let empty = PoolRecord::empty(namespace, range);
        let record = self.records.get(&self.settings.namespace, &empty.name());
        PoolView { pool: record.as_deref().and_then(read_pool).unwrap_or(empty), record }
    }

    /// The reports of nodes that do not exist and have no allocations.
    fn former(&self, Known { pools: known, reports }: &Known) -> Vec<(String, Arc<NetworkRecord>)> {
        let gone: Vec<&String> = reports.keys().filter(|node| self.nodes.get("", node).is_none()).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let allocations = known.iter().flat_map(|pool| pool.allocations());
        let named: BTreeSet<&str> = allocations.map(|(_, one)| one.node.as_str()).collect();
        let gone = gone.into_iter().filter(|node| !named.contains(node.as_str()));
        gone.filter_map(|node| {
            Some((node.clone(), self.records.get(&self.settings.namespace, &report_name(node))?))
        })
        .collect()
    }

    fn nodes(&self, members: &[Member], pools: &[PoolView], known: &Known) -> BTreeMap<String, NodeState> {
        let of_pods = members.iter().flat_map(|member| &member.pods).map(|pod| &*pod.spec.node_name);
        let allocations = pools.iter().flat_map(|view| view.pool.allocations());
        let of_pools = allocations.map(|(_, allocation)| allocation.node.as_str());
        let names = of_pods.chain(of_pools).chain(known.reports.keys().map(String::as_str));
        let names: BTreeSet<&str> = names.collect();
        let state = |name: &str| NodeState::of(self.nodes.get("", name).as_deref());
        names.into_iter().map(|name| (name.to_owned(), state(name))).collect()
    }
}

/// Whether a pod has ended for good.
fn has_ended(pod: &NetworkedPod) -> bool {
    ["Succeeded", "Failed"].contains(&pod.status.phase.as_str())
}

/// Queues the old and the new `PodConfig` of a pod when the relevant fields of the pod change.
fn wake_by_pod(change: &Change<NetworkedPodKind>, queue: &Queue) {
    let part = |pod: &NetworkedPod| {
        (config_of(pod), pod.uid().to_owned(), pod.spec.clone(), has_ended(pod), pod.is_terminating())
    };
    if change.object_if(part).is_none() {
        return;
    }
    for key in [&change.old, &change.new].into_iter().flatten().filter_map(|pod| config_of(pod)) {
        queue.add(key, Priority::Change);
    }
}

/// Queues the other `PodConfig`s of the namespace when a `PodConfig` is created, is deleted or changes its spec,
/// because they share pools.
fn wake_siblings(own_configs: &OwnConfigs, queue: &Arc<Queue>) {
    let (shown, queue) = (own_configs.clone(), Arc::clone(queue));
    own_configs.configs.subscribe(move |change| {
        let part =
            |config: &PodConfig| (config.spec.clone(), config.is_terminating(), config.uid().to_owned());
        let Some(config) = change.object_if(part) else { return };
        shown.wake(config.namespace(), config.name(), &queue);
    });
}

/// Queues the affected `PodConfig`s, or the leftovers of namespaces without any.
fn wake(concerns: &Concerns, own_configs: &OwnConfigs, queue: &Queue) {
    for namespace in &concerns.namespaces {
        own_configs.wake(namespace, "", queue);
    }
    if concerns.all {
        own_configs.configs.keys().into_iter().for_each(|key| queue.add(key, Priority::Change));
    }
}

/// Declares the store of nodes. If a node becomes ready, becomes not ready or is deleted, the `PodConfig`s with
/// allocations or links on it are queued.
fn declare_nodes(
    set: &mut StoreSet<'_>,
    own_configs: &OwnConfigs,
    cache: &Arc<Cache>,
) -> Arc<Store<NodeKind>> {
    let (own_configs, cache) = (own_configs.clone(), Arc::clone(cache));
    // A node that is missing in the store is read from the API server before the loop gives it up.
    let nodes = set.store::<NodeKind>(&Selection::ALL).requests("get");
    nodes
        .on_change(move |change, queue| {
            let Some(node) = change.object_if(|node| NodeState::of(Some(node))) else { return };
            let mut namespaces = cache.namespaces_on(node.name());
            if change.new.is_none() {
                // Its report is removed under the key with an empty namespace.
                namespaces.insert(String::new());
            }
            wake(&Concerns { namespaces, ..Concerns::default() }, &own_configs, queue);
        })
        .get()
}

/// Declares the store of the records, and keeps their parsed content in memory.
fn declare_records(
    set: &mut StoreSet<'_>,
    own_configs: &OwnConfigs,
    namespace: &str,
    cache: &Arc<Cache>,
) -> Arc<Store<NetworkRecordKind>> {
    let records = set.store(&records(namespace)).requests("get create patch delete");
    let store: Arc<Store<NetworkRecordKind>> = records.get();
    let (shown, queue) = (Arc::clone(&store), Arc::clone(set.queue()));
    let (own_configs, cache) = (own_configs.clone(), Arc::clone(cache));
    store.subscribe(move |change| {
        let Some(record) = change.object() else { return };
        let (namespace, name): (&str, Text) = (record.namespace(), record.metadata.name.clone());
        let mut concerns = cache.take(&name, || read(&*shown.get(namespace, &name)?));
        if change.origin.is_some() && !concerns.is_loss {
            // The reconcile that wrote the record has already planned with it, and the change frees nothing that others
            // wait for.
            return;
        }
        if concerns == Concerns::default() && change.origin.is_none() && change.new.is_none() {
            // A record that could not be parsed was removed, so it can be created again.
            concerns.all = true;
        }
        wake(&concerns, &own_configs, &queue);
    });
    store
}
