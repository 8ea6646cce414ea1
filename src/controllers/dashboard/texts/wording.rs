//! Sentences that depend on values of the API.

use super::catalogue::Texts;
use super::template::Key;
use crate::api::denial::{Cause, DenialReason};
use crate::api::quota::Refusal;
use crate::api::usage::{Measure, Share};
use crate::api::{Condition, reason, why};

impl Key for DenialReason {
    const ALL: &'static [Self] = Self::ALL;
}

impl Texts {
    /// Returns why the webhook would refuse to start a machine.
    pub fn refusal(&self, refusal: &Refusal) -> String {
        self.denied(&Cause::of(refusal))
    }

    /// Returns why a webhook refuses a change, in one sentence for each reason.
    pub fn denied(&self, causes: &[Cause]) -> String {
        // The exceeded limits share a sentence.
        let exceeded = causes.iter().filter(|cause| cause.reason == DenialReason::QuotaExceeded);
        let exceeded: Vec<Share> = exceeded.filter_map(|cause| Share::parse(&cause.value)).collect();
        let exceeded = self.exceeded(&exceeded);
        let mut sentences: Vec<String> = Vec::new();
        for Cause { reason, value } in causes {
            let about =
                ["volume", "course", "namespace", "count", "limit"].map(|name| (name, value.as_str()));
            let values = [&about[..], &[("shares", exceeded.as_str())]].concat();
            let sentence = self.refusal.of(*reason).fill(&values);
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        sentences.join(" ")
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

    /// Returns the meaning of the reason of a condition for a student; `None` for a reason that the file does not have.
    pub fn meaning(&self, condition: &Condition) -> Option<&str> {
        let is_full = condition.reason == reason::POD_UNSCHEDULABLE;
        let is_unsuitable = is_full && why::is_unsuitable(&condition.message);
        self.reason(if is_unsuitable { reason::NO_NODE.as_str() } else { condition.reason.as_str() })
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
