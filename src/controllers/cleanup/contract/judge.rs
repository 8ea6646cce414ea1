//! The promises as the Tenant knows them from the mails, and whether they are kept.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::world::World;
use super::*;
use crate::api::labels;
use crate::api::lifetime::Lifetime;
use crate::api::promise::Promise;
use crate::clients::mail::{Mail, MailKind, Wording};
use crate::controllers::cleanup::delivery::Notice;
use crate::controllers::cleanup::mail_log::record;

/// The start and the end of a stage of an Instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is stopped or deleted because it is not used.
    Idle,
    /// It is deleted because it is not started.
    Off,
    /// It is deleted because of its age.
    Age,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Idle, Self::Off, Self::Age];

    pub fn promise(self, instance: &Instance) -> Option<&Promise> {
        match self {
            Self::Idle => instance.status.inactivity.as_deref(),
            Self::Off => instance.status.destruction.as_deref(),
            Self::Age => instance.status.expiration.as_deref(),
        }
    }

    /// The time limit of a Template for this stage, in seconds; `None` for never.
    pub fn limit(self, template: &Template) -> Result<Option<i64>, LifetimeError> {
        let text = match self {
            Self::Idle => template.spec.max_idle(),
            Self::Off => template.spec.max_off(),
            Self::Age => template.spec.max_age(),
        };
        Ok(match Lifetime::parse(text)? {
            Lifetime::After(limit) => Some(i64::try_from(limit.as_secs()).expect("not for ever")),
            Lifetime::Never => None,
        })
    }

    /// The start of the limit for a daemon that decides at time `judged`, if known.
    pub fn since(self, instance: &Instance, judged: i64) -> Option<i64> {
        let annotation = |key| instance.annotation(key)?.parse::<Timestamp>().ok();
        let since = match self {
            Self::Idle => {
                let stored = self.promise(instance).and_then(|promise| Some(promise.since.as_ref()?.0));
                stored.or_else(|| annotation(labels::LAST_ACTIVITY))
            }
            Self::Off => {
                let off = annotation(labels::LAST_POWERED_OFF);
                off.map(|off| kept(instance, judged).map_or(off, |kept| at(kept).max(off)))
            }
            Self::Age => instance.metadata.creation_timestamp.as_ref().map(|created| created.0),
        };
        since.map(Timestamp::as_second)
    }

    fn warning(self) -> MailKind {
        match self {
            Self::Idle => MailKind::InactivityWarning,
            Self::Off => MailKind::DestructionWarning,
            Self::Age => MailKind::ExpirationWarning,
        }
    }
}

/// When the Tenant asked to keep the Instance, if that counts for a daemon that decides at time `judged`.
fn kept(instance: &Instance, judged: i64) -> Option<i64> {
    let kept = instance.annotation(labels::KEPT_AT)?.parse::<Timestamp>().ok()?.as_second();
    Some(kept).filter(|kept| *kept <= judged)
}

/// A warning that the mail server has accepted and whose promise was not withdrawn.
pub struct Warning {
    pub stage: Stage,
    /// The index of the warning, from 0 on.
    pub number: i64,
    /// The true time.
    pub at: i64,
    /// The time of the API server at that moment.
    pub stated: i64,
    pub deadline: i64,
    /// The daemon that sent it, and the number of its restarts; `None` for the Go operator.
    pub by: Option<(usize, u32)>,
}

impl Warning {
    /// Asserts that an interval has passed. Promises use the clock of the API server. If that clock was slow, the
    /// interval is shorter by the difference.
    fn assert_rested(&self, now: i64) {
        let Self { number, at, stated, .. } = *self;
        assert!(at.min(stated) + INTERVAL <= now, "warning {number} was at {at}, and it is only {now}");
    }
}

/// A mail that the mail server has accepted, whether or not it counts.
pub struct Accepted {
    /// The key of its annotation.
    record: String,
    at: i64,
    stated: i64,
    by: (usize, u32),
}

impl<A: Automation> World<A> {
    /// Records that the mail server accepts a mail of a daemon.
    pub fn accept(&mut self, daemon: usize, notice: &Notice, mail: &Mail) {
        let is_to_manager = matches!(mail.wording, Wording::Manager { .. });
        let counts = !is_to_manager || self.undeliverable == Undeliverable::Proceed;
        self.assert_no_flood(daemon, record(mail.kind, !counts));
        let Some(stage) = Stage::ALL.into_iter().find(|stage| stage.warning() == mail.kind) else { return };
        if !counts {
            return self.trace(&format!("daemon {daemon} tells a manager of {}", mail.key));
        }
        let number = notice.number;
        let by = Some((daemon, self.daemons[daemon].life));
        for known in self.warnings.iter().filter(|known| known.stage == stage) {
            if known.number < number {
                known.assert_rested(self.now);
            }
            assert!(
                known.number != number || known.by != by,
                "warning {number} was sent at {} and, by the same process, at {}",
                known.at,
                self.now
            );
        }
        let (at, stated, deadline) = (self.now, self.stated(), mail.deadline.as_second());
        self.trace(&format!("daemon {daemon} sends {}", mail.key));
        self.warnings.push(Warning { stage, number, at, stated, deadline, by });
    }

    /// Asserts that an interval has passed since the last accepted mail of this kind. A mail may follow earlier if the
    /// process that sent the previous one died before it could record the acceptance.
    fn assert_no_flood(&mut self, daemon: usize, record: String) {
        let by = (daemon, self.daemons[daemon].life);
        let written = self.stored.as_ref().and_then(|stored| stored.annotation(&record));
        let written = written.and_then(|text| text.parse::<Timestamp>().ok()).map(Timestamp::as_second);
        for known in self.mails.iter().filter(|known| known.record == record) {
            if known.by == by || written.is_some_and(|written| written >= known.stated) {
                let Accepted { at, stated, .. } = known;
                assert!(
                    at.min(stated) + INTERVAL <= self.now,
                    "a mail of {record} was accepted at {at}, and another at {}",
                    self.now
                );
            }
        }
        self.mails.push(Accepted { record, at: self.now, stated: self.stated(), by });
    }

    /// Whether nothing is promised about an Instance because the Template, the namespace or the clock excludes it.
    /// `None` if the time in the Template cannot be parsed.
    pub fn is_left_alone(&self, stage: Stage, instance: &Instance, judged: i64) -> Option<bool> {
        let Some(template) = self.template.as_deref().filter(|_| !self.is_exempt) else { return Some(true) };
        let Some(limit) = stage.limit(template).ok()? else { return Some(true) };
        Some(match (stage, stage.since(instance, judged)) {
            (Stage::Off, _) if !template.spec.environment_list[0].persistent => true,
            (Stage::Off, None) => true,
            (_, since) => since.is_some_and(|since| judged < since + limit),
        })
    }

    /// Asserts that a daemon that has changed the status was allowed to withdraw every promise that is no longer in it.
    pub fn assert_promises(&mut self, daemon: usize, old: &Instance, new: &Instance) {
        let time = |time: &Option<Time>| time.as_ref().map(|time| time.0);
        for stage in Stage::ALL {
            let nothing = Promise::default();
            let before = stage.promise(old).unwrap_or(&nothing);
            let after = stage.promise(new).unwrap_or(&nothing);
            // The deadline of the warning being sent stays, or has become the deadline because fewer warnings are
            // required now.
            let is_earlier = after.warnings == before.warnings
                && before.sending.is_some()
                && time(&after.sending).max(time(&after.deadline)) < time(&before.sending);
            let is_lower = time(&after.deadline) < time(&before.deadline);
            if after.warnings >= before.warnings && !is_earlier {
                // A deadline without a warning, set while the warning was being sent, is withdrawn as a whole.
                assert!(
                    !is_lower || (after.warnings == 0 && after.deadline.is_none()),
                    "the deadline moves from {:?} to {:?}",
                    before.deadline,
                    after.deadline
                );
                if !is_lower {
                    continue;
                }
            }
            assert!(
                self.may_withdraw(stage, daemon, old),
                "withdrawn without a reason at {}: {before:#?}\n{after:#?}",
                self.now
            );
            self.warnings.retain(|warning| warning.stage != stage);
        }
    }

    /// Whether there is a reason to withdraw the promise about an Instance: it was used or changed, it is excluded, or
    /// the Template now allows more time than the deadline.
    fn may_withdraw(&self, stage: Stage, daemon: usize, instance: &Instance) -> bool {
        let seconds = |time: &Option<Time>| time.as_ref().map(|time| time.0.as_second());
        let since = |promise: &Promise| seconds(&promise.since);
        let Some(promise) = stage.promise(instance) else { return true };
        let judged = self.judged(daemon).as_second();
        let has_turned = match stage {
            Stage::Idle => {
                Some(promise.generation) != instance.metadata.generation
                    || self.used.max(kept(instance, judged)) > since(promise)
            }
            Stage::Off => stage.since(instance, judged) != since(promise),
            Stage::Age => false,
        };
        let limit = self.template.as_deref().and_then(|template| stage.limit(template).ok()?);
        let overdue = stage.since(instance, judged).zip(limit).map(|(since, limit)| since + limit);
        let is_longer = seconds(&promise.deadline).zip(overdue).is_some_and(|(end, overdue)| end <= overdue);
        has_turned
            || is_longer
            || stage != A::stage(instance)
            || self.is_left_alone(stage, instance, judged).unwrap_or(true)
    }

    /// Asserts, when the Instance is being stopped or deleted, that the daemon has noticed every change of the Instance
    /// and that every promise is kept. `before` is the Instance before the change.
    pub fn end(&mut self, daemon: usize, before: &Instance) {
        let (now, stage, judged) = (self.now, A::stage(before), self.judged(daemon).as_second());
        self.trace(&format!("the end: {stage:?}"));
        assert!(!self.is_exempt, "ended although it is exempt");
        let template = self.template.as_deref().expect("ended without a Template");
        let limit = stage.limit(template).expect("ended by no duration").expect("ended although never");
        if stage == Stage::Idle {
            let noticed = stage.promise(before).map(|promise| promise.generation);
            assert_eq!(noticed, before.metadata.generation, "a start or another change was not noticed");
            if let Some(used) = self.used.filter(|_| !self.is_denied) {
                assert!(now - used >= limit, "ended at {now}, used at {used}");
            }
            if let Some(kept) = kept(before, judged) {
                assert!(judged - kept >= limit, "ended at {judged}, kept at {kept}");
            }
        } else {
            let since = stage.since(before, judged).expect("counted from a time");
            assert!(since + limit <= now, "ended at {now}, counted from {since}");
        }
        let promised = if stage == Stage::Age { 1 } else { self.number };
        let warnings = || self.warnings.iter().filter(|warning| warning.stage == stage);
        let numbers: BTreeSet<i64> = warnings().map(|warning| warning.number).collect();
        assert!(numbers.len() >= promised, "ended at {now} after {numbers:?} of {promised} warnings");
        for warning in warnings() {
            assert!(warning.deadline <= now, "ended at {now} before the deadline {}", warning.deadline);
            warning.assert_rested(now);
        }
        let stored = stage.promise(before).and_then(|promise| promise.deadline.as_ref());
        let stored = stored.map(|deadline| deadline.0.as_second());
        assert!(
            stored.is_some_and(|stored| stored <= now) || stored.is_none() && promised == 0,
            "ended at {now}, the stored deadline is {stored:?}"
        );
        self.warnings.clear();
        self.ended.push(stage);
    }
}
