//! The daemon is killed after each of its writes for snapshots; each Job is created exactly once.

use serde_json::Value;

use super::{Scenario, assert_jobs_made, crash_after_every_write};
use crate::lab::{Lab, instance};
use crate::snapshots::snapshot;
use cluster::config::only;

/// The object without the fields that depend on the time of a run: the times in image names, and how long a Job took.
fn without_times(object: &Value) -> Value {
    let mut text = object.to_string();
    let is_time = |begin: &usize| is_tag(&text[begin + 1..]);
    let places: Vec<usize> = text.match_indices(':').map(|(begin, _)| begin).filter(is_time).collect();
    for begin in places {
        text.replace_range(begin + 1..begin + 1 + TAG, "00000000t000000");
    }
    let mut object: Value = serde_json::from_str(&text).expect("JSON");
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        let message = condition["message"].as_str().unwrap_or_default();
        condition["message"] = message.split(" in ").next().unwrap_or_default().into();
    }
    if object["kind"] == "Job" {
        // The snapshot shows the result of the Job.
        object.as_object_mut().expect("an object").remove("status");
    }
    object
}

/// The length of the time in the name of an image.
const TAG: usize = "20260304t050607".len();

fn is_tag(text: &str) -> bool {
    text.get(..TAG)
        .is_some_and(|tag| tag.as_bytes()[8] == b't' && tag.bytes().filter(u8::is_ascii_digit).count() == 14)
}

#[test]
fn snapshots_survive_a_crash_after_every_write() {
    let lab = Lab::shared();
    let mark = lab.cluster.audit().mark().expect("the audit log");
    let _course = lab.course("snapcrash");
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
        fixtures: "snapcrash",
        steps: vec![
            Box::new(|lab| {
                lab.apply(&snapshot("snapcrash", "good", "box", "image"));
                lab.apply(&snapshot("snapcrash", "bad", "box", "No-Image"));
            }),
            // The deleted Job is not created again; the snapshot with another image name is validated again.
            Box::new(|lab| {
                lab.delete("job", namespace, &["good"]);
                lab.patch("instancesnapshots", namespace, "bad", r#"{"spec": {"imageName": "image"}}"#);
            }),
            Box::new(|lab| {
                lab.delete_all_in_foreground("instancesnapshots", namespace);
            }),
        ],
        list: Box::new(|lab| {
            lab.list("instancesnapshots,jobs", namespace).iter().map(without_times).collect()
        }),
        is_complete: |object| {
            object["kind"] == "Job"
                || matches!(object["status"]["phase"].as_str(), Some("Completed" | "Failed"))
        },
        configs: &[&only(&[("snapshot", "vmRegistry: r.example.org, vmRegistrySecret: login")])],
    };
    let writes = crash_after_every_write(&lab, &scenario);
    assert!(writes >= 10, "only {writes} writes");
    // Two in the run without a crash, and two in each of the others.
    assert_jobs_made(&lab, mark, namespace, 2 * (writes + 1));
    println!("{writes} crashes");
}
