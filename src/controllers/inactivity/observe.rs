//! The input of the plan and the report for the inactivity of an Instance.

use std::time::Duration;

use derive_more::{AsMut, AsRef, Deref};
use jiff::Timestamp;

use super::Settings;
use crate::api::condition::{ABANDONED, INACTIVE};
use crate::api::lifetime::{Lifetime, LifetimeError};
use crate::api::promise::{End, Promise};
use crate::api::{labels, reason};
use crate::clients::mail::MailKind;
use crate::controllers::cleanup::ending::{Ending, EndingKind, warnings};
use crate::controllers::cleanup::promise::{earlier, standing, time, withdrawn};
use crate::controllers::cleanup::report::ANNOTATION;
use crate::controllers::cleanup::stores::Candidate;

/// The maximum age of an Instance without a promise whose idle time counts from its creation. An older Instance existed
/// before the loop did, so its idle time counts from now.
const NEW: Duration = Duration::from_hours(24);

/// The witness of a use that comes from the annotation [`labels::KEPT_AT`].
pub const KEPT: &str = "kept";

/// The result of a round of queries for one Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundResult {
    /// The time since which all sources have data; `None` while a source is missing or fails.
    pub since: Option<Timestamp>,
    /// When the sources answered.
    pub answered: Timestamp,
    /// Why the result is incomplete, one sentence for each source; empty if it is complete.
    pub problems: Vec<String>,
    /// The last use and the source that reported it.
    pub last_use: Option<(Timestamp, &'static str)>,
}

/// The observation of an Instance.
#[derive(Debug, Clone, AsRef, AsMut, Deref)]
pub struct Observed {
    /// The observation that is common to all loops that end Instances.
    #[as_ref(forward)]
    #[as_mut(forward)]
    #[deref]
    pub candidate: Candidate,
    /// The latest round of queries; `None` before the first one.
    pub seen: Option<RoundResult>,
    /// The last SSH connection that this process saw, and the source that saw it: the time when it began, or now if it
    /// is open.
    pub connected: Option<(Timestamp, &'static str)>,
}

impl Observed {
    /// Whether any environment of the Template is persistent. If so, the Instance can be stopped; otherwise it can only
    /// be deleted.
    pub fn is_persistent(&self) -> bool {
        self.template.as_ref().is_some_and(|template| template.spec.is_persistent())
    }

    /// The ending of the Instance if it stays unused; `None` if it does not end. Returns an error if the time in the
    /// Template cannot be read. Such a time counts as never.
    pub fn ending(&self, settings: &Settings, now: Timestamp) -> Result<Option<Ending<'_>>, LifetimeError> {
        let Some(template) = self.template.as_deref().filter(|_| !self.is_exempt) else { return Ok(None) };
        let config = &settings.config;
        let running = self.instance.spec.running;
        let text = if running { template.spec.max_idle() } else { template.spec.max_off() };
        let after = Lifetime::parse(text)?;
        if after == Lifetime::Never || !running && !self.is_persistent() {
            return Ok(None);
        }
        let Some(basis) = (if running { Some(self.used(now)) } else { self.stopped(now) }) else {
            return Ok(None);
        };
        let since = basis.since.as_ref().map_or(now, |since| since.0);
        let interval =
            if running { config.notification_interval } else { config.destruction_notification_interval };
        let (kind, number) = (self.ending_kind(), warnings(template, config.max_number_of_alerts));
        let terms = self.terms(&kind, after, interval.get(), config.notifications, number);
        let basis = self.mailed.accepted(&terms, kind.warning, basis);
        let promise = standing(&terms, since, basis, now);
        let (candidate, undeliverable) = (&self.candidate, settings.undeliverable);
        Ok(Some(Ending { kind, candidate, undeliverable, terms, since, promise }))
    }

    fn ending_kind(&self) -> EndingKind {
        if !self.instance.spec.running {
            return EndingKind {
                condition: ABANDONED,
                warning: MailKind::DestructionWarning,
                last: MailKind::Destroyed,
                warned: reason::DESTRUCTION_WARNING,
                ended: reason::DESTROYED,
                end: End::Deleted,
            };
        }
        EndingKind {
            condition: INACTIVE,
            warning: MailKind::InactivityWarning,
            last: MailKind::InactivityStopped,
            warned: reason::INACTIVITY_WARNING,
            ended: reason::INACTIVITY_STOPPED,
            end: End::of_unused(self.is_persistent()),
        }
    }

    /// The promise of a running Instance, counted from its last use. A use later than the stored one withdraws the
    /// promise, and so does a change of the spec, such as a start. A slow clock does not move the last use to an
    /// earlier time.
    fn used(&self, now: Timestamp) -> Promise {
        let generation = self.instance.metadata.generation.unwrap_or_default();
        let started = |since| Promise {
            since: time(since),
            witness: "start".to_owned(),
            generation,
            ..Promise::default()
        };
        let mut basis = match &self.instance.status.inactivity {
            Some(stored) if stored.generation == generation => (**stored).clone(),
            Some(stored) => started(stored.since.as_ref().map_or(now, |known| known.0.max(now))),
            None => self.annotated(generation).unwrap_or_else(|| {
                let created = self.created(now);
                let is_new = created > earlier(now, NEW) && !self.was_stopped();
                started(if is_new { created } else { now })
            }),
        };
        if let Some((used, source)) = self.last_use(now)
            && basis.since.as_ref().is_none_or(|since| since.0 < used)
        {
            let since = basis.since.as_ref().map_or(Timestamp::MIN, |since| since.0);
            let since = time(used.min(now).max(since));
            basis = Promise { since, witness: source.to_owned(), ..withdrawn(&basis) };
        }
        basis
    }

    /// The last use and its source: a source of metrics, this process, or a request to keep the Instance.
    fn last_use(&self, now: Timestamp) -> Option<(Timestamp, &'static str)> {
        let seen = self.seen.as_ref().and_then(|seen| seen.last_use);
        let kept = self.kept(now).map(|time| (time, KEPT));
        seen.into_iter().chain(self.connected).chain(kept).max_by_key(|(time, _)| *time)
    }

    /// The annotation [`labels::KEPT_AT`]: a time, or its text if the text is not a time; `None` if the annotation is
    /// missing.
    pub fn kept_at(&self) -> Option<Result<Timestamp, &str>> {
        let text = self.instance.annotation(labels::KEPT_AT).filter(|text| !text.is_empty())?;
        Some(text.parse().map_err(|_| text))
    }

    /// The time of the last request to keep the Instance. A time in the future does not count yet, so a request cannot
    /// keep an Instance for longer than the Template allows.
    fn kept(&self, now: Timestamp) -> Option<Timestamp> {
        self.kept_at()?.ok().filter(|kept| *kept <= now)
    }

    /// The source of the last known use, see [`Promise::witness`]; `None` if use does not matter.
    pub fn witness(&self, now: Timestamp) -> Option<&str> {
        if !self.instance.spec.running || !self.is_watched() {
            return None;
        }
        let stored = self.instance.status.inactivity.as_deref();
        let since = stored.and_then(|stored| stored.since.as_ref()).map(|since| since.0);
        match self.last_use(now) {
            Some((used, source)) if since.is_none_or(|since| since < used) => Some(source),
            _ => Some(stored.map_or("start", |stored| &stored.witness)),
        }
    }

    /// Whether the Instance was stopped at the last reconciliation.
    pub fn was_stopped(&self) -> bool {
        self.instance.annotation(labels::LAST_RUNNING) == Some("false")
    }

    /// Whether the Template stops unused Instances.
    pub fn is_watched(&self) -> bool {
        let idle = self.template.as_ref().map(|template| Lifetime::parse(template.spec.max_idle()));
        !self.is_exempt && matches!(idle, Some(Ok(Lifetime::After(_))))
    }

    /// The promise in the annotations of the Go operator. Unreadable parts are left out.
    fn annotated(&self, generation: i64) -> Option<Promise> {
        let annotation = |key| self.instance.annotation(key);
        let read = |key| annotation(key).and_then(|text| text.parse::<Timestamp>().ok());
        let since = read(labels::LAST_ACTIVITY)?;
        if annotation(labels::LAST_RUNNING) != Some("true") {
            return None;
        }
        let warned = read(labels::LAST_NOTIFICATION);
        let number = annotation(labels::ALERTS_SENT).and_then(|text| text.parse::<i64>().ok());
        Some(Promise {
            since: time(since),
            witness: ANNOTATION.to_owned(),
            generation,
            warnings: warned.and(number).unwrap_or(0).max(0),
            last_warning: warned.and_then(time),
            ..Promise::default()
        })
    }

    /// The promise that is withdrawn when a running Instance no longer ends: the stored one, or the warnings that only
    /// the annotations of the Go operator mention.
    pub fn promised(&self) -> Option<Promise> {
        let stored = self.instance.status.inactivity.as_deref().cloned();
        let generation = self.instance.metadata.generation.unwrap_or_default();
        stored.or_else(|| self.annotated(generation).filter(|told| told.warnings > 0))
    }

    /// The promise of a stopped Instance, counted from its stop or from a later request to keep it; `None` while the
    /// time of its stop is unknown.
    fn stopped(&self, now: Timestamp) -> Option<Promise> {
        let off = self.instance.annotation(labels::LAST_POWERED_OFF)?.parse::<Timestamp>().ok()?;
        let kept = self.kept(now).filter(|kept| *kept > off);
        // In whole seconds, as in the status.
        let since = time(kept.unwrap_or(off))?.0.min(now);
        let stored = self.instance.status.destruction.as_deref();
        let same = stored.filter(|stored| stored.since.as_ref().is_some_and(|known| known.0 == since));
        let witness = kept.map_or_else(String::new, |_| KEPT.to_owned());
        let started = Promise { since: time(since), witness, ..Promise::default() };
        Some(same.cloned().unwrap_or(started))
    }

    /// Checks that the latest round is no older than `age` and covers the whole time since `since`.
    pub fn is_seen(&self, since: Timestamp, age: Duration, now: Timestamp) -> Result<(), UnknownUse> {
        let Some(seen) = self.seen.as_ref().filter(|seen| seen.answered >= earlier(now, age)) else {
            return Err(UnknownUse::Outdated);
        };
        if seen.since.is_some_and(|known| known <= since) {
            return Ok(());
        }
        if seen.since.is_some() && seen.problems.is_empty() {
            return Err(UnknownUse::Outdated);
        }
        Err(UnknownUse::Unanswered(seen.problems.join("; ")))
    }
}

/// The reason why it is unknown whether an Instance is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownUse {
    /// The latest round is too old, or did not look back far enough.
    Outdated,
    /// A source did not answer.
    Unanswered(String),
}
