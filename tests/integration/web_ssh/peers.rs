//! The terminals of people who do not own the machine: peers, with whom the owner shares it, and managers. Each ends soon after
//! its right.

use std::time::{Duration, Instant};

use crownlabs::testing::clock;
use jiff::SignedDuration;
use serde_json::json;

use super::Site;
use crate::lab::{PATIENCE, wait_until};
use cluster::browser::{Browser, Received};

/// The longest time between the end of a right and the end of an open terminal, on a busy machine.
const OUT: Duration = Duration::from_secs(10);
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The last message of a terminal whose user has lost the right.
fn lost() -> (String, u16) {
    ("Your access to this machine has ended".to_owned(), 1008)
}

impl Site {
    /// Creates or changes the Tenant of a person, who has no right on the Instance, with this role in the course.
    fn enrol(&self, who: &str, course: &str, role: &str) {
        let tenant = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant",
            "metadata": {"name": format!("{}-{who}", self.name)},
            "spec": {
                "firstName": "Kim", "lastName": "Verdi", "email": format!("{who}@example.org"),
                "workspaces": [{"name": course, "role": role}],
            },
        });
        self.lab.apply(&tenant.to_string());
    }

    /// Shares the machine with these people for a time.
    fn share(&self, people: &[(&str, &str)], time: SignedDuration) {
        let until = (clock::now() + time).to_string();
        let entry = |(who, access): &(&str, &str)| json!({"user": format!("{}-{who}", self.name), "access": access, "until": until});
        let people = json!(people.iter().map(entry).collect::<Vec<_>>()).to_string();
        let annotations = json!({"crownlabs.polito.it/shared-with": people});
        let patch = json!({"metadata": {"annotations": annotations}}).to_string();
        self.lab.patch("instances", &self.namespace(), "vm", &patch);
    }

    /// Opens a terminal of a person as soon as the daemon knows the right.
    fn open_of(&self, who: &str) -> Browser {
        wait_until(PATIENCE, || {
            let mut browser = Browser::open(self.port, &self.request_of(who));
            match browser.receive() {
                Received::Data(_) => Ok(browser),
                other => Err(format!("{other:?}")),
            }
        })
    }

    /// Waits until the record of connections has this text or, with `false`, has not.
    fn await_record(&self, text: &str, is_wanted: bool) {
        wait_until(PATIENCE, || {
            let record = self.lab.get("configmaps", &format!("workspace-{}", self.name), "crownlabs-peers");
            let entries = record.map(|record| record["data"].to_string()).unwrap_or_default();
            if entries.contains(text) == is_wanted { Ok(()) } else { Err(format!("{text}: {entries}")) }
        });
    }
}

/// Asserts that a terminal ends soon.
fn assert_ends(browser: &mut Browser, why: &str) {
    let begin = Instant::now();
    assert_eq!(browser.end(), lost(), "{why}");
    assert!(begin.elapsed() <= OUT, "{why}: {:?}", begin.elapsed());
}

#[test]
fn a_peer_gets_a_terminal_that_ends_soon_after_the_right() {
    let site = Site::start("web-peers", "");
    let course = site.name;
    site.enrol("kim", course, "user");
    site.enrol("max", "another", "user");
    site.enrol("candidate", course, "candidate");
    let refused = ("Invalid request".to_owned(), 1011);
    assert_eq!(site.answer(&site.request_of("kim")), refused, "it is not shared");
    site.share(&[("kim", "control"), ("max", "control"), ("candidate", "control")], HOUR);
    let mut kim = site.open_of("kim");
    kim.enter("stty -echo; echo rea''dy\n");
    kim.until("ready\r\n");
    for who in ["max", "candidate", "nobody"] {
        assert_eq!(site.answer(&site.request_of(who)), refused, "{who}");
    }
    let log = site.daemon.log();
    assert!(log.contains("a peer who controls it"), "{log}");
    site.await_record("web-peers-kim", true);
    site.share(&[], HOUR);
    assert_ends(&mut kim, "removed by the owner");
    site.await_record("web-peers-kim", false);
    site.share(&[("kim", "control")], HOUR);
    let mut kim = site.open_of("kim");
    site.enrol("kim", "another", "user");
    assert_ends(&mut kim, "the enrolment");
    site.enrol("kim", course, "user");
    let mut kim = site.open_of("kim");
    let soon = SignedDuration::from_secs(3);
    let end = clock::now() + soon;
    site.share(&[("kim", "control")], soon);
    assert_ends(&mut kim, "the end, three seconds later");
    assert!(clock::now() >= end, "not before the end");
    site.share(&[("kim", "control")], HOUR);
    let mut kim = site.open_of("kim");
    site.lab.delete("tenants", "", &["web-peers-kim"]);
    assert_ends(&mut kim, "the Tenant is deleted");
}

#[test]
fn the_input_of_a_peer_who_looks_on_is_discarded() {
    let site = Site::start("web-view", "");
    site.enrol("lee", site.name, "user");
    site.share(&[("lee", "view")], HOUR);
    let mut lee = site.open_of("lee");
    let [looking, working] = ["looking", "working"].map(|name| site.folder.path().join(name));
    let touch = |path: &std::path::Path| format!("touch {}\n", path.display());
    lee.enter(&touch(&looking));
    site.share(&[("lee", "control")], HOUR);
    wait_until(PATIENCE, || {
        lee.enter(&touch(&working));
        if working.exists() { Ok(()) } else { Err("no input reaches the machine".to_owned()) }
    });
    assert!(!looking.exists(), "the input while looking on has reached the machine");
}

#[test]
fn a_manager_is_recorded_and_is_out_soon_after_the_role() {
    let site = Site::start("web-manages", "");
    let mut owner = site.open();
    let mut manager = site.open_of("manager");
    site.await_record("\\\"as\\\":\\\"manager\\\"", true);
    site.lab.patch("tenants", "", "web-manages-manager", r#"{"spec": {"workspaces": []}}"#);
    assert_ends(&mut manager, "no manager any more");
    site.await_record("manager", false);
    owner.enter("echo sti''ll\n");
    owner.until("still\r\n");
    let record = site.lab.get("configmaps", "workspace-web-manages", "crownlabs-peers").expect("it");
    let entries = record["data"].as_object().map_or(0, serde_json::Map::len);
    assert_eq!(entries, 0, "the owner, whose terminal is open, is not recorded: {record}");
}
