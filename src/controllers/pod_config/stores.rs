//! The stores of the loop, and which of their changes add which `PodConfig`s to the queue.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::cache::{Cache, Concerns};
use super::claims::{InUse, decide};
use super::observe::{FINALIZER, LABEL, Member, NodeState, Observed, PoolView, Settings};
use super::ranges::Range;
use super::records::{NodeReport, PoolRecord, Record, address, read, read_pool};
use super::validate::{Verdicts, validate};
use crate::api::meta::Metadata;
use crate::api::pod_config::{PodConfig, PodConfigKind, PodConfigSpec};
use crate::api::text::Text;
use crate::controllers::pod_network::{RECORD, report_name};
use crate::kinds::{
    NetworkRecordKind, NetworkedPod, NetworkedPodKind, NodeKind, SampleDeployment, SampleDeploymentKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::finalizer;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{ByController, ByNamespace, Change, Store, index};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The stores of the loop.
pub struct Stores {
    /// The settings of the loop.
    pub settings: Arc<Settings>,
    own_configs: OwnConfigs,
    /// Pods with the label, in all namespaces.
    pods: Arc<Store<NetworkedPodKind>>,
    nodes: Arc<Store<NodeKind>>,
    /// The records, in the namespace of the daemon alone.
    records: Arc<Store<NetworkRecordKind>>,
    /// Deployments with the label.
    deployments: Arc<Store<SampleDeploymentKind>>,
    cache: Arc<Cache>,
    queue: Arc<Queue>,
}

index! {
    /// Pods by their `PodConfig`: the one that their label names, in their own namespace.
    struct ByPodConfig of NetworkedPodKind by ObjectKey;
    |pod| config_of(pod).into_iter().collect()
}

fn config_of(pod: &NetworkedPod) -> Option<ObjectKey> {
    pod.label(LABEL).map(|name| ObjectKey::new(pod.metadata.namespace.clone(), name))
}

/// The key under which is reconciled what is left in a namespace in which no `PodConfig` is: links of former ones, on nodes
/// that were away. That of no namespace is for the reports of nodes that are gone. No object has it.
pub fn leftovers(namespace: &str) -> ObjectKey {
    ObjectKey::new(namespace, "")
}

/// The `PodConfig`s that are reconciled.
#[derive(Clone)]
struct OwnConfigs {
    configs: Arc<Store<PodConfigKind>>,
    /// Those of these namespaces; none for all.
    namespaces: BTreeSet<String>,
}

impl OwnConfigs {
    fn is_ours(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    fn is_one(&self, config: &PodConfig) -> bool {
        self.is_ours(config.namespace()) || finalizer::holds(config, FINALIZER)
    }

    /// Whether there are some in a namespace.
    fn are_in(&self, namespace: &str) -> bool {
        self.configs.by::<ByNamespace>(namespace).iter().any(|config| self.is_one(config))
    }

    /// Adds all `PodConfig`s of a namespace but that of this name, or what is left there.
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
        // Before a change adds anything to the queue, decisions about it are out of date.
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

    /// What the stores have about a `PodConfig`; `None` when it does not exist, or is in a namespace that is not ours and
    /// has no finalizer of ours. Under the key of [`leftovers`], what is left in a namespace, if there is anything.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let mut decisions = self.decisions(key);
        let is_leftovers = key.name.is_empty();
        let config = if is_leftovers {
            let spec = PodConfigSpec::default();
            (!self.own_configs.are_in(&key.namespace))
                .then(|| Arc::new(PodConfig::new(Some(&key.namespace), "", spec)))
        } else {
            self.own_configs
                .configs
                .get(&key.namespace, &key.name)
                .filter(|config| self.own_configs.is_one(config))
        }?;
        let siblings = self.own_configs.configs.by::<ByNamespace>(&key.namespace);
        if siblings.iter().any(|sibling| !decisions.contains_key(&ObjectKey::of(&**sibling))) {
            // One has come just now.
            self.cache.expire();
            decisions = self.decisions(key);
        }
        let members: Vec<Member> =
            siblings.into_iter().map(|sibling| self.member(sibling, &decisions)).collect();
        let (known, reports) = self.cache.all();
        let former = self.former(&known, &reports);
        let pools = self.pools(key, &members, &known, &reports);
        if is_leftovers && pools.is_empty() && former.is_empty() {
            return None;
        }
        let nodes = self.nodes_of(&members, &pools, &reports);
        let sample = config.spec.sample_deployment.as_ref().map_or("", |sample| &sample.name);
        let samples: Vec<Arc<SampleDeployment>> = self.deployments.by::<ByController>(config.uid());
        Some(Observed {
            host_network: self.host_network(key),
            sample: self.deployments.get(&key.namespace, sample),
            samples,
            members,
            pools,
            nodes,
            reports,
            former,
            config,
        })
    }

    /// What is decided about ranges and bridges. The other `PodConfig`s about which the decision has changed are added to the queue.
    fn decisions(&self, key: &ObjectKey) -> Arc<HashMap<ObjectKey, Verdicts>> {
        let (decisions, changed) = self.cache.decisions(|in_use: &[InUse]| {
            let configs = &self.own_configs.configs;
            let keys = configs.keys().into_iter();
            let all: Vec<_> = keys.filter_map(|key| configs.get(&key.namespace, &key.name)).collect();
            let all: Vec<_> = all.iter().map(|config| (ObjectKey::of(&**config), &**config)).collect();
            decide(&all, &self.settings.reserved, in_use)
        });
        for other in changed.into_iter().filter(|other| other != key) {
            self.queue.add(other, Priority::Change);
        }
        decisions
    }

    fn member(&self, config: Arc<PodConfig>, decisions: &HashMap<ObjectKey, Verdicts>) -> Member {
        let key = ObjectKey::of(&*config);
        let pods = self.pods.by::<ByPodConfig>(&key);
        let has_network = |pod: &Arc<NetworkedPod>| !pod.spec.host_network && !has_ended(pod);
        Member {
            validated: validate(&config, decisions.get(&key).map_or(&[], Vec::as_slice)),
            is_leaving: config.is_terminating() || !self.own_configs.is_ours(&key.namespace),
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

    /// The pools of a namespace: those that are recorded, those that its `PodConfig`s name, and those of which a report has
    /// live links.
    fn pools(
        &self,
        key: &ObjectKey,
        members: &[Member],
        known: &[Arc<Record>],
        reports: &BTreeMap<String, Arc<NodeReport>>,
    ) -> Vec<PoolView> {
        let namespace = key.namespace.as_str();
        let known = known.iter().filter_map(|record| record.pool());
        let recorded = known.filter(|pool| pool.namespace == namespace).map(|pool| pool.range);
        let named = members.iter().flat_map(|member| &member.validated.attachments);
        let named = named.map(|(attachment, _)| attachment.range);
        let links = reports.values().flat_map(|report| report.links.values().flatten());
        let live = links.filter(|link| link.namespace == namespace && address(link).is_some());
        let live = live.filter_map(|link| Range::parse(&link.address).ok());
        let ranges: BTreeSet<Range> = recorded.chain(named).chain(live).collect();
        ranges.into_iter().map(|range| self.view(namespace, range)).collect()
    }

    /// A pool, as the record says that is patched: what is remembered of it may be of another version for a moment.
    fn view(&self, namespace: &str, range: Range) -> PoolView {
        let empty = PoolRecord::empty(namespace, range);
        let record = self.records.get(&self.settings.namespace, &empty.name());
        PoolView { pool: record.as_deref().and_then(read_pool).unwrap_or(empty), record }
    }

    /// The reports of nodes that do not exist, about which nothing is recorded.
    fn former(
        &self,
        known: &[Arc<Record>],
        reports: &BTreeMap<String, Arc<NodeReport>>,
    ) -> Vec<(String, Arc<crate::kinds::NetworkRecord>)> {
        let gone: Vec<&String> = reports.keys().filter(|node| self.nodes.get("", node).is_none()).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let pools = known.iter().filter_map(|record| record.pool());
        let named: BTreeSet<&str> =
            pools.flat_map(PoolRecord::allocations).map(|(_, one)| one.node.as_str()).collect();
        let gone = gone.into_iter().filter(|node| !named.contains(node.as_str()));
        gone.filter_map(|node| {
            Some((node.clone(), self.records.get(&self.settings.namespace, &report_name(node))?))
        })
        .collect()
    }

    fn nodes_of(
        &self,
        members: &[Member],
        pools: &[PoolView],
        reports: &BTreeMap<String, Arc<NodeReport>>,
    ) -> BTreeMap<String, NodeState> {
        let of_pods = members.iter().flat_map(|member| &member.pods).map(|pod| &*pod.spec.node_name);
        let allocations = pools.iter().flat_map(|view| view.pool.allocations());
        let of_pools = allocations.map(|(_, allocation)| allocation.node.as_str());
        let names = of_pods.chain(of_pools).chain(reports.keys().map(String::as_str));
        let names: BTreeSet<&str> = names.collect();
        let state = |name: &str| NodeState::of(self.nodes.get("", name).as_deref());
        names.into_iter().map(|name| (name.to_owned(), state(name))).collect()
    }
}

/// Whether a pod has ended for good.
fn has_ended(pod: &NetworkedPod) -> bool {
    ["Succeeded", "Failed"].contains(&pod.status.phase.as_str())
}

/// A change of what the loop reads of a pod adds its `PodConfig`s, before and now.
fn wake_by_pod(change: &Change<NetworkedPodKind>, queue: &Queue) {
    let part = |pod: &NetworkedPod| {
        (config_of(pod), pod.uid().to_owned(), pod.spec.clone(), has_ended(pod), pod.is_terminating())
    };
    if change.object_if(part).is_none() {
        return;
    }
    for pod in [&change.old, &change.new].into_iter().flatten() {
        if let Some(key) = config_of(pod) {
            queue.add(key, Priority::Change);
        }
    }
}

/// A `PodConfig` that comes, changes its spec, is deleted or has gone adds the others of its namespace: they share pools.
fn wake_siblings(own_configs: &OwnConfigs, queue: &Arc<Queue>) {
    let (shown, queue) = (own_configs.clone(), Arc::clone(queue));
    own_configs.configs.subscribe(move |change| {
        let part =
            |config: &PodConfig| (config.spec.clone(), config.is_terminating(), config.uid().to_owned());
        let Some(config) = change.object_if(part) else { return };
        shown.wake(config.namespace(), config.name(), &queue);
    });
}

/// Adds the `PodConfig`s that something concerns, or what is left where there are none.
fn wake(concerns: &Concerns, own_configs: &OwnConfigs, queue: &Queue) {
    for namespace in &concerns.namespaces {
        own_configs.wake(namespace, "", queue);
    }
    if concerns.all {
        own_configs.configs.keys().into_iter().for_each(|key| queue.add(key, Priority::Change));
    }
}

/// Declares the store of nodes. A node that becomes ready, is not any more, or is gone, adds the `PodConfig`s that have
/// something there.
fn declare_nodes(
    set: &mut StoreSet<'_>,
    own_configs: &OwnConfigs,
    cache: &Arc<Cache>,
) -> Arc<Store<NodeKind>> {
    let (own_configs, cache) = (own_configs.clone(), Arc::clone(cache));
    // One that seems not to exist is read before it is not waited for.
    let nodes = set.store::<NodeKind>(&Selection::ALL).requests("get");
    nodes
        .on_change(move |change, queue| {
            let Some(node) = change.object_if(|node| NodeState::of(Some(node))) else { return };
            let mut namespaces = cache.namespaces_on(node.name());
            if change.new.is_none() {
                // Its report is removed under the key of no namespace.
                namespaces.insert(String::new());
            }
            wake(&Concerns { namespaces, ..Concerns::default() }, &own_configs, queue);
        })
        .get()
}

/// Declares the store of the records, and keeps in memory what they say.
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
            // The reconcile that has written it has planned with it, and frees nothing that another one waits for.
            return;
        }
        if concerns == Concerns::default() && change.origin.is_none() && change.new.is_none() {
            // What cannot be read was removed, so that it can be made again.
            concerns.all = true;
        }
        wake(&concerns, &own_configs, &queue);
    });
    store
}
