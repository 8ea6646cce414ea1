//! Amounts of resources: what Instances use, and how much there is.

use std::collections::BTreeMap;

use crate::api::template::{EnvironmentResources, TemplateSpec};
use crate::api::tenant::PersonalWorkspace;
use crate::api::workspace::WorkspaceQuota;
use crate::api::{Quantity, RawQuantity};

/// What Instances use. Processors count in full, although only a share of them is reserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    instances: i64,
    cpu: Quantity,
    memory: Quantity,
    disk: Quantity,
    others: BTreeMap<String, Quantity>,
}

impl Usage {
    /// Counts an Instance; of one whose Template is gone nobody knows what it uses.
    pub fn add(&mut self, template: Option<&TemplateSpec>) {
        self.instances += 1;
        for environment in template.iter().flat_map(|template| &template.environment_list) {
            self.add_resources(&environment.resources);
        }
    }

    fn add_resources(&mut self, resources: &EnvironmentResources) {
        self.cpu = self.cpu.plus(&Quantity::from_int(resources.cpu));
        self.memory = self.memory.plus(&amount(&resources.memory));
        if let Some(disk) = &resources.disk {
            self.disk = self.disk.plus(&amount(disk));
        }
        for (name, other) in &resources.other_resources {
            let sum = self.others.entry(name.clone()).or_default();
            *sum = sum.plus(&amount(other));
        }
    }
}

/// How much may be used at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    instances: i64,
    cpu: &'a RawQuantity,
    memory: &'a RawQuantity,
    disk: Option<&'a RawQuantity>,
    others: &'a BTreeMap<String, RawQuantity>,
}

impl<'a> From<&'a WorkspaceQuota> for Limits<'a> {
    fn from(quota: &'a WorkspaceQuota) -> Self {
        Self {
            instances: quota.instances,
            cpu: &quota.cpu,
            memory: &quota.memory,
            disk: quota.disk.as_ref(),
            others: &quota.other_resources,
        }
    }
}

impl<'a> From<&'a PersonalWorkspace> for Limits<'a> {
    fn from(share: &'a PersonalWorkspace) -> Self {
        Self {
            instances: share.instances,
            cpu: &share.cpu,
            memory: &share.memory,
            disk: share.disk.as_ref(),
            others: &share.other_resources,
        }
    }
}

impl Limits<'_> {
    /// Each limit that is exceeded, as `CPU (9 > 8)`. A limit of nothing is none, except for extended
    /// resources: of those there is only what the Workspace names.
    #[must_use]
    pub fn exceeded_by(&self, usage: &Usage) -> Vec<String> {
        let mut exceeded = Vec::new();
        if self.instances > 0 && usage.instances > self.instances {
            exceeded.push(format!("Instances ({} > {})", usage.instances, self.instances));
        }
        let disk = self.disk.map_or(Quantity::ZERO, amount);
        let limits = [
            ("CPU", &usage.cpu, amount(self.cpu)),
            ("Memory", &usage.memory, amount(self.memory)),
            ("Disk", &usage.disk, disk),
        ];
        for (name, used, limit) in limits {
            if !limit.is_zero() && *used > limit {
                exceeded.push(format!("{name} ({used} > {limit})"));
            }
        }
        for (name, used) in &usage.others {
            let limit = self.other(name);
            if *used > limit {
                exceeded.push(format!("{name} ({used} > {limit})"));
            }
        }
        exceeded
    }

    /// Workspaces name extended resources as containers do, or as a `ResourceQuota` does.
    fn other(&self, name: &str) -> Quantity {
        let limit = self.others.get(name).or_else(|| self.others.get(&format!("requests.{name}")));
        limit.map_or(Quantity::ZERO, amount)
    }
}

/// The amount, or nothing where no schema would have let the text pass.
fn amount(raw: &RawQuantity) -> Quantity {
    raw.parse().unwrap_or_default()
}
