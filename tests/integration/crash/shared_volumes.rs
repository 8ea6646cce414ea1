//! The daemon is killed after each of its writes for shared volumes; the resulting objects are the same.

use super::{Scenario, crash_after_every_write};
use crate::lab::{Lab, instance};
use crate::shared_volumes::{create_mounting_template, mount, shared_volume};
use cluster::config::only;

#[test]
fn shared_volumes_survive_a_crash_after_every_write() {
    let lab = Lab::shared();
    let _course = lab.course("shvolcrash");
    let (course, namespace) = ("workspace-shvolcrash", "tenant-shvolcrash");
    let scenario = Scenario {
        name: "shared volumes",
        fixtures: "shvolcrash",
        steps: vec![
            Box::new(|lab| lab.apply(&shared_volume("shvolcrash", "data", "1Gi"))),
            Box::new(|lab| {
                create_mounting_template(lab, "shvolcrash", "mounting", &["data"]);
                lab.apply(&instance("shvolcrash", "user", "mounting"));
            }),
            Box::new(|lab| {
                lab.begin_delete("sharedvolume", course, &["data"]);
            }),
            Box::new(|lab| mount(lab, "shvolcrash", "mounting", &[])),
            Box::new(|lab| {
                lab.delete_in_foreground("instance", namespace, &["user"]);
                lab.delete("template", course, &["mounting"]);
            }),
        ],
        list: Box::new(|lab| {
            let mut objects = lab.list("sharedvolumes,persistentvolumeclaims", course);
            // Other controllers write the status of a Job at any time; the SharedVolume shows its progress.
            objects.extend(lab.list("jobs", course).into_iter().map(|mut job| {
                job.as_object_mut().expect("an object").remove("status");
                job
            }));
            objects.extend(lab.list("instances.crownlabs.polito.it,deployments", namespace));
            objects
        }),
        is_complete: |object| {
            let phase = object["status"]["phase"].as_str();
            match object["kind"].as_str() {
                Some("SharedVolume") => matches!(phase, Some("Ready" | "Deleting")),
                Some("Instance") => phase == Some("Ready"),
                _ => true,
            }
        },
        // Instances mount the volumes.
        configs: &[&only(&[("sharedVolume", ""), ("instance", "")])],
    };
    let writes = crash_after_every_write(&lab, &scenario);
    assert!(writes >= 16, "only {writes} writes");
    println!("{writes} crashes");
}
