//! The virtual world, and the daemons in it.

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::judge::{Accepted, Warning};
use super::random::Random;
use super::server::Server;
use super::*;
use crate::api::Kind as _;
use crate::api::meta::ResourceVersion;
use crate::controllers::cleanup::delivery::{Sent, deliver};
use crate::controllers::cleanup::mail_log::MailLog;
use crate::runtime::ObjectKey;
use crate::runtime::apply::{Applied, Failure};
use crate::runtime::component::Component;
use crate::runtime::error::ApiError;
use crate::runtime::plan::{ObjectPatch, Plan, Removal};
use crate::runtime::reconcile::{Answer, End, Reconcile, Step};
use crate::runtime::reconciler::{EffectOutcome, Report};

/// A daemon that believes that it leads.
#[derive(Default)]
pub struct Daemon {
    /// The content of its store.
    pub store: Option<Arc<Instance>>,
    /// Its latest round of queries; lost when it restarts.
    pub round: Option<Round>,
    /// The mails that it knows to be accepted; lost when it restarts.
    pub mails: MailLog,
    /// The error of its clock, in seconds.
    pub offset: i64,
    /// The number of its restarts.
    pub life: u32,
}

/// The world of one plan of faults.
pub struct World<A: Automation> {
    pub random: Random,
    /// The true time.
    pub now: i64,
    /// The error of the API server's clock, in seconds.
    pub api_offset: i64,
    /// The Instance that the API server stores.
    pub stored: Option<Instance>,
    version: u64,
    pub template: Option<Arc<Template>>,
    /// The number of warnings that the Template promises before an Instance is stopped.
    pub number: usize,
    pub is_exempt: bool,
    tenant: Arc<Tenant>,
    pub settings: Arc<<A::Reconciler as Reconciler>::Settings>,
    /// The last use that the sources of metrics report.
    pub used: Option<i64>,
    /// Whether the sources have denied that use since.
    pub is_denied: bool,
    pub mail_is_away: bool,
    /// A mail filter rejects texts of users.
    pub has_filter: bool,
    /// The mailbox of the Tenant no longer exists.
    pub is_unknown: bool,
    /// The course has a manager.
    pub is_managed: bool,
    /// The action if no warning can be delivered.
    pub undeliverable: Undeliverable,
    /// The webhook is active: only the daemons can write the protected annotations.
    pub has_webhook: bool,
    pub metrics_are_away: bool,
    /// The sources answer, but report no use at all.
    pub metrics_are_empty: bool,
    pub warnings: Vec<Warning>,
    /// All accepted mails, including mails that no longer count.
    pub mails: Vec<Accepted>,
    pub daemons: [Daemon; 2],
    /// The faults have ended, and daemons no longer crash.
    pub is_calm: bool,
    /// Whether the plan continues after the Instance was stopped.
    pub goes_on: bool,
    /// The stages that ended, by a stop or a deletion.
    pub ended: Vec<Stage>,
    /// Whether events are printed.
    pub is_traced: bool,
}

/// The daemon has died in the middle of a reconcile.
pub struct Dead;

pub type Observed<A> = <<A as Automation>::Reconciler as Reconciler>::Observed;

impl<A: Automation> World<A> {
    /// The world of the plan with this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let tenant = json!({"metadata": {"name": "ada"}, "spec": {"email": "ada@example.org"}});
        let goes_on = random.one_in(3);
        let undeliverable = random.one_of([Undeliverable::Keep, Undeliverable::Proceed]);
        let has_webhook = random.one_in(2);
        let mut world = Self {
            random,
            now: 0,
            api_offset: 0,
            stored: None,
            version: 1,
            template: None,
            number: MAX as usize,
            is_exempt: false,
            tenant: Arc::new(serde_json::from_value(tenant).expect("a Tenant")),
            settings: Arc::new(A::settings(undeliverable)),
            used: None,
            is_denied: false,
            mail_is_away: false,
            has_filter: false,
            is_unknown: false,
            is_managed: true,
            undeliverable,
            has_webhook,
            metrics_are_away: false,
            metrics_are_empty: false,
            warnings: Vec::new(),
            mails: Vec::new(),
            daemons: [Daemon::default(), Daemon::default()],
            is_calm: false,
            goes_on,
            ended: Vec::new(),
            is_traced: seed_asked().is_some(),
        };
        world.begin();
        world
    }

    /// Prints an event if this plan was requested.
    pub fn trace(&self, what: &str) {
        if self.is_traced {
            println!("{:>7} {what}", self.now);
        }
    }

    /// The time of the API server.
    pub fn stated(&self) -> i64 {
        self.now + self.api_offset
    }

    /// The current time for a daemon: the earlier time of its clock and the API server's.
    pub fn judged(&self, daemon: usize) -> Timestamp {
        at(self.now + self.daemons[daemon].offset.min(self.api_offset))
    }

    /// Writes the Instance. Every write creates a new version.
    pub fn store(&mut self, mut instance: Instance) {
        self.version += 1;
        instance.metadata.resource_version = Some(ResourceVersion::Number(self.version));
        self.stored = Some(instance);
    }

    /// The watch of a daemon shows the newest version.
    pub fn show(&mut self, daemon: usize) {
        self.daemons[daemon].store = self.stored.clone().map(Arc::new);
    }

    /// The observed state of a daemon; `None` if its store has no Instance.
    pub fn observed(&self, daemon: usize) -> Option<Observed<A>> {
        let Daemon { store, round, mails, .. } = &self.daemons[daemon];
        let instance = store.clone()?;
        Some(A::observed(Sight {
            mailed: mails.of(&instance),
            instance,
            template: self.template.clone(),
            tenant: Arc::clone(&self.tenant),
            managers: if self.is_managed { vec![Arc::clone(&self.tenant)] } else { Vec::new() },
            is_exempt: self.is_exempt,
            round: round.clone(),
        }))
    }

    /// Restarts a daemon, which loses its memory.
    pub fn restart(&mut self, daemon: usize) {
        let Daemon { store, offset, life, .. } = std::mem::take(&mut self.daemons[daemon]);
        self.daemons[daemon] = Daemon { store, offset, life: life + 1, ..Daemon::default() };
    }

    /// Whether the daemon dies now.
    fn crash(&mut self, daemon: usize) -> Result<(), Dead> {
        if self.is_calm || !self.random.one_in(25) {
            return Ok(());
        }
        self.trace(&format!("daemon {daemon} dies"));
        self.restart(daemon);
        Err(Dead)
    }

    /// Returns the Instance that a write with this resource version applies to.
    fn current(&mut self, version: Option<&str>) -> Result<Instance, ApiError> {
        let gone = || ApiError::NotFound("it is gone".to_owned());
        if !self.is_calm && self.random.one_in(25) {
            // A concurrent write changes the Instance.
            let touched = self.stored.clone().ok_or_else(gone)?;
            self.store(touched);
        }
        let current = self.stored.clone().ok_or_else(gone)?;
        if version.is_some_and(|version| Some(version) != current.resource_version().as_deref()) {
            return Err(ApiError::Conflict("it has another version".to_owned()));
        }
        Ok(current)
    }

    /// A write of a daemon. It is rejected if its resource version is stale or the Instance no longer exists.
    fn write(
        &mut self,
        daemon: usize,
        version: Option<&str>,
        change: impl FnOnce(&mut Instance),
    ) -> Result<Result<(), ApiError>, Dead> {
        self.crash(daemon)?;
        let current = match self.current(version) {
            Ok(current) => current,
            Err(error) => return Ok(Err(error)),
        };
        let mut changed = current.clone();
        change(&mut changed);
        if current.spec.running && !changed.spec.running {
            changed.metadata.generation = changed.metadata.generation.map(|generation| generation + 1);
            self.end(daemon, &current);
        }
        self.assert_promises(daemon, &current, &changed);
        self.store(changed);
        self.show(daemon);
        self.crash(daemon).map(Ok)
    }

    /// Applies a patch. Only annotations and `spec.running` occur here.
    fn patch(&mut self, daemon: usize, patch: &ObjectPatch) -> Result<Result<(), ApiError>, Dead> {
        self.write(daemon, patch.resource_version.as_deref(), |instance| {
            annotate(instance, &patch.patch["metadata"]["annotations"]);
            if let Some(running) = patch.patch["spec"]["running"].as_bool() {
                instance.spec.running = running;
            }
        })
    }

    fn remove(&mut self, daemon: usize, removal: &Removal) -> Result<Result<(), ApiError>, Dead> {
        self.crash(daemon)?;
        match self.current(Some(&removal.resource_version)) {
            Err(error) => return Ok(Err(error)),
            Ok(current) => self.end(daemon, &current),
        }
        self.stored = None;
        self.show(daemon);
        self.crash(daemon).map(Ok)
    }

    fn publish(
        &mut self,
        daemon: usize,
        instance: &Instance,
        report: &Report<InstanceKind>,
    ) -> Result<Result<(), ApiError>, Dead> {
        if instance.status == report.status {
            return Ok(Ok(()));
        }
        let status = report.status.clone();
        self.write(daemon, instance.resource_version().as_deref(), |instance| instance.status = status)
    }

    /// One reconcile of a daemon.
    pub fn reconcile(&mut self, daemon: usize) -> Result<End, Dead> {
        let settings = Arc::clone(&self.settings);
        let mut reconcile = Reconcile::<A::Reconciler>::new(&settings);
        loop {
            let answer = match reconcile.step() {
                Step::Observe => Answer::Observed(self.observed(daemon)),
                Step::Refresh(_) => {
                    self.show(daemon);
                    Answer::Done
                }
                Step::Apply(_, plan) => self.apply(daemon, plan)?,
                Step::Settle(observed, ..) => {
                    let instance: &Instance = observed.as_ref();
                    let promise = A::stage(instance).promise(instance);
                    self.daemons[daemon].mails.settle(&ObjectKey::of(instance), promise);
                    Answer::Done
                }
                Step::Patch(patch) => self.patch(daemon, patch)?.into(),
                Step::Publish(observed, report) => self.publish(daemon, observed.as_ref(), report)?.into(),
                Step::Check(_) | Step::Forget => Answer::Done,
                Step::End(end) => return Ok(end.clone()),
            };
            reconcile.answer(answer, self.judged(daemon));
        }
    }

    /// Carries out a plan: effects and writes, in any order.
    fn apply(&mut self, daemon: usize, plan: &Plan<Effect>) -> Result<Answer<A::Reconciler>, Dead> {
        let is_effect_first = self.random.one_in(2);
        let mut effects = Vec::new();
        if is_effect_first {
            effects = self.perform_all(daemon, plan)?;
        }
        let mut failures = Vec::new();
        for patch in &plan.patches {
            failures.extend(failure(self.patch(daemon, patch)?));
        }
        for removal in &plan.remove {
            failures.extend(failure(self.remove(daemon, removal)?));
        }
        if !is_effect_first {
            effects = self.perform_all(daemon, plan)?;
        }
        let is_written = !plan.patches.is_empty() || !plan.remove.is_empty();
        Ok(Answer::Applied(Applied { is_written, is_incomplete: false, failures }, effects))
    }

    fn perform_all(&mut self, daemon: usize, plan: &Plan<Effect>) -> Result<Vec<EffectOutcome<Sent>>, Dead> {
        plan.effects.iter().map(|effect| self.perform(daemon, effect)).collect()
    }

    fn perform(&mut self, daemon: usize, effect: &Effect) -> Result<EffectOutcome<Sent>, Dead> {
        self.crash(daemon)?;
        let judged = self.judged(daemon);
        let outcome = match effect {
            Effect::Check => {
                let used = self.used.filter(|_| !self.metrics_are_away && !self.metrics_are_empty);
                self.daemons[daemon].round = Some(Round {
                    since: (!self.metrics_are_away).then_some(Timestamp::MIN),
                    until: judged,
                    problems: self.metrics_are_away.then(|| "ingress: away".to_owned()).into_iter().collect(),
                    last_use: used.map(|used| (at(used), "ingress")),
                });
                EffectOutcome::done(Sent::default())
            }
            Effect::Mail(notice) => {
                let server = Server {
                    is_away: self.mail_is_away,
                    has_filter: self.has_filter,
                    is_unknown: self.is_unknown,
                    now: at(self.stated()),
                    accepted: Mutex::default(),
                };
                let log = &self.daemons[daemon].mails;
                let sent = deliver(&server, log, notice, self.undeliverable);
                let sent = sent.now_or_never().expect("the server answers at once");
                for mail in server.accepted.into_inner() {
                    self.accept(daemon, notice, &mail);
                }
                sent
            }
        };
        self.crash(daemon)?;
        Ok(outcome)
    }
}

fn failure(result: Result<(), ApiError>) -> Option<Failure> {
    let failure = |error| Failure {
        component: Component::Whole,
        kind: InstanceKind::KIND,
        name: "box".to_owned(),
        error,
    };
    result.err().map(failure)
}

/// Sets annotations, and removes those with the value `null`.
pub fn annotate(instance: &mut Instance, annotations: &Value) {
    let known = instance.metadata.annotations.iter();
    let mut all: BTreeMap<String, String> =
        known.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    for (key, value) in annotations.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(value) => all.insert(key.clone(), value.to_owned()),
            None => all.remove(key),
        };
    }
    instance.metadata.annotations = all.into_iter().collect();
}
