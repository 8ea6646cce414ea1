//! The loop: its stores and its main function.

use std::sync::Arc;

use tokio::sync::Notify;

use super::plan::Settings;
use super::running::Running;
use super::write::ReportWriter;
use crate::clients::cri::{DEADLINE, Runtime};
use crate::config::{PodConfigNodeConfig, read};
use crate::controllers::pod_network::{POOL, RECORD, report_name};
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::kinds::NetworkRecordKind;
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The environment variable with the name of the node, used if the configuration does not set it.
const NODE_NAME: &str = "NODE_NAME";

/// Creates the links of the pods on this node.
pub struct PodConfigNodeLoop {
    /// The records of all pools.
    pub(super) pools: Arc<Store<NetworkRecordKind>>,
    /// Notified of each change of a pool or of the report.
    pub(super) changed: Arc<Notify>,
    pub(super) report: Option<ReportWriter>,
    pub(super) runtime: Arc<Runtime>,
    pub(super) settings: Arc<Settings>,
    pub(super) config: PodConfigNodeConfig,
}

impl ReplicaDefinition for PodConfigNodeLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = read!(setup.config, controllers.pod_config_node).clone();
        let namespace = read!(setup.config, leader_election.namespace).clone();
        let from_environment = || std::env::var(NODE_NAME).unwrap_or_default();
        let node = if config.node_name.is_empty() { from_environment() } else { config.node_name.clone() };
        anyhow::ensure!(
            !node.is_empty() || setup.ungated.is_none(),
            "the loop podConfigNode does not know the name of its node: set controllers.podConfigNode.nodeName, or the \
             variable {NODE_NAME} through the downward API (spec.nodeName)"
        );
        let changed = Arc::new(Notify::new());
        let name = report_name(&node);
        let mut store = |selection: Selection| {
            let changed = Arc::clone(&changed);
            let store = set.store::<NetworkRecordKind>(&selection.within(namespace.clone()));
            store.on_change(move |_, _| changed.notify_one()).get()
        };
        let pools = store(Selection::label(RECORD, POOL));
        let store = store(Selection::named(name.clone()));
        let writer = |client| ReportWriter { client, store, namespace, name, node: node.clone() };
        let report = setup.ungated.clone().map(writer);
        let settings = Settings { node, allowed_bridges: config.allowed_bridges.iter().cloned().collect() };
        let runtime = Arc::new(Runtime::new(&config.runtime_endpoint, DEADLINE));
        Ok(Self { pools, changed, report, runtime, settings: Arc::new(settings), config })
    }
}

impl ReplicaLoop for PodConfigNodeLoop {
    const NAME: &'static str = "podConfigNode";

    async fn run(self, health: Health, stop: Stop) {
        // The future may be dropped at any point: the next process recognises and finishes unfinished work.
        tokio::select! {
            () = stop.asked() => {}
            () = Running::new(self, health).run() => {}
        }
    }
}
