//! Computes the writes of a loop in a live cluster.

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::apply::{Applied, Engine, Write};
use super::plan::{ObjectPatch, Plan, to_value};
use super::reconcile::{Answer, End, Reconcile, Step};
use super::reconciler::{EffectOutcome, EffectResult, Reconciler};
use super::{ObjectKey, merge};
use crate::api::{Kind, Object};

/// The writes of the reconcile of one object.
#[derive(Debug)]
pub struct Previewed {
    /// The name of the loop.
    pub controller: &'static str,
    /// The kind of the object.
    pub kind: &'static str,
    /// The key of the object.
    pub key: ObjectKey,
    /// The writes, ending with the status.
    pub writes: Vec<Write>,
    /// The additional writes of a second reconcile. It follows immediately if an effect has changed something that the
    /// plan depends on.
    pub later: Vec<Write>,
    /// Its problems, and the failed writes.
    pub problems: Vec<String>,
    /// Sentences that explain the writes; none without a write.
    pub remarks: Vec<String>,
}

/// Computes the writes of the driver for an object; `None` if the object is not ours, or is left to the garbage
/// collector. The gate must be closed: effects are carried out as far as they only read. `remarks` returns
/// sentences about the object that explain its writes.
pub async fn preview<R: Reconciler>(
    reconciler: &R,
    settings: &R::Settings,
    engine: &Engine,
    key: ObjectKey,
    now: Timestamp,
    remarks: impl Fn(&R::Observed) -> Vec<String>,
) -> Option<Previewed> {
    let mut first = Preview::new(reconciler, engine, &key, Vec::new());
    let end = first.run(settings, now).await?;
    let Preview { mut own, mut writes, status, problems, .. } = first;
    writes.extend(status);
    let mut later = Vec::new();
    if end == End::Again {
        let mut second = Preview::new(reconciler, engine, &key, own);
        second.run(settings, now).await;
        later.extend(second.writes.into_iter().chain(second.status).filter(|write| !writes.contains(write)));
        own = second.own;
    }
    let is_written = !writes.is_empty() || !later.is_empty();
    let last = is_written.then(|| Preview::new(reconciler, engine, &key, own).observe()).flatten();
    let is_kept = |observed: &&R::Observed| {
        let object: &Object<R::Kind> = (*observed).as_ref();
        !object.is_terminating()
    };
    let remarks = last.iter().filter(is_kept).flat_map(remarks).collect();
    Some(Previewed { controller: R::NAME, kind: R::Kind::KIND, key, writes, later, problems, remarks })
}

/// One reconcile without any write.
struct Preview<'a, R: Reconciler> {
    reconciler: &'a R,
    engine: &'a Engine,
    key: &'a ObjectKey,
    /// The merge patches that would have been sent for the object itself.
    own: Vec<Value>,
    writes: Vec<Write>,
    /// The write of the status: the last one if a report announces the plan.
    status: Option<Write>,
    problems: Vec<String>,
}

impl<'a, R: Reconciler> Preview<'a, R> {
    fn new(reconciler: &'a R, engine: &'a Engine, key: &'a ObjectKey, own: Vec<Value>) -> Self {
        Self { reconciler, engine, key, own, writes: Vec::new(), status: None, problems: Vec::new() }
    }

    /// Runs the steps; `None` if nothing is planned.
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
            Step::Settle(observed, _, outcome) => self.reconciler.settle(observed, outcome),
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

    /// Returns the object, with the merge patches applied.
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
        // An effect fails here if it writes, or if its server cannot be reached. Its outcome is unknown.
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

    /// Records a patch of the object itself.
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
    use crate::runtime::reconciler::{Effect, EffectError, Reconciled, Report};
    use crate::runtime::store::{Store, WrittenStores};
    use crate::runtime::watch::Selection;

    /// A query, or a change outside the cluster.
    #[derive(Debug, Clone, Copy)]
    enum Outside {
        Ask,
        Change,
    }

    impl Effect for Outside {
        type Result = ();
    }

    /// A Deployment, and whether the query got a response.
    #[derive(derive_more::AsRef, derive_more::AsMut)]
    struct Observed(
        #[as_ref(Deployment)]
        #[as_mut]
        Arc<Deployment>,
        bool,
    );

    /// Pauses Deployments after its query got a response, or after it changed something outside the cluster.
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

        fn plan(
            Observed(deployment, is_answered): &Observed,
            effect: &Outside,
            _: Timestamp,
        ) -> Plan<Outside> {
            if !is_answered {
                return Plan { effects: vec![*effect], ..Plan::default() };
            }
            let is_told = deployment.status.ready_replicas == Some(7);
            let wanted =
                json!({"spec": {"paused": true}, "metadata": {"labels": {"told": is_told.to_string()}}});
            Plan { patches: ObjectPatch::of(&**deployment, &wanted).into_iter().collect(), ..Plan::default() }
        }

        fn report(done: &Reconciled<'_, Observed, Outside, Outside>) -> Report<DeploymentKind> {
            let Observed(deployment, _) = done.observed;
            let is_done = done.outcome.effects.iter().any(|effect| effect.result.is_some());
            let ready_replicas = if is_done { Some(7) } else { deployment.status.ready_replicas };
            let status = DeploymentStatus { ready_replicas, ..DeploymentStatus::default() };
            Report { requeue_at_once: is_done, ..Report::new(status, Vec::new()) }
        }

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

    /// Previews a Deployment with this effect. Returns the requests, too.
    async fn previewed(effect: Outside) -> (Previewed, Vec<String>) {
        let api = ApiServer::start(|_| refused(500, "InternalError", "no request is expected")).await;
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
        let remarks = |Observed(deployment, _): &Observed| {
            vec![format!("{:?} replicas are ready", deployment.status.ready_replicas)]
        };
        let found = preview(&asking, &effect, &engine, key, Timestamp::UNIX_EPOCH, remarks)
            .await
            .expect("the Deployment is ours");
        (found, api.lines())
    }

    #[tokio::test]
    async fn a_preview_includes_the_writes_after_a_query_and_sends_nothing() {
        for (effect, first, later) in
            [(Outside::Ask, vec![Some("status")], vec![None]), (Outside::Change, vec![], vec![])]
        {
            let (found, requests) = previewed(effect).await;
            let names = |writes: &[Write]| writes.iter().map(|write| write.subresource).collect::<Vec<_>>();
            assert_eq!((names(&found.writes), names(&found.later)), (first, later), "{found:?}");
            // The second reconcile includes the writes of the first one.
            assert!(
                found.later.iter().all(|write| write.body["metadata"]["labels"]["told"] == "true"),
                "{found:?}"
            );
            assert_eq!((found.problems, requests), (Vec::new(), Vec::<String>::new()));
        }
    }

    #[tokio::test]
    async fn remarks_describe_the_object_after_its_writes_and_are_absent_without_writes() {
        let (written, _) = previewed(Outside::Ask).await;
        assert_eq!(written.remarks, ["Some(7) replicas are ready"]);
        let (unchanged, _) = previewed(Outside::Change).await;
        assert_eq!(unchanged.remarks, [""; 0]);
    }
}
