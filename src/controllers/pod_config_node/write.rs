//! The `ConfigMap` of the report.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::controllers::pod_network::{RECORD, REPORT, difference};
use crate::kinds::{NetworkRecord, NetworkRecordKind, NodeKind};
use crate::runtime::error::with_sources;
use crate::runtime::store::Store;
use crate::runtime::watch;

/// Writes the report of a node.
#[derive(Clone)]
pub struct ReportWriter {
    /// A client that sends writes without the lease, because each node writes its own report.
    pub client: Client,
    /// The stored report.
    pub store: Arc<Store<NetworkRecordKind>>,
    /// The namespace of the daemon.
    pub namespace: String,
    /// The name of the `ConfigMap`.
    pub name: String,
    /// The name of the node.
    pub node: String,
}

impl ReportWriter {
    /// The stored report.
    pub fn stored(&self) -> Option<Arc<NetworkRecord>> {
        self.store.get(&self.namespace, &self.name)
    }

    /// Writes the differences. The error is a sentence.
    pub async fn write(self, data: BTreeMap<String, String>) -> Result<(), String> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let written = match self.stored() {
            Some(stored) => {
                let patch = Patch::Merge(patch(&stored, &data));
                api.patch(&self.name, &PatchParams::default(), &patch).await
            }
            None => api.create(&PostParams::default(), &self.first(data).await?).await,
        };
        let failed = |error: kube::Error| {
            let reason = match error {
                kube::Error::Api(status) => status.message,
                other => with_sources(&other),
            };
            format!("cannot write ConfigMap {}/{}: {reason}", self.namespace, self.name)
        };
        let written = serde_json::to_value(written.map_err(failed)?).map_err(|error| error.to_string())?;
        // The watch shows the write only a moment later.
        if let Ok(written) = serde_json::from_value::<NetworkRecord>(written) {
            self.store.record(written, "podConfigNode");
        }
        Ok(())
    }

    /// The first report of the node. The Node owns it, so it is deleted with the Node.
    async fn first(&self, data: BTreeMap<String, String>) -> Result<ConfigMap, String> {
        let node = watch::get::<NodeKind>(self.client.clone(), "", &self.node).await;
        let node =
            node.map_err(|error| format!("cannot read Node {}: {}", self.node, with_sources(&error)))?;
        let node = node.ok_or_else(|| {
            format!(
                "Node {} does not exist: set controllers.podConfigNode.nodeName to the name of this node",
                self.node
            )
        })?;
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node.name(), "uid": node.uid()});
        let metadata = json!({
            "name": self.name, "namespace": self.namespace, "labels": {RECORD: REPORT}, "ownerReferences": [owner],
        });
        let object = json!({"metadata": metadata, "data": data});
        serde_json::from_value(object).map_err(|error| error.to_string())
    }
}

/// The patch that updates a stored report, for the version that was seen.
fn patch(stored: &NetworkRecord, data: &BTreeMap<String, String>) -> Value {
    let (uid, version) = (stored.uid(), stored.resource_version());
    let metadata = json!({"uid": uid, "resourceVersion": version, "labels": {RECORD: REPORT}});
    json!({"metadata": metadata, "data": difference(&stored.spec, data)})
}
