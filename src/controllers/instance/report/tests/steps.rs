//! The steps of a start, and the state of an Instance that cannot be planned.

use super::*;
use crate::api::instance::StartStep;

/// The step of a container whose pod has this spec and status.
fn step_of(spec: Value, status: Value) -> StartStep {
    let mut observed = observed(container("main"));
    observed.children.set::<DeploymentKind>(vec![owned::<DeploymentKind>("my-lab", json!({"replicas": 1}))]);
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "my-lab-6d4b", "uid": "r", "controller": true});
    let pod = json!({"metadata": {"name": "my-lab-6d4b-x2", "ownerReferences": [owner]}, "spec": spec, "status": status});
    observed.pods = vec![std::sync::Arc::new(serde_json::from_value(pod).expect("lenient"))];
    let (report, _) = reconciled(&observed, &InstanceConfig::classic(), time("2026-01-01T00:00:00Z"));
    report.status.environments[0].step.clone()
}

#[test]
fn the_step_of_a_start_follows_the_pod() {
    let node = || json!({"nodeName": "node-1"});
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status});
    let pending = |conditions: Value| json!({"phase": "Pending", "conditions": conditions});
    for (spec, status, step) in [
        (json!({}), pending(json!([condition("PodScheduled", "False")])), StartStep::Scheduling),
        (json!({}), json!({}), StartStep::Scheduling),
        (node(), pending(json!([condition("PodReadyToStartContainers", "False")])), StartStep::Preparing),
        (node(), pending(json!([condition("PodReadyToStartContainers", "True")])), StartStep::Pulling),
        (node(), json!({"phase": "Running"}), StartStep::Booting),
        // A container that cannot start is at no step.
        (
            node(),
            json!({"phase": "Pending", "containerStatuses": [
                {"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}]}),
            StartStep::Unset,
        ),
    ] {
        assert_eq!(step_of(spec, status.clone()), step, "{status}");
    }
}

#[test]
fn an_environment_that_is_ready_or_imports_its_disk_is_at_no_step() {
    assert_eq!(reported(container("main"), json!({}), 1).status.environments[0].step, StartStep::Unset);
    for (printed, ready, step) in [
        ("Provisioning", false, StartStep::Unset),
        ("Starting", false, StartStep::Scheduling),
        ("Running", true, StartStep::Unset),
    ] {
        let report = of_machine(json!({"printableStatus": printed, "ready": ready}), None, None);
        assert_eq!(report.status.environments[0].step, step, "{printed}");
    }
}

#[test]
fn an_instance_without_its_template_keeps_the_state_of_its_workload() {
    let environments =
        json!([{"name": "main", "phase": "Ready", "url": "https://labs/x/", "ip": "10.0.0.7"}]);
    let with = |workload: Option<i32>, status: Value| {
        let mut observed = observed(container("main"));
        observed.template = None;
        observed.instance = edit(&observed.instance, &json!({"status": status}));
        let deployment = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
        let deployment =
            workload.map(|ready| edit(&deployment, &json!({"status": {"readyReplicas": ready}})));
        observed.children.set::<DeploymentKind>(deployment);
        reconciled(&observed, &InstanceConfig::classic(), time("2026-01-01T00:00:00Z")).0
    };
    let ready = |report: &Report<InstanceKind>| {
        let conditions = &report.status.conditions;
        let of = |type_: &str| {
            let found = conditions.iter().find(|condition| *condition.type_ == *type_).expect("a condition");
            format!("{} {}", found.status, found.reason)
        };
        (report.status.phase.to_string(), of("Ready"), of("Reconciled"))
    };
    let expected =
        |phase: &str, ready: &str| (phase.to_owned(), ready.to_owned(), "False TemplateNotFound".to_owned());
    let status = json!({"phase": "Ready", "environments": environments});
    let runs = with(Some(1), status.clone());
    assert_eq!(ready(&runs), expected("Ready", "True Ready"));
    assert_eq!(runs.status.open_url(), "https://labs/x/", "the page still opens it");
    assert_eq!(ready(&with(Some(0), status.clone())), expected("Starting", "False Starting"));
    // Without a workload, or before the first environment, nothing can be created.
    let blocked = expected("CreationLoopBackoff", "False CreationLoopBackoff");
    assert_eq!(ready(&with(None, status)), blocked);
    assert_eq!(ready(&with(Some(1), json!({}))), blocked);
}
