//! The resources of a Workspace that Instances use, and the limits of its quota. The webhook rejects Instances above
//! the limits, and gauges export the usage.

use std::collections::BTreeMap;
use std::fmt;

use super::quantity::{Quantity, RawQuantity};
use super::template::TemplateSpec;
use super::workspace::{REQUESTS, WorkspaceQuota};

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
    /// Adds an Instance. If its Template does not exist, only the number of Instances grows.
    pub fn add(&mut self, template: Option<&TemplateSpec>) {
        self.instances += 1;
        self.add_running(template);
    }

    /// Adds a stopped Instance, which keeps its persistent disks.
    pub fn add_stopped(&mut self, template: Option<&TemplateSpec>) {
        self.instances += 1;
        let environments = template.iter().flat_map(|template| &template.environment_list);
        for environment in environments.filter(|environment| environment.persistent) {
            if let Some(disk) = &environment.resources.disk {
                self.disk = self.disk.plus(&amount(disk));
            }
        }
    }

    /// Adds the resources of an Instance that is already included in the number of Instances.
    pub fn add_running(&mut self, template: Option<&TemplateSpec>) {
        for environment in template.iter().flat_map(|template| &template.environment_list) {
            let resources = &environment.resources;
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
}

/// A resource that a quota limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// The number of Instances.
    Instances,
    /// Processor cores.
    Cpu,
    /// Memory, in bytes.
    Memory,
    /// Storage, in bytes.
    Disk,
    /// An extended resource, by its name in a container.
    Other(String),
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Instances => "Instances",
            Self::Cpu => "CPU",
            Self::Memory => "Memory",
            Self::Disk => "Disk",
            Self::Other(name) => name,
        })
    }
}

/// The usage of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The limited resource.
    pub measure: Measure,
    /// The used amount.
    pub used: Quantity,
    /// The allowed amount; `None` if there is no limit.
    pub limit: Option<Quantity>,
}

impl Share {
    /// Whether the used amount exceeds the limit.
    pub fn is_exceeded(&self) -> bool {
        self.limit.as_ref().is_some_and(|limit| self.used > *limit)
    }

    /// Reads a limit that is exceeded, as it is formatted: `CPU (9 > 8)`.
    pub fn parse(text: &str) -> Option<Self> {
        let (measure, amounts) = text.strip_suffix(')')?.split_once(" (")?;
        let (used, limit) = amounts.split_once(" > ")?;
        let known = [Measure::Instances, Measure::Cpu, Measure::Memory, Measure::Disk];
        let named = known.into_iter().find(|known| known.to_string() == measure);
        let measure = named.unwrap_or_else(|| Measure::Other(measure.to_owned()));
        Some(Self { measure, used: used.parse().ok()?, limit: Some(limit.parse().ok()?) })
    }

    /// Formats the limits that are exceeded: `CPU (9 > 8), Memory (5Gi > 4Gi)`.
    pub fn list(exceeded: &[Self]) -> String {
        exceeded.iter().map(Self::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// Formats a limit that is exceeded: `CPU (9 > 8)`.
impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measure, used, limit } = self;
        match limit {
            Some(limit) => write!(formatter, "{measure} ({used} > {limit})"),
            None => write!(formatter, "{measure} ({used})"),
        }
    }
}

/// The resources that one Instance of a Template uses. The resources that every quota limits come first.
pub fn size(template: &TemplateSpec) -> Vec<Share> {
    let (mut usage, unlimited) = (Usage::default(), WorkspaceQuota::default());
    usage.add(Some(template));
    let shares = unlimited.shares(&usage).into_iter();
    let is_resource = |share: &Share| share.measure != Measure::Instances && !share.used.is_zero();
    shares.filter(is_resource).map(|share| Share { limit: None, ..share }).collect()
}

impl WorkspaceQuota {
    /// The usage of each limit. A limit of zero means no limit, except for extended resources, which may only be used
    /// if the quota names them. Extended resources come last: the used ones, then the ones that are only limited.
    pub fn shares(&self, usage: &Usage) -> Vec<Share> {
        let limit = |amount: Quantity| Some(amount).filter(|amount| !amount.is_zero());
        let instances = Some(Quantity::from_int(self.instances)).filter(|_| self.instances > 0);
        let disk = self.disk.as_ref().map_or(Quantity::ZERO, quantity);
        let fixed = [
            (Measure::Instances, Quantity::from_int(usage.instances), instances),
            (Measure::Cpu, usage.cpu.clone(), limit(quantity(&self.cpu))),
            (Measure::Memory, usage.memory.clone(), limit(quantity(&self.memory))),
            (Measure::Disk, usage.disk.clone(), limit(disk)),
        ];
        let used = usage
            .others
            .iter()
            .map(|(name, used)| (Measure::Other(name.clone()), used.clone(), Some(self.other(name))));
        let unused = self.other_resources.iter().filter_map(|(name, limit)| {
            let name = name.strip_prefix(REQUESTS).unwrap_or(name);
            let is_used = usage.others.contains_key(name);
            (!is_used).then(|| (Measure::Other(name.to_owned()), Quantity::ZERO, Some(quantity(limit))))
        });
        let all = fixed.into_iter().chain(used).chain(unused);
        all.map(|(measure, used, limit)| Share { measure, used, limit }).collect()
    }

    /// The limit of an extended resource. The quota contains it under its name in containers (`nvidia.com/gpu`) or in
    /// a `ResourceQuota` (`requests.nvidia.com/gpu`).
    fn other(&self, name: &str) -> Quantity {
        let limits = &self.other_resources;
        let limit = limits.get(name).or_else(|| limits.get(&format!("{REQUESTS}{name}")));
        limit.map_or(Quantity::ZERO, quantity)
    }
}

/// The amount that an Instance uses; zero for a negative amount.
fn amount(raw: &RawQuantity) -> Quantity {
    Quantity::ZERO.max(quantity(raw))
}

/// The quantity, or zero if it cannot be parsed. The schema does not allow such a quantity.
fn quantity(raw: &RawQuantity) -> Quantity {
    raw.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_limit_is_read_as_it_is_formatted() {
        for text in ["Instances (2 > 1)", "CPU (6 > 5500m)", "Memory (7Gi > 7G)", "nvidia.com/gpu (2 > 0)"] {
            let share = Share::parse(text).expect(text);
            assert!(share.to_string() == text && share.is_exceeded(), "{share:?}");
        }
        assert_eq!(Share::parse("CPU (6 > 5)").map(|share| share.measure), Some(Measure::Cpu));
        for text in ["", "CPU", "CPU (6)", "CPU (x > 5)", "CPU (6 > 5"] {
            assert_eq!(Share::parse(text), None, "{text}");
        }
    }
}
