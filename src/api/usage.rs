//! What Instances use of the resources of a Workspace, and the limits of its quota: for the webhook that refuses what is
//! above them, and for the gauges.

use std::collections::BTreeMap;

use super::quantity::{Quantity, RawQuantity};
use super::template::{EnvironmentResources, TemplateSpec};
use super::workspace::WorkspaceQuota;

/// The sum of the resources of some Instances. CPUs count in full, whatever `reservedCPUPercentage` is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of Instances.
    pub instances: i64,
    /// Processor cores.
    pub cpu: Quantity,
    /// Memory, in bytes.
    pub memory: Quantity,
    disk: Quantity,
    others: BTreeMap<String, Quantity>,
}

impl Usage {
    /// Adds an Instance. Without its Template, only the number of Instances grows.
    pub fn add(&mut self, template: Option<&TemplateSpec>) {
        self.instances += 1;
        self.add_running(template);
    }

    /// Adds what an Instance uses that is counted already.
    pub fn add_running(&mut self, template: Option<&TemplateSpec>) {
        for environment in template.iter().flat_map(|template| &template.environment_list) {
            self.add_resources(&environment.resources);
        }
    }

    fn add_resources(&mut self, resources: &EnvironmentResources) {
        self.cpu = self.cpu.plus(&Quantity::from_int(resources.cpu.max(0)));
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

/// The resources that may be used at the same time.
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

impl Limits<'_> {
    /// The limits that are exceeded, each as a text such as `CPU (9 > 8)`. A limit of zero means no limit,
    /// except for extended resources, of which only what the quota names may be used.
    pub fn exceeded_by(&self, usage: &Usage) -> Vec<String> {
        let mut exceeded = Vec::new();
        if self.instances > 0 && usage.instances > self.instances {
            exceeded.push(format!("Instances ({} > {})", usage.instances, self.instances));
        }
        let disk = self.disk.map_or(Quantity::ZERO, quantity);
        let limits = [
            ("CPU", &usage.cpu, quantity(self.cpu)),
            ("Memory", &usage.memory, quantity(self.memory)),
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

    /// The limit of an extended resource, which the quota names as containers do (`nvidia.com/gpu`) or as a
    /// `ResourceQuota` does (`requests.nvidia.com/gpu`).
    fn other(&self, name: &str) -> Quantity {
        let limit = self.others.get(name).or_else(|| self.others.get(&format!("requests.{name}")));
        limit.map_or(Quantity::ZERO, quantity)
    }
}

/// The amount that an Instance uses; one that asks for less than nothing uses nothing.
fn amount(raw: &RawQuantity) -> Quantity {
    Some(quantity(raw)).filter(|amount| !amount.is_negative()).unwrap_or_default()
}

/// The quantity, or zero if it cannot be read, which the schema does not allow.
fn quantity(raw: &RawQuantity) -> Quantity {
    raw.parse().unwrap_or_default()
}
