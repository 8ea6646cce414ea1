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
    /// A client that sends writes without the lease: each node has a report of its own.
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
    /// The report as it is stored.
    pub fn stored(&self) -> Option<Arc<NetworkRecord>> {
        self.store.get(&self.namespace, &self.name)
    }

    /// Writes what differs. The error is a sentence.
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
        // The watch shows it only a moment later.
        if let Ok(written) = serde_json::from_value::<NetworkRecord>(written) {
            self.store.record(written, "podConfigNode");
        }
        Ok(())
    }

    /// The first report of the node, which ends with it.
    async fn first(&self, data: BTreeMap<String, String>) -> Result<ConfigMap, String> {
        let node = watch::get::<NodeKind>(self.client.clone(), "", &self.node).await;
        let node =
            node.map_err(|error| format!("cannot read Node {}: {}", self.node, with_sources(&error)))?;
        let node = node.ok_or_else(|| {
            format!("there is no Node {}: controllers.podConfigNode.nodeName has to be its name", self.node)
        })?;
        let object = json!({
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": {RECORD: REPORT},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": node.name(), "uid": node.uid()},
                ],
            },
            "data": data,
        });
        serde_json::from_value(object).map_err(|error| error.to_string())
    }
}

/// The patch that makes a stored report what it should be, for the version that was seen.
fn patch(stored: &NetworkRecord, data: &BTreeMap<String, String>) -> Value {
    json!({
        "metadata": {
            "uid": stored.uid(),
            "resourceVersion": stored.resource_version(),
            "labels": {RECORD: REPORT},
        },
        "data": difference(&stored.spec, data),
    })
}
