//! What a Tenant may use (05 §6, §17).

use std::collections::BTreeMap;

use super::enrolment::Enrolment;
use super::observe::Observed;
use crate::api::quantity::{Quantity, RawQuantity};
use crate::api::tenant::TenantQuota;
use crate::config::{QuotaCaps, TenantConfig};
use crate::runtime::problem::Problem;

/// The component of quotas: a part of that of the namespace.
pub const QUOTA: &str = "personal-namespace/quota";

/// What a Tenant may use at the same time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Share {
    /// Processor cores.
    pub cpu: Quantity,
    /// Memory.
    pub memory: Quantity,
    /// Instances.
    pub instances: i64,
    /// Storage that may be requested; `None` where nobody limits it.
    pub disk: Option<Quantity>,
    /// Extended resources.
    pub other_resources: BTreeMap<String, Quantity>,
}

/// A part of a sum, as it stands in a Workspace or a Tenant.
struct Part<'a> {
    whose: String,
    cpu: &'a RawQuantity,
    memory: &'a RawQuantity,
    instances: i64,
    disk: Option<&'a RawQuantity>,
    other_resources: Option<&'a BTreeMap<String, RawQuantity>>,
}

/// The share of a Tenant, and what of it cannot be read (that counts as nothing).
pub fn share(observed: &Observed, enrolment: &Enrolment<'_>, config: &TenantConfig) -> (Share, Vec<Problem>) {
    let mut problems = Vec::new();
    let tenant = &observed.tenant;
    if let Some(own) = &tenant.spec.quota {
        let part = Part {
            whose: format!("Tenant {}: spec.quota", tenant.name()),
            cpu: &own.cpu,
            memory: &own.memory,
            instances: own.instances,
            disk: None,
            other_resources: None,
        };
        let mut share = Share::default();
        share.add(&part, &mut problems);
        return (share, problems);
    }
    let mut share = Share::default();
    for (workspace, _) in enrolment.enrolled() {
        let quota = &workspace.spec.quota;
        let part = Part {
            whose: format!("Workspace {}: spec.quota", workspace.name()),
            cpu: &quota.cpu,
            memory: &quota.memory,
            instances: quota.instances,
            disk: quota.disk.as_ref(),
            other_resources: Some(&quota.other_resources),
        };
        share.add(&part, &mut problems);
    }
    if let Some(personal) =
        tenant.spec.personal_workspace.as_ref().filter(|_| config.personal_workspace.enabled)
    {
        let part = Part {
            whose: format!("Tenant {}: spec.personalWorkspace", tenant.name()),
            cpu: &personal.cpu,
            memory: &personal.memory,
            instances: personal.instances,
            disk: personal.disk.as_ref(),
            other_resources: Some(&personal.other_resources),
        };
        share.add(&part, &mut problems);
    }
    (share.capped(&config.quota_caps), problems)
}

impl Share {
    fn add(&mut self, part: &Part<'_>, problems: &mut Vec<Problem>) {
        let mut read = |name: &str, raw: &RawQuantity| match raw.parse() {
            Ok(quantity) if !quantity.is_negative() => quantity,
            _ => {
                problems.push(Problem {
                    component: QUOTA.to_owned(),
                    reason: "InvalidQuantity",
                    message: format!(
                        "{}.{name} is {:?}, which counts as nothing: an amount such as 500m or 4Gi is expected",
                        part.whose,
                        raw.as_str()
                    ),
                    waiting: false,
                });
                Quantity::ZERO
            }
        };
        self.cpu = self.cpu.plus(&read("cpu", part.cpu));
        self.memory = self.memory.plus(&read("memory", part.memory));
        self.instances = self.instances.saturating_add(part.instances.max(0));
        if let Some(disk) = part.disk {
            self.disk = Some(self.disk.clone().unwrap_or_default().plus(&read("disk", disk)));
        }
        for (name, raw) in part.other_resources.into_iter().flatten() {
            let amount = read(&format!("otherResources.{name}"), raw);
            let sum = self.other_resources.entry(name.clone()).or_default();
            *sum = sum.plus(&amount);
        }
    }

    fn capped(mut self, caps: &QuotaCaps) -> Self {
        if caps.cpu > 0 {
            self.cpu = self.cpu.capped_at(Quantity::from_int(whole(caps.cpu)));
        }
        if !caps.memory.is_zero() {
            self.memory = self.memory.capped_at(caps.memory.clone());
        }
        if caps.instances > 0 {
            self.instances = self.instances.min(whole(caps.instances));
        }
        self
    }

    /// As it stands in the status.
    pub fn status(&self) -> TenantQuota {
        TenantQuota {
            cpu: RawQuantity::from(&self.cpu),
            memory: RawQuantity::from(&self.memory),
            instances: self.instances,
        }
    }

    /// As the limits of a `ResourceQuota`.
    pub fn hard(&self) -> BTreeMap<String, Quantity> {
        let mut hard = BTreeMap::from([
            ("limits.cpu".to_owned(), self.cpu.clone()),
            ("limits.memory".to_owned(), self.memory.clone()),
            ("requests.cpu".to_owned(), self.cpu.clone()),
            ("requests.memory".to_owned(), self.memory.clone()),
            ("count/instances.crownlabs.polito.it".to_owned(), Quantity::from_int(self.instances)),
        ]);
        hard.extend(self.disk.clone().map(|disk| ("requests.storage".to_owned(), disk)));
        // A bare name of an extended resource limits nothing (05 §17).
        let others = self.other_resources.iter();
        hard.extend(others.map(|(name, amount)| {
            let prefixed =
                if name.starts_with("requests.") { name.clone() } else { format!("requests.{name}") };
            (prefixed, amount.clone())
        }));
        hard
    }
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The limits in the words of `current` where that is the same amount: the API server respells them.
pub fn spelled(
    wanted: &BTreeMap<String, Quantity>,
    current: Option<&BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    wanted
        .iter()
        .map(|(name, amount)| {
            let as_is = current.and_then(|current| current.get(name));
            let same = as_is.filter(|text| text.parse::<Quantity>().is_ok_and(|found| found == *amount));
            (name.clone(), same.cloned().unwrap_or_else(|| amount.to_string()))
        })
        .collect()
}

#[cfg(test)]
mod tests;
