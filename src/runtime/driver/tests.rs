//! Tests of the order of reads and writes in a reconcile, and of the time of the next one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::*;
use crate::api::meta::Metadata;
use crate::kinds::{Deployment, DeploymentKind, DeploymentStatus, ServiceKind};
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::component::Component;
use crate::runtime::context::Connections;
use crate::runtime::plan::{Desired, KindInfo, Manifest, ObjectPatch, Ownership, Plan, Requeue};
use crate::runtime::reconciler::{Measurement, Reconciled};
use crate::runtime::store::{Store, WrittenStores};
use crate::runtime::watch::Selection;

/// The time between two reconciles of an unchanged object.
const PERIOD: Duration = Duration::from_hours(1);

/// A Deployment, and whether a Service with its name exists.
#[derive(derive_more::AsRef, derive_more::AsMut)]
struct Observed(
    #[as_ref(Deployment)]
    #[as_mut]
    Arc<Deployment>,
    bool,
);

/// The plan of the loop, and whether it requests an immediate requeue.
#[derive(Default)]
struct Script {
    plan: Plan,
    /// The plan from the second one on, if it differs.
    then: Option<Plan>,
    at_once: bool,
    /// The generation that the last report was about.
    reported: Option<i64>,
}

/// Writes a plan, and reports in the status whether there is a Service.
struct Scripted {
    deployments: Arc<Store<DeploymentKind>>,
    services: Arc<Store<ServiceKind>>,
}

impl Reconciler for Scripted {
    const NAME: &'static str = "scripted";
    const FINALIZER: Option<&'static str> = Some("example.org/scripted");
    type Kind = DeploymentKind;
    type Observed = Observed;
    type Settings = Mutex<Script>;
    type Effect = ();

    fn plan(_: &Observed, script: &Mutex<Script>, _: Timestamp) -> Plan {
        let mut script = script.lock().expect("no panic");
        let then = script.then.take().unwrap_or_else(|| script.plan.clone());
        std::mem::replace(&mut script.plan, then)
    }

    fn report(done: &Reconciled<'_, Observed, Mutex<Script>>) -> Report<DeploymentKind> {
        let Observed(deployment, has_service) = done.observed;
        let mut script = done.settings.lock().expect("no panic");
        script.reported = deployment.metadata.generation;
        let status =
            DeploymentStatus { ready_replicas: Some((*has_service).into()), ..DeploymentStatus::default() };
        let labels = vec![("kind", "odd".to_owned())];
        Report {
            requeue_at_once: script.at_once,
            counters: vec![Counter { name: "reports_total", labels: labels.clone() }],
            measurements: vec![Measurement { name: "written_seconds", labels, value: 1.0 }],
            ..Report::new(status, Vec::new())
        }
    }

    fn read_first(&self) -> Vec<(KindInfo, Selection)> {
        vec![(KindInfo::of::<ServiceKind>(), Selection::ALL)]
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let has_service = self.services.get(&key.namespace, &key.name).is_some();
        Some(Observed(self.deployments.get(&key.namespace, &key.name)?, has_service))
    }
}

fn deployment(version: u32, ready: i32) -> Value {
    json!({
        "kind": "Deployment", "status": {"readyReplicas": ready},
        "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": version.to_string()},
    })
}

/// Responses of an API server that accepts every request.
fn accept(asked: &Asked) -> (u16, Value) {
    match asked.body["status"]["readyReplicas"].as_i64() {
        Some(ready) => (200, deployment(8, i32::try_from(ready).expect("a number"))),
        None if asked.is("POST") => {
            let metadata = json!({"name": "a", "namespace": "ns", "uid": "s1", "resourceVersion": "7"});
            (201, json!({"kind": "Service", "metadata": metadata}))
        }
        None if asked.name() == "services" => (200, json!({"items": []})),
        None => (200, deployment(6, 0)),
    }
}

/// Creates a driver of the Deployment `a`, whose status says that there is no Service.
fn driver(api: &ApiServer) -> Driver<Scripted> {
    let (deployments, services) = (Arc::new(Store::new(true)), Arc::new(Store::new(true)));
    deployments.list_object(serde_json::from_value(deployment(5, 0)).expect("a Deployment"));
    let mut stores = WrittenStores::default();
    stores.add::<DeploymentKind>(&deployments, &Selection::ALL);
    stores.add::<ServiceKind>(&services, &Selection::ALL);
    let connections = Connections {
        client: api.client(),
        writer: api.writer(),
        identity: "tests".to_owned(),
        resync: (PERIOD, PERIOD),
    };
    let context = connections.context("scripted", "Scripted", stores);
    Driver::new(Scripted { deployments, services }, Mutex::default(), context)
}

/// Reconciles the Deployment with this plan; also returns the requests.
async fn reconciled(
    driver: &Driver<Scripted>,
    api: &ApiServer,
    script: Script,
) -> (Result<Action, ReconcileError>, Vec<Asked>) {
    *driver.settings.lock().expect("no panic") = script;
    let action = driver.reconcile(&ObjectKey::new("ns", "a")).await;
    (action, api.asked())
}

/// A plan with a Service that has the name of the Deployment.
fn with_service() -> Plan {
    let kind = KindInfo::of::<ServiceKind>();
    let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    let service = Desired {
        kind,
        key: ObjectKey::new("ns", "a"),
        component: Component::Whole,
        wave: 0,
        is_guarded: false,
        manifest: Some(Manifest::new(kind, &metadata, &json!({}))),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        owner: OwnerReference::default(),
        ownership: Ownership::Kept,
        identity: BTreeMap::new(),
        known_by: None,
        members: Vec::new(),
        fields: Value::Null,
    };
    Plan { ensure: vec![service], ..Plan::default() }
}

#[tokio::test]
async fn a_report_includes_the_writes_before_it() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let shown = |name: &str| {
        let begin = format!("{name}{{kind=\"odd\"}} ");
        handle.render().lines().find_map(|line| line.strip_prefix(&begin)?.parse::<u32>().ok())
    };
    let api = ApiServer::start(accept).await;
    let driver = driver(&api);
    // Nothing is written, so no duration is measured.
    let (action, asked) = reconciled(&driver, &api, Script::default()).await;
    assert_eq!((action, asked), (Ok(Action::RequeueAfter(PERIOD)), Vec::new()));
    assert_eq!((shown("reports_total"), shown("written_seconds_count")), (Some(1), None));
    let (action, asked) =
        reconciled(&driver, &api, Script { plan: with_service(), ..Script::default() }).await;
    assert_eq!(action, Ok(Action::RequeueAfter(PERIOD)));
    assert_eq!(asked.len(), 2);
    assert!(asked[0].is("POST /api/v1/namespaces/ns/services?"), "{asked:?}");
    assert!(asked[1].is("PATCH /apis/apps/v1/namespaces/ns/deployments/a/status?"), "{asked:?}");
    assert_eq!(asked[1].body["status"]["readyReplicas"], 1);
    assert_eq!((shown("reports_total"), shown("written_seconds_count")), (Some(2), Some(1)));
}

/// Returns a version of the Deployment with this uid and generation.
fn changed(version: u32, uid: &str, generation: i64) -> Value {
    let mut changed = deployment(version, 0);
    changed["metadata"]["uid"] = uid.into();
    changed["metadata"]["generation"] = generation.into();
    changed
}

#[tokio::test]
async fn a_report_is_about_the_spec_of_the_plan() {
    let (later, at_once) = (Some(Action::RequeueAfter(PERIOD)), Some(Action::RequeueAfter(Duration::ZERO)));
    let (accepted, conflict) = (200, 409);
    let paused = json!({"paused": true});
    // The planned change, the response, the object afterwards, the generation that the report is about, and the time of
    // the next reconcile (`None`: after the backoff).
    for (spec, code, (uid, generation), reported, expected) in [
        (&Value::Null, accepted, ("u1", 3), Some(3), later),
        (&Value::Null, accepted, ("u1", 4), Some(3), at_once),
        (&paused, accepted, ("u1", 4), Some(4), later),
        (&paused, accepted, ("u1", 5), Some(4), at_once),
        (&paused, conflict, ("u1", 4), Some(3), None),
        (&Value::Null, accepted, ("u2", 1), None, at_once),
    ] {
        let store = Arc::new(OnceLock::<Arc<Store<DeploymentKind>>>::new());
        let seen = Arc::clone(&store);
        let api = ApiServer::start(move |asked| {
            if asked.name() != "a" {
                return accept(asked);
            }
            // The watch event arrives before the response.
            let seen = seen.get().expect("the store is set");
            seen.apply_event(serde_json::from_value(changed(7, uid, generation)).expect("a Deployment"));
            if code == conflict {
                return refused(code, "Conflict", "the object has been modified");
            }
            (code, changed(7, uid, generation))
        })
        .await;
        let driver = driver(&api);
        let deployments = Arc::clone(&driver.reconciler.deployments);
        let planned: Deployment = serde_json::from_value(changed(6, "u1", 3)).expect("a Deployment");
        deployments.apply_event(planned.clone());
        store.set(deployments).expect("it is set once");
        let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec});
        let patches = vec![ObjectPatch::exactly(&planned, patch)];
        let plan = Plan { patches, ..Plan::default() };
        let (action, _) = reconciled(&driver, &api, Script { plan, ..Script::default() }).await;
        let script = driver.settings.lock().expect("no panic");
        assert_eq!((script.reported, action.ok()), (reported, expected), "{spec} {code} {uid} {generation}");
    }
}

#[tokio::test]
async fn a_new_leader_reads_first_and_retries_with_growing_pauses() {
    let attempts = AtomicUsize::new(0);
    let api = ApiServer::start(move |asked| match attempts.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => refused(503, "ServiceUnavailable", "too busy"),
        _ => accept(asked),
    })
    .await;
    let begin = Instant::now();
    let driver = driver(&api);
    let prepared = tokio::time::timeout(Duration::from_secs(10), driver.prepare()).await;
    prepared.expect("the third attempt succeeds");
    assert_eq!(api.lines(), ["GET /api/v1/services?limit=250"; 3]);
    assert!(begin.elapsed() >= FIRST_READ_RETRY + 2 * FIRST_READ_RETRY, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn objects_to_confirm_are_read_before_the_plan_is_carried_out() {
    let api = ApiServer::start(accept).await;
    let confirm = vec![(KindInfo::of::<DeploymentKind>(), ObjectKey::new("ns", "a"))];
    let plan = Plan { confirm, ..with_service() };
    let (_, asked) = reconciled(&driver(&api), &api, Script { plan, ..Script::default() }).await;
    assert_eq!(asked[0].line, "GET /apis/apps/v1/namespaces/ns/deployments/a");
    assert!(asked[1].is("POST /api/v1/namespaces/ns/services?"), "{asked:?}");
}

#[tokio::test]
async fn the_preconditions_of_a_plan_are_read_before_anything_is_written() {
    let mut unseen = deployment(6, 0);
    unseen["metadata"]["name"] = "b".into();
    for (items, is_so) in [(vec![deployment(5, 0)], true), (vec![deployment(5, 0), unseen], false)] {
        let api = ApiServer::start(move |asked| match asked.name() {
            "deployments" => (200, json!({"items": items})),
            _ => accept(asked),
        });
        let api = api.await;
        let preconditions = vec![Precondition::Within(KindInfo::of::<DeploymentKind>(), "ns".to_owned())];
        let plan = Plan { preconditions, ..with_service() };
        let (action, asked) = reconciled(&driver(&api), &api, Script { plan, ..Script::default() }).await;
        assert!(asked[0].is("GET /apis/apps/v1/namespaces/ns/deployments?"), "{asked:?}");
        assert_eq!((asked.iter().any(|asked| asked.is("POST")), action.is_ok()), (is_so, is_so), "{asked:?}");
    }
}

#[tokio::test]
async fn nothing_is_deleted_that_the_plan_after_the_check_keeps() {
    let api = ApiServer::start(|asked| match asked.name() {
        "deployments" => (200, json!({"items": [deployment(5, 0)]})),
        _ => accept(asked),
    })
    .await;
    let kind = KindInfo::of::<DeploymentKind>();
    let preconditions = || vec![Precondition::Within(kind, "ns".to_owned())];
    let service: Metadata =
        serde_json::from_value(json!({"name": "a", "namespace": "ns", "uid": "s1"})).expect("metadata");
    let removal = Removal::seen(KindInfo::of::<ServiceKind>(), &service, Component::Whole);
    let none = Plan::default;
    for (plan, verb) in [
        (Plan { remove: vec![removal.with_preconditions(preconditions())], ..none() }, "DELETE"),
        (Plan { preconditions: preconditions(), ..with_service() }, "POST"),
        (
            Plan {
                remove_finalizer: Scripted::FINALIZER,
                finalizer_preconditions: preconditions(),
                ..none()
            },
            "PATCH /apis/apps/v1/namespaces/ns/deployments/a?",
        ),
    ] {
        for then in [plan.clone(), none()] {
            let driver = driver(&api);
            let mut going = deployment(5, 0);
            going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            going["metadata"]["finalizers"] = json!([Scripted::FINALIZER]);
            driver.reconciler.deployments.apply_event(serde_json::from_value(going).expect("a Deployment"));
            let is_kept = then != plan;
            let script = Script { plan: plan.clone(), then: Some(then), ..Script::default() };
            let (_, asked) = reconciled(&driver, &api, script).await;
            assert!(asked[0].is("GET /apis/apps/v1/namespaces/ns/deployments?"), "{asked:?}");
            assert_eq!(!asked.iter().any(|asked| asked.is(verb)), is_kept, "{verb}: {asked:?}");
        }
    }
}

#[tokio::test]
async fn an_object_being_deleted_is_requeued_only_if_its_plan_names_a_time() {
    let api = ApiServer::start(accept).await;
    let soon = Duration::from_secs(5);
    for (requeue, expected) in [
        (Requeue::Resync, Action::AwaitChange),
        (Requeue::OnChange, Action::AwaitChange),
        (Requeue::After(soon), Action::RequeueAfter(soon)),
    ] {
        let driver = driver(&api);
        let mut going = deployment(6, 0);
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        going["metadata"]["finalizers"] = json!(["example.org/scripted"]);
        let going = serde_json::from_value(going).expect("a Deployment");
        driver.reconciler.deployments.apply_event(going);
        let plan = Plan { requeue, ..Plan::default() };
        let (action, _) = reconciled(&driver, &api, Script { plan, ..Script::default() }).await;
        assert_eq!(action, Ok(expected), "{requeue:?}");
    }
}

#[tokio::test]
async fn the_next_reconcile_depends_on_the_plan_the_report_and_the_failures() {
    let quota = || refused(403, "Forbidden", "exceeded quota: small");
    let busy = || refused(503, "ServiceUnavailable", "too busy");
    let soon = Duration::from_secs(5);
    let again = |after| Some(Action::RequeueAfter(after));
    for (requeue, at_once, refusal, expected) in [
        (Requeue::Resync, false, None, again(PERIOD)),
        (Requeue::Resync, true, None, again(Duration::ZERO)),
        (Requeue::After(soon), false, None, again(soon)),
        (Requeue::After(soon), true, None, again(Duration::ZERO)),
        (Requeue::OnChange, false, None, Some(Action::AwaitChange)),
        (Requeue::OnChange, true, None, again(Duration::ZERO)),
        (Requeue::Resync, false, Some(quota()), again(REFUSED_RETRY)),
        (Requeue::After(soon), false, Some(quota()), again(soon)),
        (Requeue::OnChange, false, Some(quota()), again(REFUSED_RETRY)),
        (Requeue::OnChange, false, Some(busy()), None),
        (Requeue::After(soon), true, Some(busy()), None),
    ] {
        let refusal_of_posts = refusal.clone();
        let api = ApiServer::start(move |asked| match &refusal_of_posts {
            Some(refusal) if asked.is("POST") => refusal.clone(),
            _ => accept(asked),
        })
        .await;
        let plan = Plan { requeue, ..with_service() };
        let (action, _) =
            reconciled(&driver(&api), &api, Script { plan, at_once, ..Script::default() }).await;
        assert_eq!(action.as_ref().ok(), expected.as_ref(), "{requeue:?} {at_once} {refusal:?}: {action:?}");
        if let Err(error) = action {
            assert_eq!(error.message, "Service a: too busy");
        }
    }
}

#[tokio::test]
async fn a_name_conflict_is_not_a_failed_write_and_is_checked_again_within_a_minute() {
    let api = ApiServer::start(accept).await;
    let driver = driver(&api);
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "b", "uid": "u2", "controller": true});
    let metadata = json!({"name": "a", "namespace": "ns", "uid": "s2", "resourceVersion": "6", "ownerReferences": [owner]});
    let service = json!({"metadata": metadata, "spec": {}});
    driver.reconciler.services.apply_event(serde_json::from_value(service).expect("a Service"));
    let (action, asked) =
        reconciled(&driver, &api, Script { plan: with_service(), ..Script::default() }).await;
    assert_eq!(action, Ok(Action::RequeueAfter(REFUSED_RETRY)));
    assert!(!asked.iter().any(|asked| asked.is("POST") || asked.name() == "services"), "{asked:?}");
}
