//! The daemon is killed after each of its writes for an expiring Instance: nobody is deleted before the deadline of a
//! warning that was accepted.

use std::time::Duration;

use crownlabs::testing::clock;

use super::{Scenario, crash_after_every_write};
use crate::expiration::{config, expire, mails, passed};
use crate::lab::{Lab, instance};

/// The time between the warning and the deletion: longer than a restart, so that the mail that is sent again is the
/// same.
const INTERVAL: Duration = Duration::from_secs(12);

#[test]
fn promises_survive_a_crash_after_every_write() {
    let lab = Lab::shared();
    lab.create_fixtures("expcrash");
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
                let sent = mails(folder.path());
                let sent = &sent[before.get()..];
                // The warning and the last mail; one of them may have been sent again, with another deadline.
                assert!((2..=3).contains(&sent.len()), "{sent:?}");
                let since = passed(sent[0].0, clock::now());
                assert!(since >= INTERVAL, "deleted {since:?} after the warning: {sent:?}");
            }),
        ],
        list: Box::new(|lab| lab.list("instances", "tenant-expcrash")),
        // An Instance that waits for its deadline has not settled.
        is_complete: |_| false,
        configs: &[&loops],
    };
    let writes = crash_after_every_write(&lab, &scenario);
    assert!(writes >= 3, "only {writes} writes");
    println!("{writes} crashes");
    lab.delete_fixtures("expcrash");
}
