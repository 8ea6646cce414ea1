//! The people with whom an Instance is shared: the owner names them, and the webhook checks their course.

use crownlabs::testing::clock;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::quota::{instance, template};
use super::rules::{enrolled, expect};
use super::{SELECTOR, act, daemon, install, lab, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::{tenant, workspace};

const KEY: &str = "crownlabs.polito.it/shared-with";
const LOOPS: &str = "controllers: {instance: {enabled: false}}\n";
const HOUR: i64 = 3_600;

/// Returns an entry that ends after this time.
fn entry(user: &str, seconds: i64) -> Value {
    let until = clock::now() + SignedDuration::from_secs(seconds);
    json!({"user": user, "access": "view", "until": clock::rfc3339(until)})
}

/// Shares the Instance with these people, as a user in these groups.
fn share(lab: &Lab, user: &str, groups: &[&str], people: &[Value]) -> Result<String, String> {
    let text = (!people.is_empty()).then(|| Value::from(people.to_vec()).to_string());
    let patch = json!({"metadata": {"annotations": {KEY: text}}}).to_string();
    let groups: Vec<String> = groups.iter().map(|group| format!("--as-group={group}")).collect();
    let command = ["patch", "instance", "-n", "tenant-ada", "lab", "--type=merge", "-p", &patch];
    let all: Vec<&str> = groups.iter().map(String::as_str).chain(command).collect();
    act(lab, user, &all, "")
}

#[test]
fn an_owner_shares_an_instance_with_people_of_its_course_and_no_one_else_does() {
    let lab = lab();
    let port = reserved_port();
    let _daemon = daemon(&lab, port, "", LOOPS);
    for name in ["tea", "net"] {
        lab.apply(&workspace(SELECTOR, name, ""));
        lab.await_ready("workspaces", name);
    }
    lab.apply(&template("workspace-tea", "lab", "tea"));
    for (name, course) in [("ada", "tea"), ("kim", "tea"), ("max", "net")] {
        lab.apply(&tenant(SELECTOR, name, &format!(", workspaces: [{{name: {course}, role: user}}]")));
        lab.await_ready("tenants", name);
    }
    install(&lab, SELECTOR, port);
    lab.apply(&instance("lab", "workspace-tea/lab", "running: false"));
    let kim = [entry("kim", HOUR)];
    expect("an entry of the owner", share(&lab, "ada", &[], &kim), "");
    for (what, people, words) in [
        ("a person of another course", vec![entry("max", HOUR)], "max is not enrolled in Workspace tea"),
        (
            "a person who does not exist",
            vec![entry("nobody", HOUR)],
            "nobody is not enrolled in Workspace tea",
        ),
        ("the owner", vec![entry("ada", HOUR)], "ada owns the Instance"),
        ("an end that is too far away", vec![entry("kim", 31 * 24 * HOUR)], "at most 30 days ahead"),
        ("a person twice", vec![entry("kim", HOUR), entry("kim", HOUR)], "names kim twice"),
    ] {
        expect(what, share(&lab, "ada", &[], &people), words);
    }
    let manager = "kubernetes:workspace-tea:manager";
    for (who, groups) in [("kim", &[][..]), ("tim", &[manager])] {
        for people in [vec![], vec![entry("kim", 2 * HOUR)]] {
            expect(who, share(&lab, who, groups, &people), "only the Tenant of the namespace tenant-ada");
        }
    }
    // A person who has left the course stays named until the owner removes them. A new end is a new entry.
    let left = enrolled(&[]).to_string();
    lab.try_kubectl(&["patch", "tenant", "kim", "--type=merge", "-p", &left], "").expect("an administrator");
    wait_until(PATIENCE, || match share(&lab, "ada", &[], &[entry("kim", 2 * HOUR)]) {
        Err(refusal) if refusal.contains("kim is not enrolled") => Ok(()),
        other => Err(format!("the refusal of another end: {other:?}")),
    });
    let stop = json!({"spec": {"prettyName": "x"}}).to_string();
    let rename = ["patch", "instance", "-n", "tenant-ada", "lab", "--type=merge", "-p", &stop];
    expect("another change", act(&lab, "ada", &rename, ""), "");
    expect("nobody any more", share(&lab, "ada", &[], &[]), "");
    // An administrator restores what was stored.
    let text = Value::from(vec![entry("max", HOUR)]).to_string();
    let patch = json!({"metadata": {"annotations": {KEY: text}}}).to_string();
    let restored = ["patch", "instance", "-n", "tenant-ada", "lab", "--type=merge", "-p", &patch];
    expect("an administrator", lab.try_kubectl(&restored, ""), "");
}
