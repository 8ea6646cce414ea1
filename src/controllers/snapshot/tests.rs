//! Decisions, the Job and reports, from JSON as the API server has it.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::decide::{Decision, Export, decide};
use super::job;
use super::observe::Observed;
use super::report::tell;
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::{Kind, Object};
use crate::config::{Pusher, SnapshotConfig};
use crate::runtime::merge;

fn object<T: Kind>(value: &Value) -> Arc<Object<T>> {
    Arc::new(serde_json::from_value(value.clone()).expect("objects are read leniently"))
}

fn config() -> SnapshotConfig {
    SnapshotConfig {
        vm_registry: "registry.example.org".to_owned(),
        vm_registry_secret: "registry-credentials".to_owned(),
        ..SnapshotConfig::default()
    }
}

fn now() -> Timestamp {
    "2026-03-04T05:06:07Z".parse().expect("a time")
}

fn snapshot(more: &Value) -> Value {
    let mut snapshot = json!({
        "metadata": {
            "name": "snap.one", "namespace": "tenant-ada", "uid": "s1", "generation": 1,
            "creationTimestamp": "2026-03-04T05:00:00Z",
        },
        "spec": {"instanceRef": {"name": "my.box"}, "imageName": "my-image"},
    });
    merge::apply(&mut snapshot, more);
    snapshot
}

fn template(environments: &Value) -> Value {
    json!({
        "metadata": {"name": "box", "namespace": "workspace-tea"},
        "spec": {"environmentList": environments},
    })
}

/// A snapshot of a stopped machine, with further members of the snapshot and of the Instance.
fn observed(more: &Value, of_instance: &Value) -> Observed {
    let mut instance = json!({
        "metadata": {"name": "my.box", "namespace": "tenant-ada", "uid": "i1"},
        "spec": {
            "running": false,
            "template.crownlabs.polito.it/TemplateRef": {"name": "box", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "Ada.L"},
        },
    });
    merge::apply(&mut instance, of_instance);
    let main = json!([{"name": "main", "environmentType": "VirtualMachine", "persistent": true}]);
    Observed {
        snapshot: object(&snapshot(more)),
        instance: Some(object(&instance)),
        template: Some(object(&template(&main))),
        job: None,
        machines: vec![object(&json!({"metadata": {"name": "my-box", "namespace": "tenant-ada"}}))],
        running: Vec::new(),
        disks: Vec::new(),
        pods: Vec::new(),
        others: Vec::new(),
        resident: Some("Ada.L".to_owned()),
        repository_owner: None,
    }
}

fn usual() -> Observed {
    observed(&json!({}), &json!({}))
}

fn export() -> Export {
    Export {
        disk: "my-box".to_owned(),
        destination: "registry.example.org/adal/my-image:20260304t050607".to_owned(),
    }
}

fn next(observed: &Observed) -> Decision {
    decide(observed, &config(), now())
}

/// The Job as the API server has it, of the snapshot, with this status.
fn with_job(mut observed: Observed, status: &Value) -> Observed {
    let desired = job::desired(&observed, &config(), &export());
    let mut made = desired.manifest.as_ref().expect("a Job").json().clone();
    made["metadata"]["uid"] = "j1".into();
    made["status"] = status.clone();
    observed.job = Some(object(&made));
    observed
}

#[test]
fn a_stopped_machine_is_exported() {
    assert_eq!(next(&usual()), Decision::Export(export()));
    // The pass after the one that announced the Job, and died.
    let announced = observed(&json!({"status": {"phase": "Pending"}}), &json!({}));
    assert_eq!(next(&announced), Decision::Export(export()));
    let cloud = json!([{"name": "main", "environmentType": "CloudVM", "persistent": true}]);
    assert!(matches!(
        next(&Observed { template: Some(object(&template(&cloud))), ..usual() }),
        Decision::Export(_)
    ));
}

#[test]
fn the_disk_is_that_of_the_machine() {
    let several = json!([
        {"name": "web", "environmentType": "Container"},
        {"name": "db", "environmentType": "VirtualMachine", "persistent": true},
    ]);
    let of_db = json!({"spec": {"environmentRef": {"name": "db"}}});
    let mut chosen = observed(&of_db, &json!({}));
    chosen.template = Some(object(&template(&several)));
    let disk = |observed: &Observed| match next(observed) {
        Decision::Export(export) => export.disk,
        other => panic!("{other:?}"),
    };
    // A Template that has grown: the machine kept its name.
    assert_eq!(disk(&chosen), "my-box");
    chosen.machines.clear();
    assert_eq!(disk(&chosen), "my-box-db");
    // A Template that has shrunk.
    let mut alone = usual();
    alone.machines = vec![object(&json!({"metadata": {"name": "my-box-main"}}))];
    assert_eq!(disk(&alone), "my-box-main");
}

#[test]
fn what_cannot_be_made_is_refused_with_a_sentence() {
    let with = |edit: &dyn Fn(&mut Observed)| {
        let mut observed = usual();
        edit(&mut observed);
        observed
    };
    let environments =
        |list: Value| with(&move |observed| observed.template = Some(object(&template(&list))));
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
            "instance my.box names tenant eve, but namespace tenant-ada is that of tenant Ada.L: nothing is pushed \
             into the repositories of another tenant.",
        ),
        (
            with(&|observed| observed.repository_owner = Some("adal".to_owned())),
            "the repositories of tenant Ada.L would be those of tenant adal, who was there first (adal): contact \
             the administrator.",
        ),
        (
            of_snapshot(json!({"imageName": "My Image"})),
            "image name \"My Image\" is not one that a registry takes: it consists of lower-case letters and \
             digits, with single dots, dashes or underscores between them (and no tag: that is the time).",
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
    // A namespace that is nobody's own.
    let mut shared = of_instance(tenant("eve"));
    shared.resident = None;
    assert!(matches!(next(&shared), Decision::Export(_)));
}

#[test]
fn it_waits_until_the_disk_is_free() {
    let reason = |observed: &Observed| match next(observed) {
        Decision::Wait { reason, message } => (reason, message),
        other => panic!("{other:?}"),
    };
    let machine = json!({"metadata": {"name": "my-box"}, "status": {"phase": "Running"}});
    let stopping = Observed { running: vec![object(&machine)], ..usual() };
    assert_eq!(
        reason(&stopping),
        ("MachineStopping", "waiting until virtual machine my-box is off".to_owned())
    );
    let pod = |phase: &str| object(&json!({"metadata": {"name": "p"}, "status": {"phase": phase}}));
    for phase in ["Running", "Pending", "Unknown"] {
        let observed = Observed { pods: vec![pod(phase)], ..usual() };
        assert_eq!(reason(&observed), ("MachineStopping", "waiting until pod p has ended".to_owned()));
    }
    assert!(matches!(
        next(&Observed { pods: vec![pod("Succeeded"), pod("Failed")], ..usual() }),
        Decision::Export(_)
    ));
    let disk = |phase: &str| object(&json!({"metadata": {"name": "my-box"}, "status": {"phase": phase}}));
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
        object(&snapshot(&json!({"metadata": metadata, "status": {"phase": phase}})))
    };
    let after = |other| {
        matches!(
            next(&Observed { others: vec![other], ..usual() }),
            Decision::Wait { reason: "AnotherSnapshot", .. }
        )
    };
    assert!(after(other("z", "2026-03-04T06:00:00Z", "Processing")), "one that is being made comes first");
    assert!(after(other("z", "2026-03-04T04:59:59Z", "Pending")), "then the older one");
    assert!(after(other("a", "2026-03-04T05:00:00Z", "")), "then by name");
    assert!(!after(other("z", "2026-03-04T05:00:00Z", "Pending")));
    assert!(!after(other("a", "2026-03-04T05:00:01Z", "Pending")));
}

#[test]
fn the_job_decides_how_it_ends() {
    let phases = ["", "Pending", "Processing"];
    for phase in phases {
        let at =
            |status: Value| with_job(observed(&json!({"status": {"phase": phase}}), &json!({})), &status);
        let destination = export().destination;
        assert_eq!(
            next(&at(json!({}))),
            Decision::Running { destination: destination.clone(), starved: false }
        );
        assert_eq!(
            next(&at(json!({"active": 1}))),
            Decision::Running { destination: destination.clone(), starved: false }
        );
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
fn what_has_ended_stays_ended() {
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
fn a_job_of_somebody_else_is_left_alone() {
    let with_owner = |owner: Value| {
        let metadata = json!({"name": "snap.one", "namespace": "tenant-ada", "ownerReferences": owner});
        let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        Observed { job: Some(object(&json!({"metadata": metadata, "status": complete}))), ..usual() }
    };
    let Decision::Refuse(message) = next(&with_owner(json!([]))) else { panic!("it is somebody else's") };
    assert!(message.contains("a Job named snap.one exists already and is not of this snapshot"), "{message}");
    let former = json!([{"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "InstanceSnapshot",
        "name": "snap.one", "uid": "former", "controller": true}]);
    assert!(matches!(next(&with_owner(former)), Decision::Wait { reason: "PredecessorLeaving", .. }));
}

#[test]
fn the_job_has_the_shape_that_operators_know() {
    let job = |config: &SnapshotConfig| {
        job::desired(&usual(), config, &export()).manifest.as_ref().expect("a Job").json().clone()
    };
    // 03 §2.5, field by field.
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "snap.one",
            "namespace": "tenant-ada",
            "ownerReferences": [{
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "InstanceSnapshot", "name": "snap.one",
                "uid": "s1", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "backoffLimit": 2,
            "template": {"spec": {
                "restartPolicy": "OnFailure",
                "initContainers": [{
                    "name": "img-generator",
                    "image": "crownlabs/img-exporter",
                    "volumeMounts": [
                        {"name": "my-box", "mountPath": "/data"}, {"name": "tmp-vol", "mountPath": "/img-tmp"},
                    ],
                    "resources": {
                        "requests": {"cpu": "1", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"},
                    },
                }],
                "containers": [{
                    "name": "docker-pusher",
                    "image": "gcr.io/kaniko-project/executor",
                    "args": [
                        "--dockerfile=/workspace/Dockerfile",
                        "--destination=registry.example.org/adal/my-image:20260304t050607",
                    ],
                    "volumeMounts": [
                        {"name": "tmp-vol", "mountPath": "/workspace"},
                        {"name": "kaniko-secret", "mountPath": "/kaniko/.docker/"},
                    ],
                    "resources": {
                        "requests": {"cpu": "1", "memory": "8Gi"}, "limits": {"cpu": "1", "memory": "32Gi"},
                    },
                }],
                "volumes": [
                    {"name": "my-box", "persistentVolumeClaim": {"claimName": "my-box"}},
                    {"name": "tmp-vol", "emptyDir": {}},
                    {"name": "kaniko-secret", "secret": {
                        "secretName": "registry-credentials",
                        "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
                    }},
                ],
            }},
        },
    });
    assert_eq!(job(&config()), expected);
    let rootless = job(&SnapshotConfig { pusher: Pusher::Buildah, ..config() });
    let pusher = &rootless["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(pusher["image"], "quay.io/buildah/stable");
    assert_eq!(pusher["args"], json!(["docker-pusher", export().destination]));
    assert_eq!(pusher["securityContext"]["runAsUser"], 1000);
    // Both tell where the image goes.
    for made in [expected, rootless] {
        assert_eq!(job::destination(&object(&made)), export().destination);
    }
}

#[test]
fn names_of_jobs_fit_labels() {
    assert_eq!(job::name("snap.one"), "snap.one");
    assert_eq!(job::name(&"a".repeat(63)), "a".repeat(63));
    let (one, other) =
        (job::name(&format!("{}b", "a".repeat(80))), job::name(&format!("{}c", "a".repeat(80))));
    assert_eq!((one.len(), other.len()), (63, 63));
    assert_ne!(one, other);
    assert!(!job::name(&format!("{}.{}", "a".repeat(53), "b".repeat(80))).contains(".-"));
}

/// The reasons of the events of a decision, and the phase and reason that it leaves.
fn told(observed: &Observed, decision: &Decision) -> (Vec<String>, SnapshotPhase, String) {
    let report = tell(&observed.snapshot, decision, now());
    let condition = report.status.conditions.first().expect("Ready");
    let events = report.events.iter().map(|event| event.reason.clone()).collect();
    (events, report.status.phase.clone(), condition.reason.clone())
}

#[test]
fn each_transition_is_told_once() {
    let at = |phase: &str, reason: &str, message: &str| {
        let condition = json!({"type": "Ready", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2026-03-04T05:06:00Z"});
        observed(&json!({"status": {"phase": phase, "conditions": [condition]}}), &json!({}))
    };
    let owned = |reasons: &[&str]| reasons.iter().map(|&reason| reason.to_owned()).collect::<Vec<_>>();
    let pending = SnapshotPhase::Pending;
    let export = Decision::Export(export());
    assert_eq!(told(&usual(), &export), (owned(&["Validating"]), pending.clone(), "Creating".to_owned()));
    let wait = Decision::Wait { reason: "MachineStopping", message: "wait".to_owned() };
    assert_eq!(
        told(&usual(), &wait),
        (owned(&["Validating", "MachineStopping"]), pending.clone(), "MachineStopping".to_owned())
    );
    let waiting = at("Pending", "MachineStopping", "wait");
    assert_eq!(told(&waiting, &wait), (owned(&[]), pending, "MachineStopping".to_owned()));
    let refuse = Decision::Refuse("no".to_owned());
    let failed = SnapshotPhase::Failed;
    assert_eq!(
        told(&usual(), &refuse),
        (owned(&["Validating", "ValidationError"]), failed.clone(), "ValidationError".to_owned())
    );
    assert_eq!(told(&waiting, &refuse).0, owned(&["ValidationError"]));
    let running = Decision::Running { destination: "r/a:1".to_owned(), starved: false };
    let processing = SnapshotPhase::Processing;
    assert_eq!(told(&waiting, &running), (owned(&["Creation"]), processing.clone(), "JobRunning".to_owned()));
    let known = at("Processing", "JobRunning", "Job snap.one makes image r/a:1");
    assert_eq!(told(&known, &running), (owned(&[]), processing.clone(), "JobRunning".to_owned()));
    let complete = Decision::Complete { destination: "r/a:1".to_owned(), took: Some(240) };
    let completed = tell(&known.snapshot, &complete, now());
    assert_eq!(completed.events[0].message, "Image my-image created and uploaded in 4m0s");
    assert_eq!(completed.status.phase, SnapshotPhase::Completed);
    let ready = &completed.status.conditions[0];
    assert_eq!(
        (ready.status.as_str(), ready.message.as_str()),
        ("True", "Image r/a:1 created and uploaded in 4m0s")
    );
    assert_eq!(
        told(&known, &Decision::Fail("why".to_owned())),
        (owned(&["CreationFailed"]), failed, "CreationFailed".to_owned())
    );
    let ended = tell(&known.snapshot, &Decision::Ended, now());
    assert_eq!((ended.status, ended.events), (known.snapshot.status.clone(), Vec::new()));
}

#[test]
fn a_job_that_gets_no_pod_is_told_after_a_while() {
    let processing = || observed(&json!({"status": {"phase": "Processing"}}), &json!({}));
    let since = |time: &str, active: u8| {
        let observed = with_job(processing(), &json!({"active": active}));
        let mut job = Object::clone(observed.job.as_deref().expect("the Job"));
        job.metadata.creation_timestamp = serde_json::from_value(time.into()).expect("a time");
        next(&Observed { job: Some(Arc::new(job)), ..observed })
    };
    let is_starved = |decision: &Decision| matches!(decision, Decision::Running { starved: true, .. });
    assert!(!is_starved(&since("2026-03-04T05:05:08Z", 0)));
    assert!(!is_starved(&since("2026-03-04T05:05:07Z", 1)), "it has one");
    let decision = since("2026-03-04T05:05:07Z", 0);
    assert!(is_starved(&decision));
    let (events, phase, reason) = told(&processing(), &decision);
    assert_eq!((events, phase), (vec!["WaitingForPod".to_owned()], SnapshotPhase::Processing));
    assert_eq!(reason, "WaitingForPod");
}
