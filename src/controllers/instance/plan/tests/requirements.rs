//! Obstacles on an Instance.

use super::*;
use crate::api::reason::Reason;
use crate::api::requirements::{
    ClassProperties, IngressClasses, NodeRoom, Pool, Surroundings, VolumeState, obstacles,
};

/// The reasons and messages of a plan's problems.
fn found(plan: &Plan) -> Vec<(Reason, String)> {
    plan.problems.iter().map(|problem| (problem.reason, problem.message.clone())).collect()
}

/// The same for the Template, as its own condition reports them.
fn of_template(observed: &Observed) -> Vec<(Reason, String)> {
    let spec = &observed.template.as_ref().expect("a Template").spec;
    let around = Surroundings::of_template(&observed.cluster, &|_| VolumeState::Missing, true);
    let all = spec.environment_list.iter().flat_map(|environment| obstacles(spec, environment, &around));
    all.map(|obstacle| (obstacle.reason, obstacle.message)).collect()
}

/// A node that is too small for every environment.
fn small_node() -> NodeRoom {
    let allocatable = [("pods".to_owned(), "10".parse().expect("an amount"))];
    NodeRoom { allocatable: allocatable.into(), ..NodeRoom::default() }
}

fn running(kind: &str, more: Value) -> Observed {
    let mut observed = observed(json!([environment("main", kind, more)]));
    observed.instance = edit(&observed.instance, &json!({"spec": {"running": true}}));
    observed
}

#[test]
fn an_instance_has_the_reasons_and_words_of_its_template() {
    for kind in ["VirtualMachine", "CloudVM", "Standalone"] {
        let mut observed = running(kind, json!({"persistent": true, "storageClassName": "fast"}));
        let cluster = Arc::make_mut(&mut observed.cluster);
        cluster.storage_classes = Some([("slow".to_owned(), ClassProperties::default())].into());
        cluster.nodes = vec![small_node()];
        let plan = planned(&observed);
        assert_eq!(found(&plan), of_template(&observed), "{kind}");
        let reasons: Vec<Reason> = plan.problems.iter().map(|problem| problem.reason).collect();
        assert_eq!(reasons, [reason::STORAGE_CLASS_NOT_FOUND, reason::NO_NODE], "{kind}");
        // The workload is created, so that an autoscaler sees a pending pod.
        assert!(
            names(&plan)
                .iter()
                .any(|name| name.starts_with("Deployment") || name.starts_with("VirtualMachine"))
        );
    }
}

#[test]
fn a_machine_without_cdi_waits_and_one_without_a_disk_does_not() {
    let mut observed = running("VirtualMachine", json!({"persistent": true}));
    Arc::make_mut(&mut observed.cluster).has_cdi = false;
    let plan = planned(&observed);
    assert_eq!(found(&plan), of_template(&observed));
    assert!(
        plan.problems[0].reason == reason::CDI_MISSING && plan.problems[0].waiting,
        "{:?}",
        plan.problems
    );
    assert!(!names(&plan).iter().any(|name| name.starts_with("VirtualMachine")), "it could not be filled");
    let mut diskless = running("VirtualMachine", json!({}));
    Arc::make_mut(&mut diskless.cluster).has_cdi = false;
    assert_eq!(found(&planned(&diskless)), []);
}

#[test]
fn an_instance_waits_for_a_node_from_the_autoscaler() {
    let mut observed = running("Standalone", json!({}));
    let cluster = Arc::make_mut(&mut observed.cluster);
    cluster.nodes = vec![small_node()];
    let allocatable = [("cpu", "8"), ("memory", "16Gi")]
        .map(|(name, amount)| (name.to_owned(), amount.parse().expect("an amount")));
    let node = NodeRoom { allocatable: allocatable.into(), ..NodeRoom::default() };
    cluster.settings.pools = vec![Pool { name: "large".to_owned(), node }];
    let plan = planned(&observed);
    assert_eq!(found(&plan), of_template(&observed));
    assert!(
        plan.problems[0].reason == reason::NODE_ON_DEMAND && plan.problems[0].waiting,
        "{:?}",
        plan.problems
    );
    assert!(
        names(&plan).iter().any(|name| name.starts_with("Deployment")),
        "its pod makes the autoscaler add one"
    );
    // Its pod exists and has no node, and the autoscaler publishes no event.
    let owner = json!({"kind": "ReplicaSet", "name": "my-lab-6d4b", "uid": "r", "controller": true});
    let unschedulable =
        json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"});
    let pod = json!({"metadata": {"name": "my-lab-6d4b-x2", "ownerReferences": [owner]},
        "status": {"phase": "Pending", "conditions": [unschedulable]}});
    observed.pods = vec![Arc::new(serde_json::from_value(pod).expect("lenient"))];
    observed.children.set::<crate::kinds::DeploymentKind>(vec![owned("my-lab", json!({"replicas": 1}))]);
    for second in [0, 600] {
        let now = Timestamp::from_second(second).expect("a time");
        let status = reconciled(&observed, &InstanceConfig::classic(), now).0.status;
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready").expect("Ready");
        assert_eq!((&*ready.reason, status.phase.as_str()), ("WaitingForNode", "Starting"), "{second}");
        observed.instance = edit(&observed.instance, &json!({"status": status}));
    }
}

#[test]
fn an_instance_that_runs_or_is_off_reports_nothing() {
    let lacking = |mut observed: Observed| {
        Arc::make_mut(&mut observed.cluster).nodes = vec![small_node()];
        observed
    };
    let mut ready = lacking(running("Standalone", json!({})));
    let deployment: Arc<Deployment> = owned("my-lab", json!({"replicas": 1}));
    let deployment = edit(&deployment, &json!({"status": {"readyReplicas": 1}}));
    ready.children = Children::default().with([deployment]);
    assert_eq!(found(&planned(&ready)), []);
    let mut off = lacking(running("Standalone", json!({})));
    off.instance = edit(&off.instance, &json!({"spec": {"running": false}}));
    assert_eq!(found(&planned(&off)), []);
}

#[test]
fn an_ingress_class_is_missed_only_once_something_is_wrong() {
    let mut observed = running("Standalone", json!({}));
    Arc::make_mut(&mut observed.cluster).ingress_classes = Some(IngressClasses::Missing);
    assert_eq!(of_template(&observed).len(), 1);
    assert_eq!(found(&planned(&observed)), [], "a controller may take Ingresses without a class");
}

#[test]
fn a_local_image_is_cloned_only_from_where_it_may() {
    let refusal = |image: &str, local: crate::config::LocalVm| {
        let observed =
            observed(json!([environment("main", "LocalVM", json!({"persistent": true, "image": image}))]));
        let config = InstanceConfig { local_vm: local, ..InstanceConfig::classic() };
        let plan = plan(&observed, &config, Timestamp::UNIX_EPOCH);
        plan.problems.first().map(|problem| problem.reason.as_str())
    };
    let on = |namespaces: &[&str]| crate::config::LocalVm {
        enabled: true,
        namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
    };
    assert_eq!(refusal("workspace-w/golden", crate::config::LocalVm::default()), Some("LocalVMDisabled"));
    assert_eq!(refusal("workspace-w/golden", on(&[])), None);
    assert_eq!(refusal("workspace-x/golden", on(&[])), Some("ImageNotAllowed"));
    assert_eq!(refusal("workspace-x/golden", on(&["workspace-x"])), None);
    assert_eq!(refusal("golden", on(&[])), Some("InvalidImage"));
    assert_eq!(refusal("/golden", on(&[])), Some("InvalidImage"));
    assert_eq!(refusal("a/b/c", on(&[])), Some("InvalidImage"));
}

#[test]
fn without_kubevirt_a_machine_is_reachable_and_waits() {
    for kind in ["VirtualMachine", "LocalVM"] {
        let mut observed = observed(json!([environment(
            "main",
            kind,
            json!({"persistent": true, "image": "workspace-w/x"})
        )]));
        Arc::make_mut(&mut observed.cluster).has_kubevirt = false;
        let local_vm = crate::config::LocalVm { enabled: true, namespaces: Vec::new() };
        let config = InstanceConfig { local_vm, ..InstanceConfig::classic() };
        let plan = plan(&observed, &config, Timestamp::UNIX_EPOCH);
        assert_eq!(plan.problems[0].reason, "KubeVirtMissing", "{kind}");
        assert!(plan.problems[0].waiting);
    }
}
