//! The daemon is killed after each of its writes and mails for an unused Instance. The Instance is not stopped before
//! the deadline in a warning that was accepted, and it is stopped in the end.

use std::time::Duration;

use serde_json::Value;

use super::expiration::{accepted_mails, assert_promise_kept};
use super::{Scenario, crash_after_every_write_and_effect};
use crate::expiration::mails;
use crate::inactivity::{allow_idle, config, prometheus};
use crate::lab::{Lab, instance};

/// The time between the warning and the stop: longer than a restart, so that the repeated mail is identical.
const INTERVAL: Duration = Duration::from_secs(12);
const NAMESPACE: &str = "tenant-idlecrash";

/// The object without the times of its last use and of its warnings.
fn without_times(mut object: Value) -> Value {
    for time in [
        "last-activity",
        "last-notification-timestamp",
        "mailed-inactivity-warning",
        "mailed-inactivity-stopped",
    ] {
        let key = format!("crownlabs.polito.it/{time}");
        if let Some(time) = object["metadata"]["annotations"].get_mut(key) {
            *time = "set".into();
        }
    }
    object
}

#[test]
fn an_idle_instance_is_stopped_on_time_after_a_crash_at_any_write_or_mail() {
    let lab = Lab::shared();
    let _course = lab.course("idlecrash");
    allow_idle(&lab, "idlecrash", "container-persistent", "1s");
    let prometheus = prometheus(NAMESPACE);
    let folder = tempfile::tempdir().expect("a folder");
    let loops = config(folder.path(), &prometheus, INTERVAL);
    let before = std::cell::Cell::new(0);
    let scenario = Scenario {
        name: "inactivity",
        fixtures: "idlecrash",
        steps: vec![
            Box::new(|lab| {
                before.set(mails(folder.path()).len());
                lab.apply(&instance("idlecrash", "idle", "container-persistent"));
            }),
            // The Instance is stopped now.
            Box::new(|lab| {
                assert_promise_kept(&mails(folder.path())[before.get()..], INTERVAL);
                lab.delete("instance", NAMESPACE, &["idle"]);
            }),
        ],
        list: Box::new(|lab| lab.list("instances", NAMESPACE).into_iter().map(without_times).collect()),
        is_complete: |object| object["spec"]["running"] == false && object["status"]["inactivity"].is_null(),
        configs: &[&loops],
    };
    let accepted = accepted_mails(folder.path());
    let (writes, accepted) = crash_after_every_write_and_effect(&lab, &scenario, &accepted);
    assert_eq!(accepted, 2, "a warning and a last mail");
    assert!(writes >= 4, "only {writes} writes");
    println!("{} crashes", writes + accepted);
}
