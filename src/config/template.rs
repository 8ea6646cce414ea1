//! The keys of the template loop, and the settings of requirements.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;
use super::keys::keys;
use super::reader::{Reader, read};
use crate::api::quantity::Quantity;
use crate::api::reference::GenericRef;
use crate::api::requirements::{NodeRoom, Pool, Settings};

keys! {
    /// The template loop.
    pub struct TemplateConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Templates that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 4,
        /// The node pools that an autoscaler enlarges, even from zero nodes, each with `name`, and the `labels` and
        /// `allocatable` amounts of one of its nodes. A Template that needs such a node is `Ready` and reports that it
        /// waits for a node. A node for virtual machines has the label `kubevirt.io/schedulable: "true"`.
        pub node_pools: Vec<NodePool>,
    }
}

/// A node pool that an autoscaler enlarges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodePool {
    /// The name of the pool, for conditions and warnings.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub name: String,
    /// The labels of its nodes, for node selectors.
    #[serde(default)]
    #[schemars(transform = formats::labels)]
    pub labels: BTreeMap<String, String>,
    /// The amounts that one of its nodes offers to pods, such as `{cpu: "16", memory: 60Gi}`; a resource that is left
    /// out counts as 0.
    #[schemars(with = "BTreeMap<String, String>", extend("additionalProperties" = {"type": "string", "format": formats::QUANTITY.name}))]
    pub allocatable: BTreeMap<String, Quantity>,
}

impl Reader<'_> {
    /// Returns the settings that determine which parts of a cluster environments require.
    pub fn requirements(&mut self) -> Settings {
        let has_my_drives = *read!(self, controllers.tenant.enabled);
        let class = read!(self, controllers.tenant.my_drive.storage_class_name);
        let gateway_api = read!(self, controllers.instance.gateway_api);
        let node_pools = read!(self, controllers.template.node_pools);
        let pool = |pool: &NodePool| Pool {
            name: pool.name.clone(),
            node: NodeRoom {
                labels: pool.labels.clone(),
                allocatable: pool.allocatable.clone(),
                is_cordoned: false,
                taints: BTreeSet::new(),
            },
        };
        let gateways = gateway_api.parent_refs.iter().filter(|_| gateway_api.enabled);
        Settings {
            pools: node_pools.iter().map(pool).collect(),
            my_drive_class: has_my_drives.then(|| class.clone()),
            gateways: gateways.map(|gateway| GenericRef::new(&gateway.namespace, &gateway.name)).collect(),
        }
    }
}
