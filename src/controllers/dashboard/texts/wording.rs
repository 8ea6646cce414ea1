//! Sentences that depend on values of the API.

use super::catalogue::Texts;
use crate::api::quota::Refusal;
use crate::api::usage::{Measure, Share};

impl Texts {
    /// Returns why the webhook would refuse to start a machine.
    pub fn refusal(&self, refusal: &Refusal) -> String {
        let texts = &self.refusal;
        match refusal {
            Refusal::NoTemplate(_) => texts.no_template.clone(),
            Refusal::WritesForeignVolume { volume, .. } => {
                texts.writes_foreign_volume.fill(&[("volume", &volume.to_string())])
            }
            Refusal::OfAnotherTenant { .. } => texts.of_another_tenant.clone(),
            Refusal::NoTenant(_) => texts.no_tenant.clone(),
            Refusal::NotEnrolled { workspace, .. } => texts.not_enrolled.fill(&[("course", workspace)]),
            Refusal::NoWorkspace(workspace) => texts.no_workspace.fill(&[("course", workspace)]),
            Refusal::NoPersonalWorkspace(_) => texts.no_personal_workspace.clone(),
            Refusal::Elsewhere { namespace, .. } => texts.elsewhere.fill(&[("namespace", namespace)]),
            Refusal::Exceeded(shares) => texts.exceeded.fill(&[("shares", &self.exceeded(shares))]),
        }
    }

    /// Lists shares that are above their limits: `Memory: 5 GiB (limit: 4 GiB)`.
    fn exceeded(&self, shares: &[Share]) -> String {
        let one = |share: &Share| {
            let used = self.quantity(&share.measure, &share.used);
            let limit = share.limit.as_ref().map(|limit| self.quantity(&share.measure, limit));
            let limit = limit.as_deref().unwrap_or(&self.unlimited);
            let both = self.instead_of.fill(&[("used", &used), ("limit", limit)]);
            format!("{}: {both}", self.measure(&share.measure))
        };
        shares.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// Returns the name of a measure.
    pub fn measure<'a>(&'a self, measure: &'a Measure) -> &'a str {
        match measure {
            Measure::Instances => &self.measure_instances,
            Measure::Cpu => &self.measure_cpu,
            Measure::Memory => &self.measure_memory,
            Measure::Disk => &self.measure_disk,
            Measure::Other(name) => name,
        }
    }

    /// Returns an amount with its unit: `2 cores`, `4 GiB of memory`.
    pub fn amount(&self, measure: &Measure, amount: &str) -> String {
        match measure {
            Measure::Instances => self.amount_instances.of(amount),
            Measure::Cpu => self.amount_cpu.of(amount),
            Measure::Memory => self.amount_memory.fill(&[("amount", amount)]),
            Measure::Disk => self.amount_disk.fill(&[("amount", amount)]),
            Measure::Other(name) => format!("{amount} {name}"),
        }
    }
}
