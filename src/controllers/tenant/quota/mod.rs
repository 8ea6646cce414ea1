//! The quota of a Tenant: its own quota, or the sum of the quotas of its Workspaces.

use std::collections::BTreeMap;

use super::enrolment::Enrolment;
use super::observe::Observed;
use crate::api::quantity::{Quantity, RawQuantity};
use crate::api::reason;
use crate::api::tenant::TenantQuota;
use crate::api::workspace::{REQUESTS, WorkspaceQuota, limit_name};
use crate::config::{COUNT, QuotaCaps, TenantConfig};
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The component of the quota: a part of the component of the namespace.
pub const QUOTA: Component = Component::Within("personal-namespace", "quota");

/// The quota of a Tenant: the amounts that it may use at the same time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quota {
    /// Processor cores.
    pub cpu: Quantity,
    /// Memory.
    pub memory: Quantity,
    /// The number of Instances.
    pub instances: i64,
    /// Storage that may be requested; `None` for no limit.
    pub disk: Option<Quantity>,
    /// Extended resources.
    pub other_resources: BTreeMap<String, Quantity>,
}

/// The name of the storage limit for claims in a `ResourceQuota`.
const STORAGE: &str = "requests.storage";

/// The quota of a Tenant, and the problems of unreadable Workspaces and amounts. The quota in its spec takes
/// precedence. Otherwise it is the sum of the quotas of its Workspaces and of its personal workspace, limited by the
/// configured caps. While a part cannot be read, the quota is not reduced.
pub fn tenant_quota(
    observed: &Observed,
    enrolment: &Enrolment<'_>,
    config: &TenantConfig,
) -> (Quota, Vec<Problem>) {
    let (mut sum, mut problems) = (Quota::default(), Vec::new());
    let tenant = &observed.tenant;
    if let Some(own) = &tenant.spec.quota {
        let TenantQuota { cpu, memory, instances } = own.clone();
        let quota = WorkspaceQuota { cpu, memory, instances, ..WorkspaceQuota::default() };
        sum.add(&format!("Tenant {}: spec.quota", tenant.name()), &quota, &mut problems);
        let quota = if problems.is_empty() { sum } else { sum.at_least_as_before(observed) };
        return (quota, problems);
    }
    for (workspace, _) in enrolment.enrolled() {
        let name = workspace.name();
        match &workspace.malformed {
            None => sum.add(&format!("Workspace {name}: spec.quota"), &workspace.spec.quota, &mut problems),
            Some(fault) => {
                let message = format!("Workspace {name} cannot be read: {fault}; {UNCHANGED}");
                problems.push(Problem::fault(QUOTA, reason::INVALID_WORKSPACE, message));
            }
        }
    }
    let personal = tenant.spec.personal_workspace.as_ref();
    if let Some(quota) = personal.filter(|_| config.personal_workspace.enabled) {
        let whose = format!("Tenant {}: spec.personalWorkspace", tenant.name());
        sum.add(&whose, quota, &mut problems);
    }
    let quota = if problems.is_empty() { sum } else { sum.at_least_as_before(observed) };
    // The Workspaces report their own unknown resources. An unknown resource was never limited, so the rest applies as
    // specified.
    let unknown = personal.iter().flat_map(|quota| quota.unknown_resources("spec.personalWorkspace"));
    problems.extend(unknown.map(|message| Problem::fault(QUOTA, reason::INVALID_QUOTA, message)));
    (quota.capped(&config.quota_caps), problems)
}

/// The end of messages about an unreadable part of a quota.
const UNCHANGED: &str = "until this is fixed, the quota of the Tenant is not reduced";

impl Quota {
    /// Adds a part. An unreadable amount counts as zero.
    fn add(&mut self, whose: &str, part: &WorkspaceQuota, problems: &mut Vec<Problem>) {
        let mut read = |name: &str, raw: &RawQuantity| match raw.parse() {
            Ok(quantity) if !quantity.is_negative() => quantity,
            _ => {
                let message = format!(
                    "{whose}.{name} is {:?}, but an amount such as 500m or 4Gi is expected; {UNCHANGED}",
                    raw.as_str()
                );
                problems.push(Problem::fault(QUOTA, reason::INVALID_QUANTITY, message));
                Quantity::ZERO
            }
        };
        self.cpu = self.cpu.plus(&read("cpu", &part.cpu));
        self.memory = self.memory.plus(&read("memory", &part.memory));
        self.instances = self.instances.saturating_add(part.instances.max(0));
        if let Some(disk) = &part.disk {
            self.disk = Some(self.disk.clone().unwrap_or_default().plus(&read("disk", disk)));
        }
        let possible = part.other_resources.iter().filter(|(name, _)| limit_name(name).is_some());
        for (name, raw) in possible {
            let amount = read(&format!("otherResources.{name}"), raw);
            let sum = self.other_resources.entry(name.clone()).or_default();
            *sum = sum.plus(&amount);
        }
    }

    /// The larger of this quota and the Tenant's current one. Resources without a limit stay unlimited.
    fn at_least_as_before(mut self, observed: &Observed) -> Self {
        let status = &observed.tenant.status.quota;
        let before = |raw: &RawQuantity| raw.parse().unwrap_or_default();
        // Of two equal amounts, the spelling of the last one counts.
        self.cpu = before(&status.cpu).max(self.cpu);
        self.memory = before(&status.memory).max(self.memory);
        self.instances = self.instances.max(status.instances);
        let existing = observed.quota();
        let Some(existing) = existing.filter(|quota| quota.is_controlled_by(&observed.tenant)) else {
            return self;
        };
        let hard = existing.spec.hard.iter();
        let mut hard: BTreeMap<&str, Quantity> =
            hard.filter_map(|(name, text)| Some((name.as_str(), text.parse().ok()?))).collect();
        let disk = self.disk.take().unwrap_or_default();
        self.disk = hard.remove(STORAGE).map(|before| disk.max(before));
        let named_above = Self::default().hard();
        let others = hard.into_iter().filter(|(name, _)| {
            // Object counts are not resources of the Workspaces.
            !named_above.contains_key(*name) && !name.starts_with(COUNT)
        });
        let others: BTreeMap<String, Quantity> = others
            .map(|(name, before)| {
                let plain = name.strip_prefix(REQUESTS).unwrap_or(name);
                let now = self.other_resources.get(plain).or_else(|| self.other_resources.get(name));
                (name.to_owned(), now.cloned().unwrap_or_default().max(before))
            })
            .collect();
        Self { other_resources: others, ..self }
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

    /// The quota in the form of the status.
    pub fn status(&self) -> TenantQuota {
        let (cpu, memory) = (RawQuantity::from(&self.cpu), RawQuantity::from(&self.memory));
        TenantQuota { cpu, memory, instances: self.instances }
    }

    /// The limits of the `ResourceQuota`.
    pub fn hard(&self) -> BTreeMap<String, Quantity> {
        let mut hard = BTreeMap::from([
            ("limits.cpu".to_owned(), self.cpu.clone()),
            ("limits.memory".to_owned(), self.memory.clone()),
            ("requests.cpu".to_owned(), self.cpu.clone()),
            ("requests.memory".to_owned(), self.memory.clone()),
            ("count/instances.crownlabs.polito.it".to_owned(), Quantity::from_int(self.instances)),
        ]);
        hard.extend(self.disk.clone().map(|disk| (STORAGE.to_owned(), disk)));
        // Kubernetes limits extended resources only by names with the prefix `requests.`.
        let others = self.other_resources.iter();
        hard.extend(others.filter_map(|(name, amount)| Some((limit_name(name)?, amount.clone()))));
        hard
    }
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The limits. Equal amounts keep the spelling in `current`, because the API server normalises quantities.
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
