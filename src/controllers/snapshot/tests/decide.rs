use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::reason;
use crate::controllers::snapshot::plan::plan;

#[test]
fn a_stopped_machine_is_exported() {
    assert_eq!(next(&usual()), Decision::Export(export()));
    // The previous reconcile announced the Job, and then the process died.
    let announced = observed(&json!({"status": {"phase": "Pending"}}), &json!({}));
    assert_eq!(next(&announced), Decision::Export(export()));
    let cloud = json!([{"name": "main", "environmentType": "CloudVM", "persistent": true}]);
    assert!(matches!(
        next(&Observed { template: Some(object(template(&cloud))), ..usual() }),
        Decision::Export(_)
    ));
}

#[test]
fn the_disk_belongs_to_the_machine() {
    let several = json!([
        {"name": "web", "environmentType": "Container"},
        {"name": "db", "environmentType": "VirtualMachine", "persistent": true},
    ]);
    let of_db = json!({"spec": {"environmentRef": {"name": "db"}}});
    let mut chosen = observed(&of_db, &json!({}));
    chosen.template = Some(object(template(&several)));
    let disk = |observed: &Observed| match next(observed) {
        Decision::Export(export) => export.disk,
        other => panic!("{other:?}"),
    };
    // The Template has more environments now: the machine keeps its name.
    assert_eq!(disk(&chosen), "my-box");
    chosen.machines.clear();
    assert_eq!(disk(&chosen), "my-box-db");
    // The Template has fewer environments now.
    let mut alone = usual();
    alone.machines = vec![object(json!({"metadata": {"name": "my-box-main"}}))];
    assert_eq!(disk(&alone), "my-box-main");
}

#[test]
fn snapshots_that_cannot_be_made_are_refused() {
    let with = |edit: &dyn Fn(&mut Observed)| {
        let mut observed = usual();
        edit(&mut observed);
        observed
    };
    let environments = |list: Value| with(&move |observed| observed.template = Some(object(template(&list))));
    let of_snapshot = |more: Value| observed(&json!({"spec": more}), &json!({}));
    let of_instance = |more: Value| observed(&json!({}), &json!({"spec": more}));
    let tenant = |name: &str| json!({"tenant.crownlabs.polito.it/TenantRef": {"name": name}});
    let cases = [
        (with(&|observed| observed.instance = None), "instance my.box not found in namespace tenant-ada."),
        (with(&|observed| observed.template = None), "template box not found in namespace workspace-tea."),
        (of_snapshot(json!({"environmentRef": {"name": "x"}})), "environment x not found in template box."),
        (environments(json!([])), "template box has no environment."),
        (
            environments(json!([{"name": "main", "environmentType": "VirtualMachine"}])),
            "environment main is not a persistent VM.",
        ),
        (
            environments(json!([{"name": "main", "environmentType": "Container", "persistent": true}])),
            "environment main is not a persistent VM.",
        ),
        (of_instance(json!({"running": true})), "the vm is running."),
        (
            of_snapshot(json!({"instanceRef": {"name": "my.box", "namespace": "tenant-eve"}})),
            "instance my.box is in namespace tenant-eve: a snapshot is made in the namespace of its instance.",
        ),
        (
            of_instance(tenant("eve")),
            "instance my.box names tenant eve, but namespace tenant-ada belongs to tenant Ada.L: nothing is pushed \
             into the repositories of another tenant.",
        ),
        (
            with(&|observed| observed.repository_owner = Some("adal".to_owned())),
            "tenant Ada.L would share the repositories (adal) of tenant adal: contact \
             the administrator.",
        ),
        (
            of_snapshot(json!({"imageName": "My Image"})),
            "image name \"My Image\" is not valid in a registry: use lower-case letters and \
             digits, with single dots, dashes or underscores between them, and no tag, because the tag is the time.",
        ),
        (of_snapshot(json!({"imageName": 5})), "the spec cannot be read: spec.imageName: invalid type"),
    ];
    for (observed, expected) in cases {
        let Decision::Refuse(message) = next(&observed) else { panic!("{expected}") };
        assert!(message.starts_with(expected), "{message}\nexpected {expected}");
        assert!(
            message.ends_with(" It is not possible to complete the InstanceSnapshot snap.one"),
            "{message}"
        );
    }
}

#[test]
fn a_snapshot_whose_job_has_the_name_of_an_upload_is_refused() {
    let named = |name: &str| observed(&json!({"metadata": {"name": name}}), &json!({}));
    for name in ["exam-1-submitter", "exam-1-desktop-submitter"] {
        let Decision::Refuse(message) = next(&named(name)) else { panic!("{name}") };
        let begin =
            format!("the name of the Job, {name}, is reserved for the upload of the content of an Instance");
        assert!(message.starts_with(&begin), "{message}");
        let planned = plan(&named(name), &config(), now());
        assert!(planned.ensure.is_empty() && planned.problems.len() == 1, "{:?}", planned.ensure);
        // A Job that exists already is not interrupted.
        let running = with_job(named(name), &json!({}));
        assert!(matches!(next(&running), Decision::Running { .. }), "{name}");
    }
    for name in ["submitter", "exam.1-submitter", "exam-1-submitter-2"] {
        assert!(matches!(next(&named(name)), Decision::Export(_)), "{name}");
    }
}

#[test]
fn without_a_registry_snapshots_are_refused() {
    for key in ["vmRegistry", "vmRegistrySecret"] {
        let mut config = config();
        if key == "vmRegistry" {
            config.vm_registry.clear();
        } else {
            config.vm_registry_secret.clear();
        }
        let Decision::Refuse(message) = decide(&usual(), &config, now()) else { panic!("{key}") };
        assert!(message.contains(&format!("(controllers.snapshot.{key} is empty)")), "{message}");
    }
}

#[test]
fn any_tenant_may_use_a_namespace_that_is_not_personal() {
    let tenant = json!({"spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "eve"}}});
    let mut shared = observed(&json!({}), &tenant);
    shared.namespace_tenant = None;
    assert!(matches!(next(&shared), Decision::Export(_)));
}

#[test]
fn a_snapshot_waits_until_the_disk_is_free() {
    let reason = |observed: &Observed| match next(observed) {
        Decision::Wait { reason, message } => (reason.as_str(), message),
        other => panic!("{other:?}"),
    };
    let machine = json!({"metadata": {"name": "my-box"}, "status": {"phase": "Running"}});
    let stopping = Observed { running: vec![object(&machine)], ..usual() };
    assert_eq!(
        reason(&stopping),
        ("MachineStopping", "waiting until virtual machine my-box is off".to_owned())
    );
    let pod = |phase: &str| object(json!({"metadata": {"name": "p"}, "status": {"phase": phase}}));
    for phase in ["Running", "Pending", "Unknown"] {
        let observed = Observed { pods: vec![pod(phase)], ..usual() };
        assert_eq!(reason(&observed), ("MachineStopping", "waiting until pod p has ended".to_owned()));
    }
    assert!(matches!(
        next(&Observed { pods: vec![pod("Succeeded"), pod("Failed")], ..usual() }),
        Decision::Export(_)
    ));
    let disk = |phase: &str| object(json!({"metadata": {"name": "my-box"}, "status": {"phase": phase}}));
    let filling = Observed { disks: vec![disk("ImportInProgress")], ..usual() };
    assert_eq!(
        reason(&filling),
        ("DiskNotReady", "waiting until disk my-box is filled: it is ImportInProgress".to_owned())
    );
    assert!(matches!(next(&Observed { disks: vec![disk("Succeeded")], ..usual() }), Decision::Export(_)));
}

#[test]
fn snapshots_of_an_instance_are_made_one_after_the_other() {
    let other = |name: &str, created: &str, phase: &str| {
        let metadata = json!({"name": name, "uid": "s2", "creationTimestamp": created});
        object(snapshot(&json!({"metadata": metadata, "status": {"phase": phase}})))
    };
    let after = |other| {
        matches!(
            next(&Observed { others: vec![other], ..usual() }),
            Decision::Wait { reason: reason::ANOTHER_SNAPSHOT, .. }
        )
    };
    assert!(after(other("z", "2026-03-04T06:00:00Z", "Processing")), "one that is being made comes first");
    assert!(after(other("z", "2026-03-04T04:59:59Z", "Pending")), "then the older one");
    assert!(after(other("a", "2026-03-04T05:00:00Z", "")), "then by name");
    assert!(!after(other("z", "2026-03-04T05:00:00Z", "Pending")));
    assert!(!after(other("a", "2026-03-04T05:00:01Z", "Pending")));
}

#[test]
fn the_job_decides_the_end_of_a_snapshot() {
    let phases = ["", "Pending", "Processing"];
    for phase in phases {
        let at =
            |status: Value| with_job(observed(&json!({"status": {"phase": phase}}), &json!({})), &status);
        let destination = export().destination;
        for status in [json!({}), json!({"active": 1})] {
            let running = Decision::Running {
                destination: destination.clone(),
                trouble: None,
                next: Some(Duration::from_mins(1)),
            };
            assert_eq!(next(&at(status)), running);
        }
        let complete = json!({
            "startTime": "2026-03-04T05:06:07Z", "completionTime": "2026-03-04T05:10:07Z",
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True"},
                {"type": "Failed", "status": "False"},
                {"type": "Complete", "status": "True"},
            ],
        });
        assert_eq!(next(&at(complete)), Decision::Complete { destination, took: Some(240) });
        let failed = json!({"conditions": [
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"},
        ]});
        assert_eq!(next(&at(failed)), Decision::Fail("BackoffLimitExceeded: too often".to_owned()));
    }
    let gone = observed(&json!({"status": {"phase": "Processing"}}), &json!({}));
    assert!(
        matches!(next(&gone), Decision::Fail(message) if message.starts_with("Job snap.one was deleted"))
    );
}

#[test]
fn an_ended_snapshot_stays_ended() {
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    for phase in ["Completed", "Failed"] {
        let ended = observed(&json!({"status": {"phase": phase}}), &json!({}));
        assert_eq!(next(&ended), Decision::Ended, "without Job");
        assert_eq!(next(&with_job(ended, &complete)), Decision::Ended, "with Job");
    }
    let failed_at = |generation: &str| {
        let key = "crownlabs.polito.it/snapshot-observed-generation";
        let more = json!({
            "metadata": {"generation": 2, "annotations": {key: generation}}, "status": {"phase": "Failed"},
        });
        observed(&more, &json!({}))
    };
    assert_eq!(next(&failed_at("2")), Decision::Ended);
    assert_eq!(next(&failed_at("1")), Decision::Export(export()), "the spec was changed since");
    assert_eq!(next(&with_job(failed_at("1"), &json!({}))), Decision::Ended, "there is a Job");
}

#[test]
fn a_job_of_another_owner_is_left_alone() {
    let with_owner = |owner: Value| {
        let metadata = json!({"name": "snap.one", "namespace": "tenant-ada", "ownerReferences": owner});
        let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        let job = object::<JobKind>(&json!({"metadata": metadata, "status": complete}));
        Observed { children: Children::default().with([job]), ..usual() }
    };
    let Decision::Refuse(message) = next(&with_owner(json!([]))) else { panic!("it is somebody else's") };
    assert!(
        message.contains("a Job named snap.one already exists and does not belong to this snapshot"),
        "{message}"
    );
    let former = json!([{"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "InstanceSnapshot",
        "name": "snap.one", "uid": "former", "controller": true}]);
    assert!(matches!(next(&with_owner(former)), Decision::Wait { reason: reason::PREDECESSOR_LEAVING, .. }));
}
