//! Tests of the amounts of a quota. `webhook/instance/tests` has the tests of the refusals.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::api::usage::Measure;

/// The objects of Ada: her Tenant, the Workspaces `tea` and `art`, and their Templates.
struct Objects(Tenant);

fn read<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("an object")
}

impl super::Objects for Objects {
    fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        (self.0.name() == name).then(|| Arc::new(self.0.clone()))
    }

    fn workspace(&self, name: &str) -> Option<Arc<Workspace>> {
        let gpu = if name == "tea" { "0" } else { "1" };
        let quota = json!({"cpu": "8", "memory": "16Gi", "instances": 4, "disk": "100Gi",
            "otherResources": {"amd.com/gpu": gpu}});
        let known = ["tea", "art"].contains(&name);
        known.then(|| Arc::new(read(json!({"metadata": {"name": name}, "spec": {"quota": quota}}))))
    }

    fn template(&self, namespace: &str, name: &str) -> Option<Arc<Template>> {
        let workspace = namespace.strip_prefix("workspace-").unwrap_or_default();
        let environment = json!({"name": "main", "image": "x", "persistent": name == "disk",
            "environmentType": "VirtualMachine",
            "resources": {"cpu": 2, "memory": "4Gi", "disk": "10Gi", "reservedCPUPercentage": 10}});
        let spec = json!({"workspace.crownlabs.polito.it/WorkspaceRef": {"name": workspace},
            "environmentList": [environment]});
        let object = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        (name != "gone").then(|| Arc::new(read(object)))
    }
}

fn ada(limit: i64, is_created: bool) -> Objects {
    Objects(read(json!({
        "metadata": {"name": "ada"},
        "spec": {"workspaces": [{"name": "tea", "role": "user"}, {"name": "art", "role": "user"}]},
        "status": {"personalNamespace": {"created": is_created}, "quota": {"instances": limit}},
    })))
}

const RULE: Rule = Rule { require_enrolment: true, personal_workspaces: true };

/// The Templates of Instances, as `namespace/name` or `namespace/name:label`.
fn references(texts: &[&'static str]) -> Vec<(String, GenericRef, Option<&'static str>)> {
    let reference = |(number, text): (usize, &&'static str)| {
        let (text, label) = text.split_once(':').map_or((*text, None), |(text, label)| (text, Some(label)));
        let (namespace, name) = text.split_once('/').expect("a reference");
        (format!("m{number}"), GenericRef::new(namespace, name), label)
    };
    texts.iter().enumerate().map(reference).collect()
}

fn holders<'a>(of: &'a [(String, GenericRef, Option<&'static str>)]) -> Vec<Holder<'a>> {
    of.iter().map(|(name, template, label)| Holder { name, template, label: *label }).collect()
}

/// Applies a function to the quotas of Ada with these Instances.
fn with<T>(
    objects: &Objects,
    on: &[&'static str],
    off: &[&'static str],
    then: impl Fn(&Quotas<'_>) -> T,
) -> T {
    let (on, off) = (references(on), references(off));
    let (running, stopped) = (holders(&on), holders(&off));
    then(&Quotas { rule: RULE, objects, namespace: "tenant-ada", running: &running, stopped: &stopped })
}

#[test]
fn stopped_instances_keep_their_place_and_persistent_disk_only() {
    let amounts = with(
        &ada(8, true),
        &["workspace-tea/disk", "workspace-tea/ram", "workspace-art/ram"],
        &["workspace-tea/disk", "workspace-tea/ram", "workspace-tea/gone"],
        |quotas| quotas.amounts(&Scope::Workspace("tea".to_owned()), "ada"),
    );
    let text = |amounts: &Amounts| {
        let stopped = amounts.stopped.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        format!("{} {} {stopped} {}", amounts.measure, amounts.running, amounts.limit)
    };
    let texts: Vec<String> = amounts.iter().map(text).collect();
    // A GPU that may not be used and is not used has no row.
    assert_eq!(texts, ["Instances 2 3 4", "CPU 4 - 8", "Memory 8Gi - 16Gi", "Disk 20Gi 10Gi 100Gi"]);
    assert!(amounts.iter().all(|amounts| !amounts.is_used_up()));
    let limited =
        with(&ada(8, true), &[], &[], |quotas| quotas.amounts(&Scope::Workspace("art".to_owned()), "ada"));
    assert_eq!(
        limited.last().map(|amounts| &amounts.measure),
        Some(&Measure::Other("amd.com/gpu".to_owned()))
    );
}

#[test]
fn an_instance_without_a_template_counts_once() {
    let of = |text: &'static str| {
        with(&ada(8, true), &[text], &[], |quotas| {
            let scopes =
                [Scope::Workspace("tea".to_owned()), Scope::Workspace("art".to_owned()), Scope::Personal];
            scopes.map(|scope| quotas.used(&scope, "", &mut Vec::new()).instances)
        })
    };
    for (text, counted) in [
        ("workspace-tea/gone", [1, 0, 0]),
        ("workspace-art/gone", [0, 1, 0]),
        ("workspace-tea/gone:art", [0, 1, 0]),
        ("workspace-tea/gone:", [1, 0, 0]),
        ("tenant-ada/gone", [0, 0, 1]),
        ("tenant-ada/gone:tea", [0, 0, 1]),
        ("workspace-tea/gone:personal", [0, 0, 1]),
        ("elsewhere/gone", [0, 0, 0]),
        ("workspace-tea/ram:art", [1, 0, 0]),
    ] {
        assert_eq!(of(text), counted, "{text}");
    }
}

#[test]
fn a_new_instance_needs_a_place_and_a_stopped_one_has_it() {
    let (tea, art) = ("workspace-tea/ram", "workspace-art/ram");
    let start = |objects: &Objects, name: &str, is_new: bool, on: &[&'static str], off: &[&'static str]| {
        let template = GenericRef::new("workspace-tea", "ram");
        let start = Start { name, tenant: "ada", template: &template, is_new };
        with(objects, on, off, |quotas| {
            quotas.may_start(&start, &mut Vec::new()).map_err(|refusal| refusal.to_string())
        })
    };
    let full = "quota exceeded: the namespace has 3 Instances (1 of them stopped), and the limit is 3; delete an Instance";
    for (limit, is_created, name, is_new, expected) in [
        (4, true, "new", true, Ok(())),
        (3, true, "new", true, Err(full)),
        // Without a namespace, its limit is not known.
        (3, false, "new", true, Ok(())),
        // A review is repeated after the Instance was stored.
        (3, true, "m0", true, Ok(())),
        (3, true, "m0", false, Ok(())),
        (3, true, "new", false, Ok(())),
    ] {
        let found = start(&ada(limit, is_created), name, is_new, &[tea, art], &[art]);
        assert_eq!(found.as_ref().copied().map_err(String::as_str), expected, "{limit} {name} {is_new}");
    }
    // If both limits are reached, to stop an Instance would not help.
    let both = start(&ada(4, true), "new", true, &[tea, tea, tea, tea], &[]);
    assert!(both.expect_err("refused").contains("delete an Instance"));
    assert_eq!(
        start(&ada(8, true), "new", true, &[tea, tea, tea, tea], &[]),
        Err("quota exceeded: Instances (5 > 4), CPU (10 > 8), Memory (20Gi > 16Gi)".to_owned())
    );
}
