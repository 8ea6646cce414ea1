//! What a loop would write in a live cluster.

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ObjectKey;
use super::apply::{Applied, Engine, Write};
use super::merge;
use super::plan::{ObjectPatch, Plan, to_value};
use super::reconcile::{Answer, End, Reconcile, Step};
use super::reconciler::{EffectOutcome, EffectResult, Reconciler};
use crate::api::Kind;

/// What the reconcile of an object of a live cluster would write.
#[derive(Debug)]
pub struct Previewed {
    /// The name of the loop.
    pub controller: &'static str,
    /// The kind of the object.
    pub kind: &'static str,
    /// The key of the object.
    pub key: ObjectKey,
    /// The writes, those of its status last.
    pub writes: Vec<Write>,
    /// What a second reconcile would write besides. It follows at once, because an effect has changed what the plan depends on.
    pub later: Vec<Write>,
    /// Its problems, and what could not be written.
    pub problems: Vec<String>,
}

/// What the driver would write for an object; `None` when it is not ours, or left to the garbage collector. The gate has to be
/// closed: effects are carried out as far as they only read.
pub async fn preview<R: Reconciler>(
    reconciler: &R,
    settings: &R::Settings,
    engine: &Engine,
    key: ObjectKey,
    now: Timestamp,
) -> Option<Previewed> {
    let mut first = Preview::new(reconciler, engine, &key, Vec::new());
    let end = first.run(settings, now).await?;
    let Preview { own, mut writes, status, problems, .. } = first;
    writes.extend(status);
    let mut later = Vec::new();
    if end == End::Again {
        let mut second = Preview::new(reconciler, engine, &key, own);
        second.run(settings, now).await;
        later.extend(second.writes.into_iter().chain(second.status).filter(|write| !writes.contains(write)));
    }
    Some(Previewed { controller: R::NAME, kind: R::Kind::KIND, key, writes, later, problems })
}

/// One reconcile of which nothing is written.
struct Preview<'a, R: Reconciler> {
    reconciler: &'a R,
    engine: &'a Engine,
    key: &'a ObjectKey,
    /// What would have been written to the object itself, as merge patches.
    own: Vec<Value>,
    writes: Vec<Write>,
    /// The write of the status: the last one, where a report announces the plan.
    status: Option<Write>,
    problems: Vec<String>,
}

impl<'a, R: Reconciler> Preview<'a, R> {
    fn new(reconciler: &'a R, engine: &'a Engine, key: &'a ObjectKey, own: Vec<Value>) -> Self {
        Self { reconciler, engine, key, own, writes: Vec::new(), status: None, problems: Vec::new() }
    }

    /// Goes through the steps; `None` if nothing is planned.
    async fn run(&mut self, settings: &R::Settings, now: Timestamp) -> Option<End> {
        let mut reconcile = Reconcile::<R>::new(settings);
        loop {
            let answer = match reconcile.step() {
                Step::Forget => return None,
                Step::End(end) => return Some(end.clone()),
                step => self.answer(step).await,
            };
            reconcile.answer(answer, now);
        }
    }

    async fn answer(&mut self, step: Step<'_, R>) -> Answer<R> {
        match step {
            Step::Observe => return Answer::Observed(self.observe()),
            Step::Refresh(objects) => {
                for (kind, key) in objects {
                    if let Err(error) = self.engine.refresh(*kind, key).await {
                        self.problems.push(format!("{} {key}: {error}", kind.kind));
                        return Answer::Failed(error);
                    }
                }
            }
            Step::Check(preconditions) => {
                let checked = self.engine.check_all(preconditions).await;
                self.problems.extend(checked.as_ref().err().map(ToString::to_string));
                return checked.into();
            }
            Step::Apply(observed, plan) => return self.apply(observed, plan).await,
            Step::Settle(observed, outcome) => self.reconciler.settle(observed, outcome),
            Step::Patch(patch) => {
                self.note(patch);
                self.writes.push(self.engine.patching(patch));
            }
            Step::Publish(observed, report) => {
                self.status = self.engine.publishing(observed.as_ref(), &report.status);
                self.own.push(json!({"status": to_value(&report.status)}));
            }
            Step::Forget | Step::End(_) => {}
        }
        Answer::Done
    }

    /// The object, with what would have been written to it.
    fn observe(&self) -> Option<R::Observed> {
        let mut observed = self.reconciler.observe(self.key)?;
        if !self.own.is_empty() {
            let object = observed.as_mut();
            let mut changed = to_value(&**object);
            self.own.iter().for_each(|patch| merge::apply(&mut changed, patch));
            if let Ok(changed) = serde_json::from_value(changed) {
                *object = std::sync::Arc::new(changed);
            }
        }
        Some(observed)
    }

    async fn apply(&mut self, observed: &R::Observed, plan: &Plan<R::Effect>) -> Answer<R> {
        let (writes, failures) = self.engine.preview(plan).await;
        let effects = plan.effects.iter().map(|effect| self.reconciler.perform(observed, effect));
        // What fails here is what writes, or what cannot be reached from here: nothing is known of it.
        let known = |effect: EffectOutcome<EffectResult<R>>| match effect.error {
            Some(_) => EffectOutcome { result: None, error: None },
            None => effect,
        };
        let effects = join_all(effects).await.into_iter().map(known).collect();
        self.problems.extend(plan.problems.iter().map(|problem| problem.message.clone()));
        self.problems.extend(failures.iter().map(ToString::to_string));
        plan.patches.iter().for_each(|patch| self.note(patch));
        let is_written = !writes.is_empty();
        self.writes.extend(writes);
        Answer::Applied(Applied { is_written, is_incomplete: false, failures }, effects)
    }

    /// Notes a patch of the object itself.
    fn note(&mut self, patch: &ObjectPatch) {
        let is_own =
            patch.kind.kind == R::Kind::KIND && patch.key == *self.key && patch.subresource.is_none();
        self.own.extend(is_own.then(|| patch.patch.clone()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::kinds::{Deployment, DeploymentKind, DeploymentStatus};
    use crate::runtime::api_server::{ApiServer, refused};
    use crate::runtime::component::Component;
    use crate::runtime::problem::Problem;
    use crate::runtime::reconciler::{Effect, EffectError, PlanFn, Report, ReportFn};
    use crate::runtime::store::{Store, WrittenStores};
    use crate::runtime::watch::Selection;

    /// A question, or something that would change what is outside.
    #[derive(Debug, Clone, Copy)]
    enum Outside {
        Ask,
        Change,
    }

    impl Effect for Outside {
        type Result = ();
    }

    /// A Deployment, and whether the question was answered.
    #[derive(derive_more::AsRef, derive_more::AsMut)]
    struct Observed(
        #[as_ref(Deployment)]
        #[as_mut]
        Arc<Deployment>,
        bool,
    );

    /// Pauses Deployments, once its question was answered, or once it has changed something outside.
    struct Asking {
        deployments: Arc<Store<DeploymentKind>>,
        is_answered: AtomicBool,
    }

    impl Reconciler for Asking {
        const NAME: &'static str = "asking";
        type Kind = DeploymentKind;
        type Observed = Observed;
        type Settings = Outside;
        type Effect = Outside;
        const PLAN: PlanFn<Self> = |Observed(deployment, is_answered), effect, _| {
            if !is_answered {
                return Plan { effects: vec![*effect], ..Plan::default() };
            }
            let is_told = deployment.status.ready_replicas == Some(7);
            let wanted =
                json!({"spec": {"paused": true}, "metadata": {"labels": {"told": is_told.to_string()}}});
            Plan { patches: ObjectPatch::of(&**deployment, &wanted).into_iter().collect(), ..Plan::default() }
        };
        const REPORT: ReportFn<Self> = |Observed(deployment, _), _, _, outcome, _| {
            let is_done = outcome.effects.iter().any(|effect| effect.result.is_some());
            let ready_replicas = if is_done { Some(7) } else { deployment.status.ready_replicas };
            let status = DeploymentStatus { ready_replicas, ..DeploymentStatus::default() };
            Report { requeue_at_once: is_done, ..Report::new(status, Vec::new()) }
        };

        fn observe(&self, key: &ObjectKey) -> Option<Observed> {
            let deployment = self.deployments.get(&key.namespace, &key.name)?;
            Some(Observed(deployment, self.is_answered.load(Ordering::SeqCst)))
        }

        async fn perform(&self, _: &Observed, effect: &Outside) -> EffectOutcome<()> {
            match effect {
                Outside::Ask => {
                    self.is_answered.store(true, Ordering::SeqCst);
                    EffectOutcome::done(())
                }
                Outside::Change => {
                    let problem = Problem::fault(
                        Component::Whole,
                        crate::api::reason::INVALID_SPEC,
                        "the gate is closed",
                    );
                    EffectOutcome { result: Some(()), error: Some(EffectError::Failed(problem)) }
                }
            }
        }
    }

    #[tokio::test]
    async fn what_follows_from_an_answer_is_said_and_nothing_is_sent() {
        for (effect, first, later) in
            [(Outside::Ask, vec![Some("status")], vec![None]), (Outside::Change, vec![], vec![])]
        {
            let api = ApiServer::start(|_| refused(500, "InternalError", "nothing is to be sent")).await;
            let deployments = Arc::new(Store::new(true));
            let object = json!({
                "kind": "Deployment", "status": {"readyReplicas": 1},
                "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "5"},
            });
            deployments.list_object(serde_json::from_value(object).expect("a Deployment"));
            let mut stores = WrittenStores::default();
            stores.add::<DeploymentKind>(&deployments, &Selection::ALL);
            let engine = Engine::new(api.writer(), stores, "asking");
            let asking = Asking { deployments, is_answered: AtomicBool::new(false) };
            let key = ObjectKey::new("ns", "a");
            let found =
                preview(&asking, &effect, &engine, key, Timestamp::UNIX_EPOCH).await.expect("it is ours");
            let names = |writes: &[Write]| writes.iter().map(|write| write.subresource).collect::<Vec<_>>();
            assert_eq!((names(&found.writes), names(&found.later)), (first, later), "{found:?}");
            // The second reconcile knows what the first one has written.
            assert!(
                found.later.iter().all(|write| write.body["metadata"]["labels"]["told"] == "true"),
                "{found:?}"
            );
            assert_eq!((found.problems, api.lines()), (Vec::new(), Vec::<String>::new()));
        }
    }
}
