//! The Templates and volumes that a Tenant may use, whatever an Instance refers to.

use serde_json::{Value, json};

use super::{NAMESPACE, course, creation, decide, quota, refusal, resources, settings, small};
use crate::webhook::fixture::{TestCluster, instance, merged, request, tenant};
use crate::webhook::instance::quota::{Settings, validate};
use crate::webhook::instance::tenant_ref;

#[test]
fn a_tenant_uses_templates_of_the_own_workspaces_only() {
    let of = |user: &[&str]| course(&quota(9)).with_tenant("ada", user);
    let judge = |settings: &Settings, cluster: &TestCluster| {
        refusal(&validate(&creation(small("one", true)), settings, cluster, &[]).0)
    };
    let refused = "the Tenant ada is not enrolled in the Workspace tea";
    for (roles, expected) in [
        (&["tea:user"][..], ""),
        (&["tea:manager", "coffee:user"], ""),
        (&["tea:candidate"], refused),
        (&["tea:teacher"], refused),
        (&["coffee:manager"], refused),
        (&[], refused),
    ] {
        assert_eq!(judge(&settings(), &of(roles)), expected, "{roles:?}");
        let off = Settings { require_enrolment: false, ..settings() };
        assert_eq!(judge(&off, &of(roles)), "", "{roles:?}");
    }
    let exam = json!({
        "metadata": {"namespace": "tenant-service-tenant"},
        "spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "service-tenant"}},
    });
    assert_eq!(refusal(&decide(&creation(merged(small("one", true), &exam)), &of(&[]))), "");
}

#[test]
fn a_running_instance_does_not_get_a_template_that_it_could_not_start() {
    let big = [resources(8, "1Gi", &json!({}))];
    let tight = json!({"cpu": "4", "memory": "9Gi", "instances": 9});
    let cluster = course(&tight).with_template("workspace-tea", "big", "tea", &big);
    let cluster = cluster.with_instance(&small("one", true));
    let of = |template: &str, running: bool| instance(NAMESPACE, "one", template, running);
    let (small, big) = ("workspace-tea/small", "workspace-tea/big");
    for (old, new, expected) in [
        (of(small, true), of(big, true), "quota exceeded: CPU (8 > 4)"),
        (of(small, false), of(big, true), "quota exceeded: CPU (8 > 4)"),
        (of(small, true), of(big, false), ""),
        (of(big, true), of(small, true), ""),
        // A running Instance is not checked again, although the quota has become smaller.
        (of(big, true), merged(of(big, true), &json!({"metadata": {"labels": {"a": "b"}}})), ""),
    ] {
        assert_eq!(
            refusal(&decide(&request("ada", "instances", old, new.clone()), &cluster)),
            expected,
            "{new}"
        );
    }
}

#[test]
fn negative_amounts_count_as_nothing() {
    let negative = json!({"disk": "-9Gi", "otherResources": {"nvidia.com/gpu": "-1"}});
    let negative = [resources(-9, "-9Gi", &negative)];
    let tight = json!({"cpu": "1", "memory": "1Gi", "instances": 9, "disk": "1Gi"});
    let cluster = course(&tight)
        .with_template("workspace-tea", "negative", "tea", &negative)
        .with_instance(&instance(NAMESPACE, "one", "workspace-tea/negative", true))
        .with_instance(&small("two", true));
    let message = refusal(&decide(&creation(small("three", true)), &cluster));
    assert_eq!(message, "quota exceeded: CPU (2 > 1), Memory (2Gi > 1Gi)");
}

#[test]
fn a_template_of_a_tenant_writes_to_volumes_of_its_namespace_only() {
    let cluster = |template: &str, volume: &str, read_only: bool| {
        let (namespace, name) = template.split_once('/').expect("namespace/name");
        let personal = json!({"spec": {"personalWorkspace": {"cpu": 9, "memory": "9Gi", "instances": 9}}});
        course(&quota(9))
            .with_tenant_json(&merged(tenant("ada", &["tea:manager"]), &personal))
            .with_mounting_template(namespace, name, "tea", volume, read_only)
    };
    let judge = |template: &str, volume: &str, read_only: bool| {
        let new = creation(instance(NAMESPACE, "one", template, true));
        refusal(&decide(&new, &cluster(template, volume, read_only)))
    };
    assert_eq!(
        judge("tenant-ada/mine", "workspace-tea", false),
        "the Template tenant-ada/mine mounts the shared volume workspace-tea/data for writing: a Template in the \
         namespace of a Tenant may do so only with shared volumes of the same namespace; set readOnly"
    );
    assert_eq!(judge("tenant-ada/mine", "workspace-tea", true), "");
    assert_eq!(judge("tenant-ada/mine", NAMESPACE, false), "");
    assert_eq!(judge("workspace-tea/shared", "workspace-tea", false), "");
    let of_eve = judge("tenant-eve/hers", "tenant-eve", false);
    assert_eq!(
        of_eve,
        "the Template tenant-eve/hers belongs to another Tenant: use a Template in tenant-ada"
    );
}

#[test]
fn an_instance_is_for_the_tenant_of_its_namespace() {
    let cluster = course(&quota(9)).with_namespace(NAMESPACE, "ada").with_namespace("tenant-eve", "eve");
    let named = |tenant: &Value| {
        let tenant = json!({"spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": tenant}}});
        merged(small("one", true), &tenant)
    };
    let judge = |old: Value, new: Value| {
        let denied = tenant_ref::check(&request("ada", "instances", old, new), &cluster).err();
        denied.map_or(200, |denial| denial.code)
    };
    assert_eq!(judge(Value::Null, named(&"ada".into())), 200);
    for tenant in ["eve".into(), "Ada".into(), "".into(), Value::Null, 7.into()] {
        assert_eq!(judge(Value::Null, named(&tenant)), 403, "{tenant}");
        assert_eq!(judge(named(&"ada".into()), named(&tenant)), 403, "{tenant}");
        // A stored Instance can be stopped and corrected.
        let stopped = merged(named(&tenant), &json!({"spec": {"running": false}}));
        assert_eq!(judge(named(&tenant), stopped), 200, "{tenant}");
        assert_eq!(judge(named(&tenant), named(&"ada".into())), 200, "{tenant}");
    }
    let elsewhere = merged(named(&"eve".into()), &json!({"metadata": {"namespace": "exams"}}));
    assert_eq!(judge(Value::Null, elsewhere), 200, "a namespace that is no Tenant's");
}
