//! Tests of the rules for Instances.

mod managers;
mod records;
mod reserving;
mod trust;

use serde_json::{Value, json};

use super::quota::{Settings, validate};
use crate::config::Layout;
use crate::webhook::decision::Decision;
use crate::webhook::fixture::{TestCluster, instance, merged, request, tenant};
use crate::webhook::review::{Operation, Request};

const NAMESPACE: &str = "tenant-ada";
const OURSELVES: &str = "system:serviceaccount:crownlabs-system:crownlabs";

fn settings() -> Settings {
    Settings {
        enabled: true,
        require_enrolment: true,
        own_user: OURSELVES.to_owned(),
        personal_workspaces: true,
        layout: Layout::Classic,
    }
}

fn resources(cpu: i64, memory: &str, more: &Value) -> Value {
    merged(json!({"cpu": cpu, "reservedCPUPercentage": 10, "memory": memory}), more)
}

/// The Workspace `tea` with this quota and a Template `small` of 1 CPU and 1Gi, and its user `ada`.
fn course(quota: &Value) -> TestCluster {
    TestCluster::default().with_workspace("tea", "", quota).with_tenant("ada", &["tea:user"]).with_template(
        "workspace-tea",
        "small",
        "tea",
        &[resources(1, "1Gi", &json!({}))],
    )
}

fn quota(instances: i64) -> Value {
    json!({"cpu": "100", "memory": "100Gi", "instances": instances})
}

fn small(name: &str, running: bool) -> Value {
    instance(NAMESPACE, name, "workspace-tea/small", running)
}

fn creation(new: Value) -> Request {
    request("ada", "instances", Value::Null, new)
}

fn decide(request: &Request, cluster: &TestCluster) -> Decision {
    validate(request, &settings(), cluster, &[]).0
}

/// The message of a refusal; empty for an admission.
fn refusal(decision: &Decision) -> String {
    match &decision.outcome {
        Ok(patch) => {
            assert!(patch.is_empty());
            String::new()
        }
        Err(denial) => {
            assert_eq!((denial.code, denial.reason), (403, "Forbidden"), "{denial}");
            denial.message.clone()
        }
    }
}

#[test]
fn each_exceeded_limit_is_named() {
    let gpu = "nvidia.com/gpu";
    let all = json!({"disk": "20Gi", "otherResources": {gpu: "1"}});
    let big = [resources(2, "3Gi", &all), resources(1, "512Mi", &json!({}))];
    // The quota, and the message about two Instances of 3 CPUs, 3.5Gi, 20Gi of disk and a GPU each.
    for (quota, expected) in [
        (
            json!({"cpu": "6", "memory": "7Gi", "instances": 2, "disk": "40Gi", "otherResources": {gpu: "2"}}),
            "",
        ),
        (
            json!({"cpu": 6, "memory": "7168Mi", "instances": 2, "disk": "40Gi", "otherResources": {gpu: 2}}),
            "",
        ),
        (
            json!({"cpu": "6", "memory": "7Gi", "instances": 1, "disk": "40Gi", "otherResources": {gpu: "2"}}),
            "quota exceeded: Instances (2 > 1)",
        ),
        (
            json!({"cpu": "5500m", "memory": "7Gi", "instances": 2, "disk": "40Gi", "otherResources": {gpu: "2"}}),
            "quota exceeded: CPU (6 > 5500m)",
        ),
        (
            json!({"cpu": "6", "memory": "7G", "instances": 2, "disk": "40Gi", "otherResources": {gpu: "2"}}),
            "quota exceeded: Memory (7Gi > 7G)",
        ),
        (
            json!({"cpu": "6", "memory": "7Gi", "instances": 2, "disk": "39Gi", "otherResources": {gpu: "2"}}),
            "quota exceeded: Disk (40Gi > 39Gi)",
        ),
        (
            json!({"cpu": "6", "memory": "7Gi", "instances": 2, "disk": "40Gi", "otherResources": {gpu: "1"}}),
            "quota exceeded: nvidia.com/gpu (2 > 1)",
        ),
        (
            json!({"cpu": "6", "memory": "7Gi", "instances": 2, "disk": "40Gi"}),
            "quota exceeded: nvidia.com/gpu (2 > 0)",
        ),
        // The name of the resource in a ResourceQuota.
        (
            json!({"cpu": "6", "memory": "7Gi", "instances": 2,
                "otherResources": {"requests.nvidia.com/gpu": "2"}}),
            "",
        ),
        // Zero means no limit, except for extended resources.
        (json!({"cpu": "0", "memory": "0", "instances": 0, "disk": "0", "otherResources": {gpu: "2"}}), ""),
        (
            json!({"cpu": "1", "memory": "1Gi", "instances": 1, "disk": "1Gi", "otherResources": {gpu: "0"}}),
            "quota exceeded: Instances (2 > 1), CPU (6 > 1), Memory (7Gi > 1Gi), Disk (40Gi > 1Gi), \
             nvidia.com/gpu (2 > 0)",
        ),
    ] {
        let cluster = course(&quota)
            .with_template("workspace-tea", "big", "tea", &big)
            .with_instance(&instance(NAMESPACE, "one", "workspace-tea/big", true));
        let decision = decide(&creation(instance(NAMESPACE, "two", "workspace-tea/big", true)), &cluster);
        assert_eq!(refusal(&decision), expected, "{quota}");
    }
}

#[test]
fn an_invalid_workspace_refuses_no_request() {
    let gpu = resources(1, "1Gi", &json!({"otherResources": {"nvidia.com/gpu": "1"}}));
    let cluster = course(&json!("nothing")).with_template("workspace-tea", "gpu", "tea", &[gpu]);
    let decision = decide(&creation(instance(NAMESPACE, "one", "workspace-tea/gpu", true)), &cluster);
    assert_eq!(refusal(&decision), "");
}

#[test]
fn only_starts_are_validated() {
    let full = course(&quota(1)).with_instance(&small("one", true));
    let without = |member: &str| {
        let mut object = small("two", true);
        object["spec"].as_object_mut().expect("a spec").remove(member);
        object
    };
    let unset = merged(small("two", false), &json!({"spec": {"prettyName": "x"}}));
    let null = {
        let mut object = small("two", true);
        object["spec"]["running"] = Value::Null;
        object
    };
    let update = |old: Value, new: Value| request("ada", "instances", old, new);
    for (case, request, refused) in [
        ("created running", creation(small("two", true)), true),
        ("created without saying so", creation(without("running")), true),
        ("created with null", creation(null.clone()), true),
        ("created stopped", creation(small("two", false)), false),
        ("started", update(small("two", false), small("two", true)), true),
        ("started by leaving it out", update(small("two", false), without("running")), true),
        ("stopped", update(small("two", true), small("two", false)), false),
        ("still running", update(small("two", true), unset.clone()), false),
        (
            "running, renamed",
            update(small("two", true), merged(unset, &json!({"spec": {"running": true}}))),
            false,
        ),
        ("still stopped", update(small("two", false), small("two", false)), false),
        ("without spec", creation(json!({"metadata": {"name": "two", "namespace": NAMESPACE}})), false),
    ] {
        let message = refusal(&decide(&request, &full));
        assert_eq!(message, if refused { "quota exceeded: Instances (2 > 1)" } else { "" }, "{case}");
    }
    let deletion = Request { operation: Operation::Delete, ..creation(small("two", true)) };
    assert_eq!(decide(&deletion, &full), Decision::allowed());
}

#[test]
fn the_rule_applies_to_all_users_but_our_own() {
    let full = course(&quota(1)).with_instance(&small("one", true));
    let of = |user: &str| request(user, "instances", Value::Null, small("two", true));
    let answer = |user: &str, settings: &Settings| validate(&of(user), settings, &full, &[]);
    assert!(!answer("ada", &settings()).0.is_allowed());
    // The Instance counts against the quota of the Tenant, even if a manager or an administrator creates it.
    assert!(!answer("teacher", &settings()).0.is_allowed());
    assert_eq!(answer(OURSELVES, &settings()), (Decision::allowed(), None));
    assert_eq!(answer("ada", &Settings { enabled: false, ..settings() }), (Decision::allowed(), None));
}

#[test]
fn running_instances_of_the_namespace_and_the_workspace_count() {
    let cluster = || {
        course(&quota(1))
            .with_workspace("coffee", "", &quota(1))
            .with_template("workspace-coffee", "other", "coffee", &[resources(9, "9Gi", &json!({}))])
            .with_template("workspace-more", "tea-too", "tea", &[resources(1, "1Gi", &json!({}))])
    };
    let elsewhere = instance("tenant-eve", "one", "workspace-tea/small", true);
    let other = instance(NAMESPACE, "one", "workspace-coffee/other", true);
    let labelled = |template: &str, workspace: &str| {
        let label = json!({"metadata": {"labels": {"crownlabs.polito.it/workspace": workspace}}});
        merged(instance(NAMESPACE, "one", template, true), &label)
    };
    let of_eve = merged(
        small("one", true),
        &json!({"spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "eve"}}}),
    );
    for (case, existing, refused) in [
        ("the same Template", small("one", true), true),
        ("stopped", small("one", false), false),
        ("itself", small("two", true), false),
        ("in another namespace", elsewhere, false),
        ("of another Workspace", other, false),
        (
            "of the same Workspace, from another namespace",
            instance(NAMESPACE, "one", "workspace-more/tea-too", true),
            true,
        ),
        ("without the label, as when it was made just now", small("one", true), true),
        ("with the label of another Workspace", labelled("workspace-tea/small", "coffee"), true),
        ("of another Workspace with this label", labelled("workspace-coffee/other", "tea"), false),
        ("for another Tenant, as users can write it", of_eve, true),
        ("of a Template that is gone", instance(NAMESPACE, "one", "workspace-tea/gone", true), true),
        ("of a Template that is gone, and of this Workspace", labelled("workspace-tea/gone", "tea"), true),
        (
            "of a Template that is gone, and of another Workspace",
            labelled("workspace-tea/gone", "coffee"),
            false,
        ),
    ] {
        let decision = decide(&creation(small("two", true)), &cluster().with_instance(&existing));
        assert_eq!(decision.is_allowed(), !refused, "{case}: {decision:?}");
    }
}

#[test]
fn an_instance_without_template_counts_but_uses_nothing() {
    let tight = json!({"cpu": "1", "memory": "1Gi", "instances": 2});
    let cluster = course(&tight).with_instance(&instance(NAMESPACE, "one", "workspace-tea/gone", true));
    let decision = decide(&creation(small("two", true)), &cluster);
    assert_eq!(refusal(&decision), "");
    let warning =
        "the Template workspace-tea/gone of the Instance one does not exist: its resources are not counted";
    assert_eq!(decision.warnings, [warning]);
}

#[test]
fn without_template_or_workspace_the_start_is_refused() {
    let gone = course(&quota(9)).without_template("workspace-tea", "small");
    let missing = TestCluster::default().with_template("workspace-x", "t", "absent", &[]);
    for (cluster, template, words) in [
        (
            &gone,
            "workspace-tea/small",
            "the Template workspace-tea/small does not exist, so no quota is known",
        ),
        (&missing, "workspace-x/t", "the Workspace absent does not exist, so no quota is known"),
    ] {
        let decision = decide(&creation(instance(NAMESPACE, "one", template, true)), cluster);
        assert_eq!(refusal(&decision), words);
    }
    let broken = merged(small("one", true), &json!({"spec": {"running": "yes"}}));
    let denial = decide(&creation(broken.clone()), &gone).outcome.expect_err("refused");
    assert_eq!((denial.code, denial.reason), (400, "BadRequest"));
    // An invalid stored Instance may be repaired.
    let cluster = course(&quota(9));
    assert!(decide(&request("ada", "instances", broken, small("one", true)), &cluster).is_allowed());
    // A Template that names no Workspace causes a warning.
    let free = course(&quota(9)).with_template("workspace-x", "free", "", &[resources(1, "1Gi", &json!({}))]);
    let decision = decide(&creation(instance(NAMESPACE, "one", "workspace-x/free", true)), &free);
    assert_eq!(refusal(&decision), "");
    assert_eq!(decision.warnings, ["the Template workspace-x/free names no Workspace: no quota is checked"]);
}

#[test]
fn a_personal_workspace_without_a_quota_uses_the_quota_of_the_namespace() {
    let decide_with = |more: &Value| {
        let cluster = course(&quota(9))
            .with_tenant_json(&merged(tenant("ada", &["tea:user"]), more))
            .with_template(NAMESPACE, "mine", "personal", &[resources(64, "900Gi", &json!({}))]);
        refusal(&decide(&creation(instance(NAMESPACE, "one", "tenant-ada/mine", true)), &cluster))
    };
    assert_eq!(decide_with(&json!({"spec": {"createPersonalWorkspace": true}})), "");
    for without in [json!({}), json!({"spec": {"createPersonalWorkspace": false}})] {
        assert_eq!(decide_with(&without), "the Tenant ada has no personal workspace", "{without}");
    }
}

#[test]
fn a_personal_workspace_is_for_its_tenant_alone() {
    let owner = |instances: i64| {
        merged(
            tenant("ada", &["tea:user"]),
            &json!({"spec": {"personalWorkspace": {"cpu": 1, "memory": "1Gi", "instances": instances}}}),
        )
    };
    let each = [resources(1, "1Gi", &json!({}))];
    let cluster = |instances: i64| {
        course(&quota(9))
            .with_tenant_json(&owner(instances))
            .with_template(NAMESPACE, "mine", "personal", &each)
            .with_template(NAMESPACE, "sly", "tea", &each)
            .with_template(NAMESPACE, "plain", "", &each)
            .with_template("workspace-tea", "lent", "personal", &each)
    };
    let of = |template: &str, name: &str| creation(instance(NAMESPACE, name, template, true));
    for template in ["tenant-ada/mine", "tenant-ada/sly", "tenant-ada/plain", "workspace-tea/lent"] {
        let full = cluster(2).with_instance(&instance(NAMESPACE, "one", "tenant-ada/mine", true));
        let message = refusal(&decide(&of(template, "two"), &full));
        assert_eq!(message, "quota exceeded: CPU (2 > 1), Memory (2Gi > 1Gi)", "{template}");
        assert_eq!(refusal(&decide(&of(template, "one"), &full)), "", "{template}");
    }
    // The quota of a course is separate.
    let busy = cluster(1).with_instance(&instance(NAMESPACE, "one", "tenant-ada/mine", true));
    assert_eq!(refusal(&decide(&creation(small("two", true)), &busy)), "");
    // A Tenant without a personal workspace, the wrong namespace, and a Tenant that does not exist.
    assert_eq!(
        refusal(&decide(&of("tenant-ada/mine", "one"), &cluster(1).with_tenant("ada", &[]))),
        "the Tenant ada has no personal workspace"
    );
    let eve = json!({"spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "eve"}}});
    let for_eve = merged(instance(NAMESPACE, "one", "tenant-ada/mine", true), &eve);
    assert_eq!(
        refusal(&decide(&creation(for_eve), &cluster(1))),
        "the personal workspace of \"eve\" is for Instances in tenant-eve"
    );
    let in_eves = merged(instance("tenant-eve", "one", "tenant-ada/mine", true), &eve);
    assert_eq!(
        refusal(&decide(&creation(in_eves), &cluster(1))),
        "the Template tenant-ada/mine belongs to another Tenant: use a Template in tenant-eve"
    );
    let lent = merged(instance("tenant-eve", "one", "workspace-tea/lent", true), &eve);
    assert_eq!(refusal(&decide(&creation(lent), &cluster(1))), "the Tenant \"eve\" does not exist");
    // With personal workspaces disabled, the Workspace that the Template names counts.
    let off = Settings { personal_workspaces: false, ..settings() };
    assert!(validate(&of("tenant-ada/sly", "one"), &off, &cluster(1), &[]).0.is_allowed());
    assert_eq!(
        refusal(&validate(&of("tenant-ada/mine", "one"), &off, &cluster(1), &[]).0),
        "the Workspace personal does not exist, so no quota is known"
    );
}
