//! The promise of the loop over random faults: nothing is stopped or deleted before every promised warning was
//! accepted an interval earlier and the deadlines of all accepted warnings have passed.
//!
//! The world is virtual: an API server with resource versions, a mail server, sources of metrics, a clock that steps,
//! and two daemons that believe to lead, each with a store that may be late. Plans and reports are the real ones, in
//! the order in which the driver calls them. Each step can end by a crash between any two of its writes.

mod faults;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::random::Random;
use super::*;
use crate::api::Object;
use crate::clients::mail::Mail;
use crate::controllers::shared::promise::Due;
use crate::runtime::plan::ObjectPatch;

/// How many random plans of faults are run.
const PLANS: usize = 10_000;
/// How many steps each has, of up to three hours, before the faults end.
const STEPS: usize = 40;
const HOUR: i64 = 3_600;

/// A daemon that believes to lead.
#[derive(Default, Clone)]
struct Daemon {
    /// What its store shows.
    store: Option<Arc<Instance>>,
    /// Its latest round of queries; lost when it restarts.
    seen: Option<Seen>,
    /// By how many seconds its clock is wrong.
    offset: i64,
}

/// A warning that the mail server has accepted.
struct Accepted {
    at: i64,
    deadline: i64,
    key: String,
}

struct World {
    random: Random,
    seed: u64,
    /// The true time.
    now: i64,
    /// What the API server holds.
    stored: Option<Instance>,
    version: u64,
    template: Arc<Template>,
    tenant: Arc<Tenant>,
    settings: Settings,
    /// The last use that the sources of metrics know of.
    used: Option<i64>,
    /// Whether the sources have denied that use since.
    is_denied: bool,
    mail_is_away: bool,
    metrics_are_away: bool,
    /// The sources answer, and say that nothing was ever used.
    metrics_are_empty: bool,
    accepted: Vec<Accepted>,
    daemons: [Daemon; 2],
    /// The faults have ended: no daemon crashes any more.
    is_calm: bool,
    /// The time of the stop or the deletion.
    ended: Option<i64>,
}

/// Why a step ends early: a crash, or a conflict.
struct Interrupted;

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let persistent = random.one_in(2);
        let mut stored = instance(0);
        stored.metadata.generation = Some(1);
        let (template, now) = (template("24h", persistent), 0);
        let mut world = Self {
            random,
            seed,
            now,
            stored: None,
            version: 1,
            template: Arc::new(template),
            tenant: Arc::new(tenant()),
            settings: settings(),
            used: None,
            is_denied: false,
            mail_is_away: false,
            metrics_are_away: false,
            metrics_are_empty: false,
            accepted: Vec::new(),
            daemons: [Daemon::default(), Daemon::default()],
            is_calm: false,
            ended: None,
        };
        world.store(stored);
        world
    }

    fn store(&mut self, mut instance: Instance) {
        self.version += 1;
        instance.metadata.resource_version = Some(crate::api::meta::ResourceVersion::Number(self.version));
        self.stored = Some(instance);
    }

    fn show(&mut self, daemon: usize) {
        self.daemons[daemon].store = self.stored.clone().map(Arc::new);
    }

    /// The time by which a daemon judges: the earlier one of its clock and the API server's.
    fn judged(&self, daemon: usize) -> Timestamp {
        at(self.now + self.daemons[daemon].offset.min(0))
    }

    fn observed(&self, daemon: usize) -> Option<Observed> {
        let Daemon { store, seen, .. } = &self.daemons[daemon];
        Some(Observed {
            instance: store.clone()?,
            template: Some(Arc::clone(&self.template)),
            tenant: Some(Arc::clone(&self.tenant)),
            is_exempt: false,
            seen: seen.clone(),
            connected: None,
        })
    }

    /// Whether the daemon dies now. Then its memory is lost.
    fn crash(&mut self, daemon: usize) -> Result<(), Interrupted> {
        if self.is_calm || !self.random.one_in(25) {
            return Ok(());
        }
        self.daemons[daemon].seen = None;
        Err(Interrupted)
    }

    /// A write of a daemon: refused when its resource version is not that of the API server.
    fn write(
        &mut self,
        daemon: usize,
        version: Option<&str>,
        change: impl FnOnce(&mut Instance),
    ) -> Result<(), Interrupted> {
        self.crash(daemon)?;
        let Some(current) = &self.stored else { return Err(Interrupted) };
        if version.is_some_and(|version| Some(version) != current.resource_version().as_deref()) {
            return Err(Interrupted);
        }
        let mut changed = current.clone();
        change(&mut changed);
        let promised =
            |instance: &Instance| instance.status.inactivity.as_ref().map_or(0, |promise| promise.warnings);
        let is_withdrawn = promised(&changed) < promised(current);
        let is_stopped = current.spec.running && !changed.spec.running;
        if is_stopped {
            changed.metadata.generation = changed.metadata.generation.map(|generation| generation + 1);
        }
        if is_withdrawn {
            // What was promised is withdrawn: the warnings before do not count any more.
            self.accepted.clear();
        }
        self.store(changed);
        self.show(daemon);
        if is_stopped {
            self.end();
        }
        self.crash(daemon)
    }

    /// Applies a patch, of which only annotations and `spec.running` occur here.
    fn patch(&mut self, daemon: usize, patch: &ObjectPatch) -> Result<(), Interrupted> {
        self.write(daemon, patch.resource_version.as_deref(), |instance| {
            let known =
                instance.metadata.annotations.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
            let mut annotations: BTreeMap<String, String> = known.collect();
            for (key, value) in patch.patch["metadata"]["annotations"].as_object().into_iter().flatten() {
                annotations.insert(key.clone(), value.as_str().expect("text").to_owned());
            }
            instance.metadata.annotations = annotations.into_iter().collect();
            if let Some(running) = patch.patch["spec"]["running"].as_bool() {
                instance.spec.running = running;
            }
        })
    }

    fn publish(&mut self, daemon: usize, report: &Report<InstanceKind>) -> Result<(), Interrupted> {
        if let Some(patch) = &report.patch {
            self.patch(daemon, patch)?;
        }
        let Some(current) = self.daemons[daemon].store.clone() else { return Err(Interrupted) };
        if current.status == report.status {
            return Ok(());
        }
        let status = report.status.clone();
        self.write(daemon, current.resource_version().as_deref(), |instance| instance.status = status)
    }

    /// One reconcile, in the order of the driver.
    fn reconcile(&mut self, daemon: usize) -> Result<bool, Interrupted> {
        let settings = self.settings.clone();
        let Some(mut observed) = self.observed(daemon) else { return Err(Interrupted) };
        let mut made = plan(&observed, &settings, self.judged(daemon));
        if !made.confirm.is_empty() {
            self.show(daemon);
            observed = self.observed(daemon).ok_or(Interrupted)?;
            made = plan(&observed, &settings, self.judged(daemon));
        }
        if made.announce {
            let told = report(&observed, &settings, &made, &Outcome::pending(), self.judged(daemon));
            self.publish(daemon, &told)?;
        }
        let mut outcome = Outcome::default();
        for effect in &made.effects {
            let result = self.perform(daemon, effect)?;
            outcome.effects.push(result);
        }
        if !made.patches.is_empty() || !made.remove.is_empty() {
            self.judge(&observed);
        }
        for patch in &made.patches {
            // The announcement has changed the version; the patch names that of the plan.
            self.patch(daemon, patch)?;
        }
        for removal in &made.remove {
            let current = self.stored.as_ref().and_then(Object::resource_version);
            if current.as_deref() != Some(&*removal.resource_version) {
                return Err(Interrupted);
            }
            self.stored = None;
            self.end();
            self.show(daemon);
        }
        let Some(observed) = self.observed(daemon) else { return Ok(false) };
        let told = report(&observed, &settings, &made, &outcome, self.judged(daemon));
        self.publish(daemon, &told)?;
        Ok(told.requeue_at_once)
    }

    fn perform(&mut self, daemon: usize, effect: &Effect) -> Result<EffectOutcome<Timestamp>, Interrupted> {
        self.crash(daemon)?;
        let judged = self.judged(daemon);
        let outcome = match effect {
            Effect::Check => {
                let problems =
                    if self.metrics_are_away { vec!["ingress: away".to_owned()] } else { Vec::new() };
                let used = self.used.filter(|_| !self.metrics_are_away && !self.metrics_are_empty);
                let last_use = used.map(|used| (at(used), "ingress"));
                self.daemons[daemon].seen = Some(Seen {
                    since: (!self.metrics_are_away).then_some(Timestamp::MIN),
                    until: judged,
                    problems,
                    last_use,
                });
                EffectOutcome::done(judged)
            }
            Effect::Mail(_) if self.mail_is_away => EffectOutcome {
                result: None,
                error: Some(EffectError::Failed(Problem::fault(INACTIVE, "MailRefused", "refused"))),
            },
            Effect::Mail(mail) => {
                self.accept(mail);
                EffectOutcome::done(at(self.now))
            }
        };
        self.crash(daemon)?;
        Ok(outcome)
    }

    fn accept(&mut self, mail: &Mail) {
        let (at, deadline) = (self.now, mail.deadline.as_second());
        if mail.kind == MailKind::InactivityWarning {
            self.accepted.push(Accepted { at, deadline, key: mail.key.clone() });
        }
    }

    /// The Instance is about to be stopped or deleted: has the daemon noticed what has happened to it? A write that
    /// is refused does no harm, so only the latest state counts.
    fn judge(&self, observed: &Observed) {
        let Some(stored) = &self.stored else { return };
        if stored.resource_version() != observed.instance.resource_version() {
            return;
        }
        let (seed, now) = (self.seed, self.now);
        let promise = stored.status.inactivity.as_ref();
        let known = promise.map(|promise| promise.generation);
        assert_eq!(
            known, stored.metadata.generation,
            "seed {seed}: a start or another change was not noticed"
        );
        let has_idle = !matches!(&*self.template.spec.inactivity_timeout, "0m");
        if let Some(used) = self.used.filter(|_| !self.is_denied && has_idle) {
            assert!(now - used >= 12 * HOUR, "seed {seed}: ended at {now}, used at {used}");
        }
    }

    /// The Instance has been stopped or deleted: was everything kept that was promised?
    fn end(&mut self) {
        let (now, seed) = (self.now, self.seed);
        let number = usize::try_from(warnings(&self.template, MAX)).expect("few");
        let mut keys: Vec<&str> = self.accepted.iter().map(|mail| mail.key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert!(
            keys.len() >= number,
            "seed {seed}: ended at {now} after {} of {number} warnings",
            keys.len()
        );
        for mail in &self.accepted {
            assert!(
                mail.deadline <= now,
                "seed {seed}: ended at {now} before the deadline {}",
                mail.deadline
            );
        }
        if let Some(last) = self.accepted.last() {
            assert!(last.at + INTERVAL <= now, "seed {seed}: ended at {now}, warned at {}", last.at);
        }
        self.ended = Some(now);
    }

    /// Lets a daemon work until nothing is left to be done at once.
    fn work(&mut self, daemon: usize) {
        if self.daemons[daemon].store.is_none() || self.random.one_in(2) {
            self.show(daemon);
        }
        for _ in 0..8 {
            if self.ended.is_some() || !matches!(self.reconcile(daemon), Ok(true)) {
                return;
            }
        }
    }

    /// What is still to be done now, and is not done yet.
    fn due(&self) -> Option<Due> {
        let observed = self.observed(0)?;
        let due = observed.ending(&self.settings, at(self.now)).ok()??.due(at(self.now));
        (self.ended.is_none() && !matches!(due, Due::Never | Due::At(_))).then_some(due)
    }

    fn run(mut self) {
        for _ in 0..STEPS {
            self.disturb();
            let daemon = usize::from(self.random.one_in(4));
            self.work(daemon);
            if self.ended.is_some() {
                return;
            }
            self.now += i64::try_from(self.random.below(10_800)).expect("small");
        }
        // The faults end: within an interval, what is due is done, and the Instance, which nobody uses any more, comes
        // to its end.
        self.is_calm = true;
        (self.mail_is_away, self.metrics_are_away, self.metrics_are_empty) = (false, false, false);
        self.template = Arc::new(template("24h", true));
        self.daemons = [Daemon::default(), Daemon::default()];
        let calm = self.now;
        let limit = self.now + 24 * HOUR + (i64::from(MAX) + 2) * (INTERVAL + 660) + HOUR;
        while self.ended.is_none() && self.now < limit {
            self.show(0);
            self.work(0);
            if self.now >= calm + INTERVAL {
                assert_eq!(self.due(), None, "seed {}: still due at {}", self.seed, self.now);
            }
            self.now += HOUR;
        }
        assert!(self.ended.is_some(), "seed {}: {:#?}", self.seed, self.stored.map(|stored| stored.status));
    }
}

#[test]
fn nobody_is_stopped_unwarned_whatever_fails() {
    let run = |part| (part..PLANS).step_by(2).for_each(|seed| World::new(seed as u64).run());
    std::thread::scope(|scope| {
        scope.spawn(|| run(0));
        scope.spawn(|| run(1));
    });
}
