//! The daemon is killed after each of its writes and mails for an expiring Instance. No Instance is deleted
//! before the deadline in a warning that was accepted.

use std::path::Path;
use std::time::Duration;

use crownlabs::testing::clock;
use jiff::Timestamp;

use super::{Effects, Scenario, crash_after_every_write_and_effect};
use crate::expiration::{config, expire, mails, passed};
use crate::lab::{Lab, instance};

/// The time between the warning and the deletion: longer than a restart, so that the repeated mail is identical.
const INTERVAL: Duration = Duration::from_secs(12);

/// The mails in a folder. A mail is there as soon as it is accepted.
pub fn accepted_mails(folder: &Path) -> Effects {
    let folder = folder.to_owned();
    Effects::new("mail", move || mails(&folder).len() as u64)
}

/// Asserts that a warning and one last mail were sent, and that an interval has passed since the warning. A warning that
/// was not recorded is sent again, with another deadline.
pub fn assert_promise_kept(sent: &[(Timestamp, String)], interval: Duration) {
    let is_warning = |mail: &str| {
        let subject = mail.lines().find(|line| line.starts_with("Subject: "));
        subject.is_some_and(|subject| subject.contains("will be"))
    };
    let (warnings, last): (Vec<_>, Vec<_>) = sent.iter().partition(|(_, mail)| is_warning(mail));
    assert!((1..=2).contains(&warnings.len()) && last.len() == 1, "{sent:?}");
    let since = passed(warnings[warnings.len() - 1].0, clock::now());
    assert!(since >= interval, "ended {since:?} after the warning: {sent:?}");
}

#[test]
fn promises_survive_a_crash_after_every_write_and_mail() {
    let lab = Lab::shared();
    let _course = lab.course("expcrash");
    expire(&lab, "expcrash", "container", "1s");
    let folder = tempfile::tempdir().expect("a folder");
    let loops = config(folder.path(), &format!("{}s", INTERVAL.as_secs()));
    let before = std::cell::Cell::new(0);
    let scenario = Scenario {
        name: "expiration",
        fixtures: "expcrash",
        steps: vec![
            Box::new(|lab| {
                before.set(mails(folder.path()).len());
                lab.apply(&instance("expcrash", "old", "container"));
            }),
            // The Instance is gone now.
            Box::new(|_| {
                assert_promise_kept(&mails(folder.path())[before.get()..], INTERVAL);
            }),
        ],
        list: Box::new(|lab| lab.list("instances", "tenant-expcrash")),
        // An Instance that waits for its deadline has not settled.
        is_complete: |_| false,
        configs: &[&loops],
    };
    let accepted = accepted_mails(folder.path());
    let (writes, accepted) = crash_after_every_write_and_effect(&lab, &scenario, &accepted);
    assert_eq!(accepted, 2, "a warning and a last mail");
    assert!(writes >= 3, "only {writes} writes");
    println!("{} crashes", writes + accepted);
}
