//! The amounts of a quota: of the Instances that run, and of those that are stopped.

use std::fmt;

use super::{Counted, Holder, Quotas, Scope};
use crate::api::names::CanonicalName;
use crate::api::quantity::Quantity;
use crate::api::usage::{Measure, Share, Usage};

/// The number of Instances of a namespace, and the limit of its `ResourceQuota`, which the Tenant has in its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// The Instances that are to run.
    pub running: usize,
    /// The Instances that are to be off. They count until they are deleted.
    pub stopped: usize,
    /// The maximum number of both together.
    pub limit: i64,
}

impl Places {
    /// The number of Instances that can still be created.
    pub fn left(&self) -> i64 {
        let count = i64::try_from(self.running + self.stopped).unwrap_or(i64::MAX);
        self.limit.saturating_sub(count).max(0)
    }
}

impl fmt::Display for Places {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { running, stopped, limit } = self;
        let count = running + stopped;
        write!(
            formatter,
            "the namespace has {count} Instances ({stopped} of them stopped), and the limit is {limit}"
        )
    }
}

/// The amounts of a limited resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amounts {
    /// The resource.
    pub measure: Measure,
    /// The amount that running Instances use. Only this amount is compared with the limit.
    pub running: Quantity,
    /// The amount that stopped Instances keep; `None` if stopped Instances use none of the resource.
    pub stopped: Option<Quantity>,
    /// The limit.
    pub limit: Quantity,
}

impl Amounts {
    /// Whether nothing is left of the resource.
    pub fn is_used_up(&self) -> bool {
        self.running >= self.limit
    }
}

impl Quotas<'_> {
    /// The number of Instances of the namespace except `but`, with its limit; `None` if the namespace is not the
    /// Tenant's, or its limit is not known.
    pub fn places(&self, tenant: &str, but: &str) -> Option<Places> {
        if CanonicalName::of(tenant).tenant_namespace() != self.namespace {
            return None;
        }
        let status = &self.objects.tenant(tenant)?.status;
        let count = |holders: &[Holder<'_>]| holders.iter().filter(|holder| holder.name != but).count();
        status.personal_namespace.created.then(|| Places {
            running: count(self.running),
            stopped: count(self.stopped),
            limit: status.quota.instances,
        })
    }

    /// The amounts of each limited resource of a quota; empty if no limit is known. Resources that may not be used and
    /// are not used are left out.
    pub fn amounts(&self, scope: &Scope, tenant: &str) -> Vec<Amounts> {
        let shares = |usage: &Usage| self.shares(scope, tenant, usage).unwrap_or_default();
        let stopped = shares(&self.kept(scope));
        let amounts = |Share { measure, used, limit }: Share| {
            let limit = limit.filter(|limit| !(limit.is_zero() && used.is_zero()))?;
            let is_kept = matches!(measure, Measure::Instances | Measure::Disk);
            let kept = stopped.iter().find(|share| is_kept && share.measure == measure);
            let stopped = kept.map(|share| share.used.clone());
            Some(Amounts { measure, running: used, stopped, limit })
        };
        shares(&self.used(scope, "", &mut Vec::new())).into_iter().filter_map(amounts).collect()
    }

    /// The amount of a quota that stopped Instances keep.
    fn kept(&self, scope: &Scope) -> Usage {
        let mut usage = Usage::default();
        for holder in self.stopped {
            match self.counted(scope, holder) {
                Counted::Not => {}
                Counted::As(template) => usage.add_stopped(Some(&template.spec)),
                Counted::Unknown => usage.add_stopped(None),
            }
        }
        usage
    }
}
