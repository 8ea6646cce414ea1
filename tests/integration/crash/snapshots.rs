//! The daemon dies after any of its writes about snapshots, and each Job is made exactly once.

use serde_json::Value;

use super::{Scenario, crash_after_every_write};
use crate::cluster::Options as ClusterOptions;
use crate::cluster::audit::Mark;
use crate::lab::{Lab, instance};
use crate::snapshots::snapshot;

/// This loop alone.
const CONFIG: &str = "controllers: {instance: {enabled: false}, publicExposure: {enabled: false}, \
                      sharedVolume: {enabled: false}, tenant: {enabled: false}, workspace: {enabled: false}, \
                      snapshot: {vmRegistry: r.example.org, vmRegistrySecret: login}}\n";

/// The object with the same times in each run: those of images, and how long a Job took.
fn timeless(object: &Value) -> Value {
    let mut text = object.to_string();
    let is_when = |begin: &usize| is_tag(&text[begin + 1..]);
    let places: Vec<usize> = text.match_indices(':').map(|(begin, _)| begin).filter(is_when).collect();
    for begin in places {
        text.replace_range(begin + 1..begin + 1 + TAG, "00000000t000000");
    }
    let mut object: Value = serde_json::from_str(&text).expect("JSON");
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        let message = condition["message"].as_str().unwrap_or_default();
        condition["message"] = message.split(" in ").next().unwrap_or_default().into();
    }
    if object["kind"] == "Job" {
        // What it has come to is in the snapshot.
        object.as_object_mut().expect("an object").remove("status");
    }
    object
}

/// The length of the time in an image's name.
const TAG: usize = "20260304t050607".len();

fn is_tag(text: &str) -> bool {
    text.get(..TAG)
        .is_some_and(|tag| tag.as_bytes()[8] == b't' && tag.bytes().filter(u8::is_ascii_digit).count() == 14)
}

#[test]
fn snapshots_survive_a_crash_after_every_write() {
    let lab = Lab::start(ClusterOptions::default());
    lab.furnish("snapcrash");
    let namespace = "tenant-snapcrash";
    lab.apply(&instance("snapcrash", "box", "vm-persistent").replace("spec:\n", "spec:\n  running: false\n"));
    lab.apply(&format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: box, namespace: {namespace}}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: disks, resources: {{requests: {{storage: 1Gi}}}}}}
"
    ));
    let scenario = Scenario {
        name: "snapshots",
        lab: "snapcrash",
        steps: vec![
            Box::new(|lab| {
                lab.apply(&snapshot("snapcrash", "good", "box", "image"));
                lab.apply(&snapshot("snapcrash", "bad", "box", "No-Image"));
            }),
            // The one is not made again, the other one is judged again.
            Box::new(|lab| {
                lab.kubectl(&["delete", "job", "-n", namespace, "good"]);
                lab.patch("instancesnapshots", namespace, "bad", r#"{"spec": {"imageName": "image"}}"#);
            }),
            Box::new(|lab| {
                lab.kubectl(&[
                    "delete",
                    "instancesnapshots",
                    "-n",
                    namespace,
                    "--all",
                    "--cascade=foreground",
                ]);
            }),
        ],
        look: Box::new(|lab| lab.list("instancesnapshots,jobs", namespace).iter().map(timeless).collect()),
        is_complete: |object| {
            object["kind"] == "Job"
                || matches!(object["status"]["phase"].as_str(), Some("Completed" | "Failed"))
        },
        configs: &[CONFIG],
    };
    let writes = crash_after_every_write(&lab, &scenario);
    assert!(writes >= 10, "only {writes} writes");
    let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
    let made = entries
        .iter()
        .filter(|entry| entry.verb == "create" && entry.resource == "jobs" && entry.code == 201)
        .count();
    // Two in the run without a crash, two in each of the others.
    assert_eq!(u64::try_from(made).expect("few"), 2 * (writes + 1), "each Job is made once");
    println!("{writes} crashes");
}
