use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::CountQuotas;
use crate::controllers::tenant::children::{hard, sandbox_hard};
use crate::controllers::tenant::fixtures::{observed, owners, settings};
use crate::controllers::tenant::observe::Observed;
use crate::fixtures::object;
use crate::kinds::ResourceQuotaKind;

/// A Tenant of Workspaces with these quotas: role, cores, memory, Instances.
fn tenant(parts: &[(&str, &str, &str, i64)]) -> Observed {
    let names: Vec<String> = (0..parts.len()).map(|n| format!("w{n}")).collect();
    let entries: Vec<_> =
        names.iter().zip(parts).map(|(name, part)| json!({"name": name, "role": part.0})).collect();
    let workspaces: Vec<_> = names
        .iter()
        .zip(parts)
        .map(|(name, (_, cpu, memory, instances))| {
            let quota = json!({"cpu": cpu, "memory": memory, "instances": instances});
            (name.as_str(), json!({"prettyName": name, "autoEnroll": "withApproval", "quota": quota}))
        })
        .collect();
    observed(&json!({"workspaces": entries}), &workspaces)
}

fn uncapped() -> TenantConfig {
    let caps = QuotaCaps { cpu: 0, memory: Quantity::ZERO, instances: 0 };
    TenantConfig { quota_caps: caps, ..settings().config }
}

fn status(observed: &Observed, config: &TenantConfig) -> (String, String, i64) {
    let (quota, problems) = tenant_quota(observed, &Enrolment::of(observed), config);
    assert_eq!(problems, []);
    let status = quota.status();
    (status.cpu.as_str().to_owned(), status.memory.as_str().to_owned(), status.instances)
}

#[test]
fn sums_are_spelled_as_kubernetes_spells_them() {
    // As a real API server spells them.
    for (a, b, sum) in [
        ("15Gi", "25Gi", "40Gi"),
        ("4Gi", "4G", "8100554Ki"),
        ("4G", "4Gi", "8294967296"),
        ("0", "1.5Gi", "1536Mi"),
        ("1024Mi", "0", "1Gi"),
    ] {
        let observed = tenant(&[("user", "0", a, 1), ("manager", "0", b, 1)]);
        let (_, memory, instances) = status(&observed, &uncapped());
        assert_eq!((memory.as_str(), instances), (sum, 2), "{a} + {b}");
    }
    for (a, b, sum) in
        [("2", "500m", "2500m"), ("500m", "500m", "1"), ("1000m", "0", "1"), ("0.5", "0", "500m")]
    {
        let observed = tenant(&[("user", a, "0", 1), ("user", b, "0", 1)]);
        assert_eq!(status(&observed, &uncapped()).0, sum, "{a} + {b}");
    }
}

#[test]
fn caps_limit_the_sum_and_candidates_add_nothing() {
    let parts = [("manager", "12", "24Gi", 6), ("user", "20", "40Gi", 8), ("candidate", "99", "99Gi", 99)];
    let config = settings().config;
    assert_eq!(status(&tenant(&parts), &config), ("25".into(), "50G".into(), 10));
    assert_eq!(status(&tenant(&parts[2..]), &config), ("0".into(), "0".into(), 0));
    assert_eq!(status(&tenant(&parts[..1]), &config), ("12".into(), "24Gi".into(), 6));
    // An equal amount has the spelling of the cap.
    assert_eq!(status(&tenant(&[("user", "25000m", "50000M", 10)]), &config).1, "50G");
}

#[test]
fn the_tenants_own_quota_replaces_the_sum_and_the_caps() {
    let quota = json!({"cpu": 99, "memory": "1024Gi", "instances": 77});
    let mut observed = tenant(&[("user", "1", "1Gi", 1)]);
    let workspaces = json!([{"name": "w0", "role": "user"}]);
    observed.tenant =
        super::super::fixtures::observed(&json!({"quota": quota, "workspaces": workspaces}), &[]).tenant;
    assert_eq!(status(&observed, &settings().config), ("99".into(), "1Ti".into(), 77));
}

#[test]
fn an_invalid_amount_adds_nothing_and_is_reported() {
    let observed = tenant(&[("user", "1", "1Gi", 1), ("user", "many", "-1", 1)]);
    let (quota, problems) = tenant_quota(&observed, &Enrolment::of(&observed), &uncapped());
    assert_eq!(quota.status().cpu.as_str(), "1");
    assert_eq!(quota.status().memory.as_str(), "1Gi");
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].starts_with("Workspace w1: spec.quota.cpu is \"many\""), "{messages:?}");
}

/// A Tenant of a Workspace that grants 2 cores, 4 GiB, 2 Instances, a GPU and 10 GiB of storage, and of an unreadable
/// Workspace. `hard` is its `ResourceQuota`, and `status` the quota in its status.
fn with_unreadable(status: &Value, hard: &Value) -> Observed {
    let quota = json!({
        "cpu": 2, "memory": "4Gi", "instances": 2, "disk": "10Gi", "otherResources": {"nvidia.com/gpu": "1"},
    });
    let entries = json!([{"name": "a", "role": "user"}, {"name": "b", "role": "user"}]);
    let mut observed =
        observed(&json!({"workspaces": entries}), &[("a", json!({"quota": quota})), ("b", json!("nothing"))]);
    let tenant = json!({"metadata": {"name": "ada.rossi", "uid": "u1"}, "spec": {"workspaces": entries},
        "status": {"quota": status}});
    observed.tenant = object(tenant);
    let metadata = json!({"name": "crownlabs-resource-quota", "ownerReferences": owners("u1")});
    observed
        .children
        .set::<ResourceQuotaKind>([object(json!({"metadata": metadata, "spec": {"hard": hard}}))]);
    observed
}

#[test]
fn an_unreadable_workspace_takes_no_quota_from_a_tenant() {
    let status = json!({"cpu": "6", "memory": "3Gi", "instances": 5});
    let hard = json!({"limits.cpu": "6", "requests.storage": "30Gi", "requests.nvidia.com/gpu": "3", "count/secrets": "9"});
    let observed = with_unreadable(&status, &hard);
    let (quota, problems) = tenant_quota(&observed, &Enrolment::of(&observed), &uncapped());
    let hard = spelled(&quota.hard(), None);
    let of = |name: &str| hard.get(name).map(String::as_str);
    assert_eq!((of("limits.cpu"), of("requests.cpu")), (Some("6"), Some("6")), "as before");
    assert_eq!(of("limits.memory"), Some("4Gi"), "the other Workspace gives more than there was");
    assert_eq!(of("count/instances.crownlabs.polito.it"), Some("5"));
    assert_eq!((of("requests.storage"), of("requests.nvidia.com/gpu")), (Some("30Gi"), Some("3")));
    assert_eq!(hard.len(), 7, "{hard:?}");
    assert_eq!((problems.len(), problems[0].reason.as_str()), (1, "InvalidWorkspace"));
    assert!(problems[0].message.starts_with("Workspace b cannot be read: spec"), "{}", problems[0].message);
    // A resource that was unlimited stays unlimited.
    let observed = with_unreadable(&status, &json!({"limits.cpu": "6"}));
    let (quota, _) = tenant_quota(&observed, &Enrolment::of(&observed), &uncapped());
    assert_eq!(quota.hard().len(), 5);
    // The configured caps still apply.
    let many = json!({"cpu": "99", "memory": "3Gi", "instances": 99});
    let observed = with_unreadable(&many, &json!({}));
    let (quota, _) = tenant_quota(&observed, &Enrolment::of(&observed), &settings().config);
    assert_eq!((quota.status().cpu.as_str(), quota.instances), ("25", 10));
}

#[test]
fn an_unreadable_own_quota_reduces_nothing() {
    let mut observed = with_unreadable(&json!({"cpu": "6", "memory": "3Gi", "instances": 5}), &json!({}));
    let own = TenantQuota { cpu: "much".into(), memory: "1Gi".into(), instances: 1 };
    Arc::make_mut(&mut observed.tenant).spec.quota = Some(own);
    let (quota, problems) = tenant_quota(&observed, &Enrolment::of(&observed), &uncapped());
    assert_eq!((quota.status().cpu.as_str(), quota.instances, problems.len()), ("6", 5, 1));
}

#[test]
fn disks_and_extended_resources_are_limited_only_where_a_quota_names_them() {
    let quota = json!({"cpu": 1, "memory": "1Gi", "instances": 1, "disk": "10Gi", "otherResources": {"nvidia.com/gpu": "1"}});
    let plain = json!({"cpu": 1, "memory": "1Gi", "instances": 1});
    let entries = json!([{"name": "a", "role": "user"}, {"name": "b", "role": "user"}]);
    let with = observed(
        &json!({"workspaces": entries}),
        &[("a", json!({"quota": quota})), ("b", json!({"quota": plain}))],
    );
    let (quota, _) = tenant_quota(&with, &Enrolment::of(&with), &uncapped());
    let hard = spelled(&quota.hard(), None);
    assert_eq!(hard["requests.storage"], "10Gi");
    assert_eq!(hard["requests.nvidia.com/gpu"], "1");
    let without = tenant(&[("user", "1", "1Gi", 1)]);
    let (quota, _) = tenant_quota(&without, &Enrolment::of(&without), &uncapped());
    let names: Vec<_> = quota.hard().into_keys().collect();
    assert_eq!(
        names,
        [
            "count/instances.crownlabs.polito.it",
            "limits.cpu",
            "limits.memory",
            "requests.cpu",
            "requests.memory"
        ]
    );
}

#[test]
fn a_personal_quota_is_added_only_where_that_is_enabled() {
    let personal = json!({"personalWorkspace": {"cpu": 2, "memory": "2Gi", "instances": 2}});
    let observed = observed(&personal, &[]);
    let mut config = uncapped();
    assert_eq!(status(&observed, &config).2, 0);
    config.personal_workspace.enabled = true;
    assert_eq!(status(&observed, &config), ("2".into(), "2Gi".into(), 2));
}

#[test]
fn an_equal_amount_keeps_its_spelling() {
    let wanted = BTreeMap::from([("limits.memory".to_owned(), "2072864000".parse::<Quantity>().unwrap())]);
    let found = |text: &str| BTreeMap::from([("limits.memory".to_owned(), text.to_owned())]);
    assert_eq!(spelled(&wanted, Some(&found("2072864k"))), found("2072864k"));
    assert_eq!(spelled(&wanted, Some(&found("2072865k"))), found("2072864k"));
}

fn amount() -> impl Strategy<Value = String> {
    let suffix =
        prop_oneof![Just(""), Just("m"), Just("k"), Just("Ki"), Just("M"), Just("Mi"), Just("G"), Just("Gi")];
    (0..2_000_000i64, suffix).prop_map(|(number, suffix)| format!("{number}{suffix}"))
}

proptest! {
    #[test]
    fn a_sum_is_the_amount_of_its_parts_in_any_order(amounts in proptest::collection::vec(amount(), 0..6)) {
        let parts: Vec<_> = amounts.iter().map(|amount| ("user", amount.as_str(), "1Gi", 1)).collect();
        let reversed: Vec<_> = parts.iter().rev().copied().collect();
        let sum = |parts: &[_]| {
            let observed = tenant(parts);
            tenant_quota(&observed, &Enrolment::of(&observed), &uncapped()).0
        };
        let (a, b) = (sum(&parts), sum(&reversed));
        prop_assert_eq!(&a.cpu, &b.cpu);
        // Each summand is read again from the status, so the spelling must lose nothing.
        let read: Quantity = a.status().cpu.as_str().parse().unwrap();
        prop_assert_eq!(&read, &a.cpu);
        // In thousandths, by integers.
        let exact: i128 = amounts.iter().map(|text| i128::from(text.parse::<Quantity>().unwrap().milli_value())).sum();
        prop_assert_eq!(i128::from(a.cpu.milli_value()), exact);
    }

    #[test]
    fn a_capped_sum_is_the_smaller_of_both(cores in 0..200i64, memory in 0..200i64, instances in 0..50i64) {
        let observed = tenant(&[("user", &cores.to_string(), &format!("{memory}G"), instances)]);
        let (quota, _) = tenant_quota(&observed, &Enrolment::of(&observed), &settings().config);
        prop_assert_eq!(quota.cpu, Quantity::from_int(cores.min(25)));
        prop_assert_eq!(quota.memory.value(), memory.min(50) * 1_000_000_000);
        prop_assert_eq!(quota.instances, instances.min(10));
    }
}

#[test]
fn object_counts_are_limited_if_enabled() {
    let quota = Quota { instances: 7, ..Quota::default() };
    for enabled in [false, true] {
        let mut counts = CountQuotas { enabled, ..CountQuotas::default() };
        (counts.sandbox.secrets, counts.sandbox.services) = (3, 0);
        (counts.personal.secrets, counts.personal.instances) = (5, 99);
        let (sandbox, personal) = (sandbox_hard(&counts), hard(&quota, &counts, None));
        let of = |body: &Value, name: &str| body["spec"]["hard"][name].as_str().map(str::to_owned);
        let on = |limit: &str| enabled.then(|| limit.to_owned());
        assert_eq!((of(&sandbox, "count/secrets"), of(&personal, "count/secrets")), (on("3"), on("5")));
        assert_eq!(of(&sandbox, "limits.cpu").as_deref(), Some("4"));
        assert_eq!(of(&sandbox, "count/services"), None, "0 is no limit");
        let instances = of(&personal, "count/instances.crownlabs.polito.it");
        assert_eq!(instances.as_deref(), Some("7"), "that is the quota of the Tenant");
    }
}
