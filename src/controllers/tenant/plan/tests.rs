use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::api::meta::TextMap;
use crate::controllers::accounts::Known;
use crate::controllers::tenant::fixtures::{observed, owners, settings};
use crate::controllers::tenant::report::report;
use crate::fixtures::{at, object};
use crate::kinds::{NamespaceKind, NfsClaimKind, RoleBindingKind};
use crate::runtime::component::Component;
use crate::runtime::merge;
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::{EffectError, EffectOutcome, Outcome, Reconciled};

fn planned(observed: &Observed) -> Plan<Effect> {
    plan(observed, &settings(), at(0))
}

/// `Kind name` of each created object.
fn made(plan: &Plan<Effect>) -> Vec<String> {
    plan.ensure.iter().map(|desired| format!("{} {}", desired.kind.kind, desired.key.name)).collect()
}

fn removed(plan: &Plan<Effect>) -> Vec<String> {
    plan.remove.iter().map(|removal| format!("{} {}", removal.kind.kind, removal.key.name)).collect()
}

fn namespace(uid: &str, more: &Value) -> Value {
    let mut value = json!({"metadata": {
        "name": "tenant-ada-rossi", "uid": "n1", "resourceVersion": "7", "ownerReferences": owners(uid),
    }});
    merge::apply(&mut value, more);
    value
}

const DAY: i64 = 24 * 3600;

#[test]
fn a_new_tenant_gets_everything_and_its_role_bindings_last() {
    let plan = planned(&observed(&json!({"createSandbox": true}), &[]));
    assert_eq!(plan.problems, []);
    let wave = |name: &str| {
        plan.ensure.iter().find(|desired| desired.key.name == name).map(|desired| desired.wave).expect(name)
    };
    assert_eq!(plan.ensure.len(), 12, "{:?}", made(&plan));
    assert!(wave("tenant-ada-rossi") < wave("crownlabs-resource-quota"));
    assert!(wave("crownlabs-resource-quota") < wave("crownlabs-manage-instances"));
    assert!(wave("crownlabs-deny-ingress-traffic") < wave("crownlabs-manage-instances"));
    assert!(wave("sandbox-resource-quota") < wave("sandbox-editor"));
}

#[test]
fn foreign_pods_reach_no_machine_and_a_sandbox_has_limits() {
    let plan = planned(&observed(&json!({"createSandbox": true}), &[]));
    let of = |kind: &str| -> BTreeMap<String, Value> {
        let found = plan.ensure.iter().filter(|desired| desired.kind.kind == kind);
        found
            .map(|desired| {
                let manifest = desired.manifest.as_ref().expect("a new object").json();
                (format!("{}/{}", desired.key.namespace, desired.key.name), manifest.clone())
            })
            .collect()
    };
    let trusted = json!({"matchLabels": {"crownlabs.polito.it/allow-instance-access": "true"}});
    let policy =
        |from: Value| json!({"podSelector": {}, "ingress": [{"from": [from]}], "policyTypes": ["Ingress"]});
    let policies: Vec<(String, Value)> =
        of("NetworkPolicy").into_iter().map(|(name, policy)| (name, policy["spec"].clone())).collect();
    assert_eq!(
        policies,
        [
            (
                "tenant-ada-rossi/crownlabs-allow-trusted-ingress-traffic".to_owned(),
                policy(json!({"namespaceSelector": trusted}))
            ),
            (
                "tenant-ada-rossi/crownlabs-deny-ingress-traffic".to_owned(),
                policy(json!({"podSelector": {}}))
            ),
        ],
        "none is in the sandbox, and none is about outgoing traffic"
    );
    let hard = of("ResourceQuota")["sandbox-ada-rossi/sandbox-resource-quota"]["spec"]["hard"].clone();
    assert!(hard["limits.cpu"].is_string() && hard["limits.memory"].is_string(), "{hard}");
    assert!(of("LimitRange").contains_key("sandbox-ada-rossi/sandbox-limit-range"));
    let labels = |name: &str| of("Namespace")[name]["metadata"]["labels"][labels::POD_SECURITY].clone();
    assert_eq!((labels("/sandbox-ada-rossi"), labels("/tenant-ada-rossi")), ("baseline".into(), Value::Null));
}

/// The plan with Keycloak.
fn planned_with_keycloak(observed: &Observed) -> Plan<Effect> {
    plan(observed, &Settings { has_keycloak: true, ..settings() }, at(0))
}

#[test]
fn nothing_is_made_before_the_address_is_confirmed() {
    let mut observed = observed(&json!({}), &[]);
    let plan = planned_with_keycloak(&observed);
    assert_eq!((made(&plan), removed(&plan)), (vec![], vec![]));
    assert_eq!(plan.requeue, Requeue::After(Duration::from_mins(5)));
    assert_eq!(plan.patches.len(), 1, "labels and finalizer");
    assert_eq!(plan.effects, [Effect::SynchronizeAccount { roles: Vec::new() }]);
    Arc::make_mut(&mut observed.tenant).status.keycloak.user_confirmed = true;
    assert!(!made(&planned_with_keycloak(&observed)).is_empty());
}

#[test]
fn the_answer_of_keycloak_is_stored_and_used_at_once() {
    let settings = Settings { has_keycloak: true, ..settings() };
    let observed = observed(&json!({}), &[]);
    let plan = planned_with_keycloak(&observed);
    let told = |result, error| {
        let outcome = Outcome { effects: vec![EffectOutcome { result, error }], ..Outcome::default() };
        report(&Reconciled::of(&observed, &settings, &plan, &outcome, at(0)))
    };
    let user = |confirmed| Some(Known { id: "k1".to_owned(), confirmed, mail: None });
    let waiting = told(user(false), None);
    assert!(!waiting.requeue_at_once && !waiting.status.keycloak.user_confirmed);
    let confirmed = told(user(true), None);
    assert!(confirmed.requeue_at_once && confirmed.status.keycloak.user_confirmed);
    assert_eq!(confirmed.status.keycloak.user_created.name, "k1");
    let problem = Problem::elsewhere(
        Component::environment("keycloak"),
        crate::api::reason::KEYCLOAK_UNREACHABLE,
        "no answer",
    );
    let unknown = told(None, Some(EffectError::Failed(problem)));
    assert!(!unknown.requeue_at_once && !unknown.status.ready && !unknown.status.keycloak.user_synchronized);
}

#[test]
fn an_empty_namespace_is_removed_long_after_the_last_login() {
    let mut observed = observed(&json!({}), &[]);
    observed.children.set::<NamespaceKind>([object(namespace("u1", &json!({})))]);
    // A new claim would be checked again soon.
    observed.has_my_drive_namespace = false;
    let at_time = |observed: &Observed, seconds| plan(observed, &settings(), at(seconds));
    // A login exactly at the limit has not expired. The next reconcile follows immediately.
    let kept = at_time(&observed, DAY);
    assert_eq!(removed(&kept), Vec::<String>::new());
    assert_eq!(kept.requeue, Requeue::After(Duration::from_millis(1)));
    assert_eq!(
        at_time(&observed, 0).requeue,
        Requeue::After(Duration::from_hours(24) + Duration::from_millis(1))
    );
    let gone = at_time(&observed, DAY + 1);
    assert_eq!(removed(&gone), ["Namespace tenant-ada-rossi"]);
    assert_eq!(gone.remove[0].uid, "n1");
    assert_eq!(
        made(&gone),
        [
            "ClusterRole crownlabs-manage-tenant-ada-rossi",
            "ClusterRoleBinding crownlabs-manage-tenant-ada-rossi"
        ]
    );
    observed.instances = 1;
    let busy = at_time(&observed, 100 * DAY);
    assert_eq!(removed(&busy), Vec::<String>::new());
    assert!(made(&busy).contains(&"Namespace tenant-ada-rossi".to_owned()));
    // A login in the future keeps the namespace, and a missing login does not.
    observed.instances = 0;
    let never = super::super::fixtures::observed(&json!({"lastLogin": null}), &[]);
    observed.tenant = never.tenant;
    assert_eq!(removed(&at_time(&observed, 0)), ["Namespace tenant-ada-rossi"]);
}

#[test]
fn own_templates_keep_the_namespace_with_and_without_a_personal_workspace() {
    let quota = json!({"cpu": 1, "memory": "1Gi", "instances": 1});
    for spec in [json!({}), json!({"personalWorkspace": quota}), json!({"createPersonalWorkspace": true})] {
        let mut observed = observed(&spec, &[]);
        observed.children.set::<NamespaceKind>([object(namespace("u1", &json!({})))]);
        for enabled in [false, true] {
            let mut settings = settings();
            settings.config.personal_workspace.enabled = enabled;
            for (templates, gone) in [(0, &["Namespace tenant-ada-rossi"][..]), (1, &[])] {
                observed.templates = templates;
                assert_eq!(removed(&plan(&observed, &settings, at(2 * DAY))), gone, "{spec}, {enabled}");
            }
        }
    }
}

#[test]
fn objects_of_other_owners_are_never_removed() {
    let mut observed = observed(&json!({}), &[]);
    observed.children.set::<NamespaceKind>([object(namespace("another", &json!({})))]);
    assert_eq!(removed(&plan(&observed, &settings(), at(2 * DAY))), Vec::<String>::new());
    assert_eq!(removed(&super::deletion(&observed, &settings())), Vec::<String>::new());
}

#[test]
fn the_younger_of_two_tenants_with_the_same_names_gets_nothing() {
    let mut observed = observed(&json!({}), &[]);
    observed.name_owner = Some("ada-rossi".to_owned());
    let plan = planned(&observed);
    assert_eq!((made(&plan), removed(&plan)), (vec![], vec![]));
    assert_eq!(plan.problems[0].reason, "NameConflict");
}

#[test]
fn a_namespace_that_is_being_deleted_is_waited_for() {
    let mut observed = observed(&json!({}), &[]);
    let terminating = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    observed.children.set::<NamespaceKind>([object(namespace("u1", &terminating))]);
    let plan = planned(&observed);
    assert_eq!(plan.problems[0].reason, "NamespaceTerminating");
    assert!(plan.problems[0].waiting);
    assert!(plan.ensure.iter().all(|desired| desired.key.namespace != "tenant-ada-rossi"));
}

#[test]
fn a_name_too_long_for_a_namespace_is_reported() {
    let mut observed = observed(&json!({}), &[]);
    Arc::make_mut(&mut observed.tenant).metadata.name = "a".repeat(57).into();
    let plan = planned(&observed);
    assert_eq!(plan.problems[0].reason, "InvalidName");
    assert!(plan.problems[0].message.contains("64 characters, at most 63"), "{}", plan.problems[0].message);
}

#[test]
fn labels_contain_name_and_enrolment() {
    let entries = json!([
        {"name": "tea", "role": "manager"}, {"name": "utilities", "role": "user"}, {"name": "ghost", "role": "user"},
        {"name": "coffee", "role": "candidate"},
    ]);
    let workspaces = [("tea", json!({})), ("utilities", json!({})), ("coffee", json!({}))];
    let mut observed = observed(&json!({"workspaces": entries}), &workspaces);
    Arc::make_mut(&mut observed.tenant).metadata.labels =
        TextMap::from_iter([("crownlabs.polito.it/workspace-old", "user"), ("mine", "kept")]);
    let plan = planned(&observed);
    let labels = &plan.patches[0].patch["metadata"]["labels"];
    assert_eq!(
        *labels,
        json!({
            "crownlabs.polito.it/first-name": "Ada",
            "crownlabs.polito.it/last-name": "Rossi",
            "crownlabs.polito.it/managed-by": "tenant",
            "crownlabs.polito.it/operator-selector": "test",
            "crownlabs.polito.it/workspace-tea": "manager",
            "crownlabs.polito.it/workspace-utilities": "user",
            "crownlabs.polito.it/workspace-old": null,
        })
    );
    assert_eq!(Enrolment::of(&observed).failing, ["ghost", "coffee"]);
    let problem = Enrolment::of(&observed).problem().expect("a problem");
    assert_eq!(
        problem.message,
        "Workspace ghost does not exist: create it, or remove it from spec.workspaces of the Tenant; Workspace coffee does not accept \
         candidates: set its spec.autoEnroll to withApproval, or remove it from spec.workspaces of the Tenant"
    );
    assert!(!problem.stalled && !problem.waiting);
    assert_eq!(Enrolment::of(&observed).roles(), ["workspace-tea:manager", "workspace-utilities:user"]);
}

#[test]
fn base_workspaces_do_not_count_as_enrolment() {
    let entries = json!([{"name": "utilities", "role": "user"}]);
    let observed = observed(&json!({"workspaces": entries}), &[("utilities", json!({}))]);
    let mut settings = settings();
    let label = |settings: &Settings| {
        let patch = plan(&observed, settings, at(0)).patches.remove(0).patch;
        patch["metadata"]["labels"][labels::NO_WORKSPACES].clone()
    };
    assert_eq!(label(&settings), Value::Null);
    settings.config.base_workspaces = vec!["utilities".to_owned()];
    assert_eq!(label(&settings), "true");
}

#[test]
fn a_binding_to_another_role_goes_first() {
    let mut observed = observed(&json!({}), &[]);
    observed.children.set::<NamespaceKind>([object(namespace("u1", &json!({})))]);
    let binding = json!({
        "metadata": {"name": "crownlabs-manage-instances", "namespace": "tenant-ada-rossi", "uid": "b1",
            "ownerReferences": owners("u1")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [],
    });
    observed.children.set::<RoleBindingKind>([object(binding)]);
    let plan = planned(&observed);
    assert_eq!(removed(&plan), ["RoleBinding crownlabs-manage-instances"]);
    assert_eq!(plan.requeue, Requeue::After(Duration::ZERO));
}

#[test]
fn a_deleted_tenant_leaves_its_volume_unless_it_is_configured_otherwise() {
    let mut observed = observed(&json!({}), &[]);
    let claim = json!({
        "metadata": {"name": "ada-rossi-drive", "namespace": "mydrive-pvcs", "uid": "d1", "ownerReferences": owners("u1")},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    });
    observed.children.set::<NfsClaimKind>([object(claim)]);
    observed.children.set::<NamespaceKind>([object(namespace("u1", &json!({})))]);
    let mut settings = settings();
    let plan = super::deletion(&observed, &settings);
    assert_eq!(removed(&plan), ["Namespace tenant-ada-rossi"]);
    assert_eq!(made(&plan), ["PersistentVolumeClaim ada-rossi-drive"]);
    assert_eq!(plan.ensure[0].ownership, crate::runtime::plan::Ownership::Kept);
    settings.config.my_drive.on_tenant_deletion = OnTenantDeletion::Delete;
    let plan = super::deletion(&observed, &settings);
    assert_eq!(removed(&plan), ["Namespace tenant-ada-rossi", "PersistentVolumeClaim ada-rossi-drive"]);
}

#[test]
fn a_namespace_is_deleted_only_after_a_check_with_the_api_server() {
    let mut observed = observed(&json!({}), &[]);
    observed.children.set::<NamespaceKind>([object(namespace("u1", &json!({})))]);
    let asked = |plan: &Plan<Effect>| plan.remove[0].preconditions.clone();
    let tenant = || Precondition::object(&*observed.tenant);
    let within = |kind| Precondition::NoneWithin(kind, "tenant-ada-rossi".to_owned());
    let (instances, templates) =
        (within(KindInfo::of::<InstanceKind>()), within(KindInfo::of::<TemplateKind>()));
    assert_eq!(asked(&super::deletion(&observed, &settings())), [tenant()]);
    assert_eq!(asked(&plan(&observed, &settings(), at(2 * DAY))), [tenant(), instances, templates]);
    let mut without = super::super::fixtures::observed(&json!({}), &[]);
    let owned = namespace("u1", &json!({"metadata": {"name": "sandbox-ada-rossi"}}));
    without.children.set::<NamespaceKind>([object(owned)]);
    assert_eq!(asked(&planned(&without)), [tenant()], "the sandbox");
}

#[test]
fn all_keys_that_cannot_be_used_are_one_condition_and_one_event() {
    let keys: Vec<String> = (0..2_000).map(|n| format!("no key {n}")).collect();
    let mut observed = observed(&json!({"publicKeys": keys}), &[]);
    let told = |observed: &Observed| {
        report(&Reconciled::of(observed, &settings(), &planned(observed), &Outcome::of(Vec::new()), at(0)))
    };
    let first = told(&observed);
    assert_eq!(planned(&observed).problems, []);
    assert!(first.status.ready, "everything else is made");
    let conditions = first.status.conditions.iter();
    let invalid: Vec<_> = conditions.filter(|condition| condition.type_ == "InvalidPublicKeys").collect();
    let message = invalid[0].message.as_str();
    assert_eq!((invalid.len(), invalid[0].status.as_str()), (1, "True"));
    for words in [
        "spec.publicKeys[0] is not an SSH public key such as",
        "spec.publicKeys[4] is not an SSH public key such as",
        "; 95 more are invalid, too; only the first 100 of 2000 keys are used",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert!(!message.contains("publicKeys[5]"), "{message}");
    let events: Vec<&str> = first.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(events, ["InvalidPublicKey"]);
    // Once they are in the status, they are not reported again. When they are fixed, the condition disappears.
    Arc::make_mut(&mut observed.tenant).status = first.status.clone();
    let second = told(&observed);
    assert_eq!((second.events.len(), &second.status), (0, &first.status));
    Arc::make_mut(&mut observed.tenant).spec.public_keys.clear();
    assert!(told(&observed).status.conditions.iter().all(|condition| condition.type_ != "InvalidPublicKeys"));
}

#[test]
fn an_unreadable_workspace_takes_no_role_from_a_tenant() {
    let entries = json!([{"name": "a", "role": "user"}, {"name": "b", "role": "candidate"}]);
    let unreadable = json!("nothing");
    let observed = observed(&json!({"workspaces": entries}), &[("a", unreadable.clone()), ("b", unreadable)]);
    let plan = planned_with_keycloak(&observed);
    assert_eq!(plan.effects, [Effect::SynchronizeAccount { roles: vec!["workspace-a:user".to_owned()] }]);
    let labels = &plan.patches[0].patch["metadata"]["labels"];
    assert_eq!(labels["crownlabs.polito.it/workspace-a"], "user");
    assert_eq!(labels["crownlabs.polito.it/workspace-b"], "candidate", "a manager still sees the candidate");
}

#[test]
fn configured_labels_never_override_the_labels_of_the_loop() {
    let observed = observed(&json!({"createSandbox": true}), &[]);
    let labels = |names: &[&str]| -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect()
    };
    let mut settings = settings();
    let (selector, managed_by) = ("crownlabs.polito.it/operator-selector", "crownlabs.polito.it/managed-by");
    let (type_, name, tenant) =
        ("crownlabs.polito.it/type", "crownlabs.polito.it/name", "crownlabs.polito.it/tenant");
    settings.config.namespace_labels = labels(&[selector, managed_by, type_, name, "extra"]);
    settings.config.sandbox_labels = labels(&[managed_by, type_, tenant, "extra"]);
    let plan = plan(&observed, &settings, at(0));
    for (namespace, expected) in [
        (
            "tenant-ada-rossi",
            json!({selector: "test", managed_by: "tenant", type_: "tenant", name: "ada.rossi", "extra": "x"}),
        ),
        (
            "sandbox-ada-rossi",
            json!({managed_by: "tenant", type_: "sandbox", tenant: "ada.rossi", "extra": "x"}),
        ),
    ] {
        let found = plan.ensure.iter().find(|desired| desired.key.name == namespace);
        let manifest = found.and_then(|desired| desired.manifest.as_ref()).expect("a namespace").json();
        assert_eq!(manifest["metadata"]["labels"], expected, "{namespace}");
    }
}
