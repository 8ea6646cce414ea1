//! Why a machine does not start: every such message in the status that the kubelet, the scheduler, KubeVirt and CDI
//! write appears in the phase, in `Ready`, in one event, in the output of `crownlabs why`, and in the metric.

mod chains;
mod events;
mod machines;
mod pods;
mod refused;

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The status of an object, and the expected report for the Instance.
#[derive(Clone)]
struct Case {
    /// The kind of the object.
    on: &'static str,
    /// Its status.
    status: Value,
    phase: &'static str,
    reason: &'static str,
    /// The words of the object.
    words: &'static str,
}

const POD: &str = "pods";
const CLAIM: &str = "persistentvolumeclaims";
const MACHINE: &str = "virtualmachines.kubevirt.io";
const RUNNING_MACHINE: &str = "virtualmachineinstances.kubevirt.io";
const DISK: &str = "datavolumes.cdi.kubevirt.io";
const NAMESPACE: &str = "tenant-causes";

impl Case {
    fn new(
        on: &'static str,
        status: Value,
        phase: &'static str,
        reason: &'static str,
        words: &'static str,
    ) -> Self {
        Self { on, status, phase, reason, words }
    }
}

/// The reasons that resolve without action.
const CLEAR: [&str; 6] = [
    "MachinePaused",
    "MachineState",
    "SchedulingGated",
    "PodFailed",
    "ImportRestarted",
    "ResourceQuotaExceeded",
];

/// The name of the pod of an Instance.
fn pod(lab: &Lab, name: &str) -> String {
    wait_until(PATIENCE, || {
        let is_it = |pod: &Value| pod["metadata"]["labels"]["crownlabs.polito.it/instance"] == name;
        let found = lab.list("pods", NAMESPACE).into_iter().find(is_it);
        let name = found.and_then(|pod| Some(pod["metadata"]["name"].as_str()?.to_owned()));
        name.ok_or_else(|| "its pod".to_owned())
    })
}

/// Writes the status of the case to its object.
fn say(lab: &Lab, name: &str, case: &Case) {
    let status = json!({"status": case.status}).to_string();
    let object = match case.on {
        POD => pod(lab, name),
        CLAIM => {
            let unbound = "pod has unbound immediate PersistentVolumeClaims";
            let waits = json!({"status": pods::unscheduled("Unschedulable", unbound)});
            lab.patch_status(POD, NAMESPACE, &pod(lab, name), &waits.to_string());
            name.to_owned()
        }
        DISK => {
            let disk = json!({"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
                "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {}});
            lab.apply(&disk.to_string());
            lab.await_value(MACHINE, NAMESPACE, name, "/metadata/name", name);
            lab.patch_status(MACHINE, NAMESPACE, name, r#"{"status": {"printableStatus": "Provisioning"}}"#);
            name.to_owned()
        }
        _ => name.to_owned(),
    };
    lab.await_value(case.on, NAMESPACE, &object, "/metadata/name", &object);
    if case.on == RUNNING_MACHINE {
        // The kind has no status subresource.
        lab.patch(case.on, NAMESPACE, &object, &status);
    } else if case.status["phase"] == "Lost" {
        // The controller of volumes writes this for a claim whose volume is gone.
        let bound = r#"{"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "gone"}}"#;
        lab.patch(case.on, NAMESPACE, &object, bound);
    } else {
        lab.patch_status(case.on, NAMESPACE, &object, &status);
    }
}

/// A condition of an Instance.
fn condition(instance: &Value, type_: &str) -> Option<Value> {
    let conditions = instance["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_).cloned()
}

/// Waits until the status of an Instance shows the message of its object.
fn await_said(lab: &Lab, name: &str, case: &Case) {
    let Case { phase, reason, words, .. } = case;
    let instance = wait_until(PATIENCE, || {
        let instance = lab.get("instances", NAMESPACE, name).ok_or("it")?;
        let ready = condition(&instance, "Ready").unwrap_or_default();
        let says = ready["message"].as_str().is_some_and(|message| message.contains(words));
        let is_it = instance["status"]["phase"] == *phase && ready["reason"] == *reason && says;
        if is_it && ready["status"] == "False" {
            Ok(instance)
        } else {
            Err(format!("{phase}, {reason}, {words}: {ready}"))
        }
    });
    let stalled = condition(&instance, "Stalled").map(|stalled| stalled["status"].clone());
    let wanted = (!CLEAR.contains(reason)).then(|| json!("False"));
    assert_eq!(stalled, wanted, "{name}: it has not lasted yet: {instance}");
}

#[test]
fn every_cause_is_in_status_event_why_and_metric() {
    let lab = Lab::shared_unsimulated();
    let _course = lab.course("causes");
    let admin = lab.admin();
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "causes", config: "" });
    let cases = [pods::cases(), machines::cases()].concat();
    assert!(cases.len() >= 40, "{} rows", cases.len());
    let name = |number: usize| format!("c{number}");
    let instances = cases.iter().enumerate().map(|(number, case)| {
        let template = match case.on {
            POD => "standalone",
            CLAIM => "container-persistent",
            RUNNING_MACHINE => "vm",
            _ => "vm-persistent",
        };
        instance("causes", &name(number), template)
    });
    lab.apply(&instances.collect::<String>());
    for (number, case) in cases.iter().enumerate() {
        say(&lab, &name(number), case);
    }
    let mut phases = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let name = name(number);
        await_said(&lab, &name, case);
        *phases.entry(case.phase).or_insert(0) += 1;
        let event = format!("{}: ", case.reason);
        wait_until(PATIENCE, || {
            let events: Vec<String> = lab.events(NAMESPACE, &name);
            let said = events.iter().filter(|said| said.starts_with(&event)).count();
            if said == 1 { Ok(()) } else { Err(format!("one event of {event}: {events:?}")) }
        });
        let binary = env!("CARGO_BIN_EXE_crownlabs");
        let why = Command::new(binary)
            .args(["why", &format!("{NAMESPACE}/{name}")])
            .env("KUBECONFIG", &admin)
            .output();
        let why = String::from_utf8(why.expect("it starts").stdout).expect("text");
        let said = why.lines().filter(|line| line.contains(case.words) && line.contains(case.reason)).count();
        assert_eq!(said, 1, "{}: {why}", case.words);
    }
    let shown = |metrics: &str, phase: &str| -> usize {
        let phase = format!("phase=\"{phase}\"");
        let lines =
            metrics.lines().filter(|line| line.starts_with("crownlabs_instances{") && line.contains(&phase));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
    };
    daemon.wait_for("the numbers of Instances by phase", |daemon| {
        let metrics = daemon.metrics();
        phases.iter().all(|(phase, number)| shown(&metrics, phase) == *number)
    });
}
