//! The Instances of a student of two courses, for managers whose rights end at their courses.

use serde_json::json;

use super::quota::{instance, template};
use super::rules::expect;
use super::{SELECTOR, act, daemon, install, lab, reserved_port};
use crate::lab::Lab;
use crate::tenants::{tenant, workspace};

const LOOPS: &str = "controllers: {instance: {enabled: false}, tenant: {managers: course}}\n";
const NAMESPACE: &str = "tenant-ada";
const OF_NET: &[&str] = &["net"];
/// The refusal to a manager of another course.
const REFUSED: &str = "which you do not manage";

/// Runs `kubectl` as a manager of these courses.
fn manage(lab: &Lab, courses: &[&str], arguments: &[&str], input: &str) -> Result<String, String> {
    let groups = courses.iter().map(|course| format!("--as-group=kubernetes:workspace-{course}:manager"));
    let groups: Vec<String> = groups.collect();
    let all: Vec<&str> = groups.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
    act(lab, "tim", &all, input)
}

/// Merge-patches an Instance as a manager of the course `net`; its status if `more` says so.
fn patch(lab: &Lab, name: &str, patch: &str, more: &[&str]) -> Result<String, String> {
    let arguments = ["patch", "instance", "-n", NAMESPACE, name, "--type=merge", "-p", patch];
    manage(lab, OF_NET, &[&arguments[..], more].concat(), "")
}

fn delete(name: &str) -> [&str; 6] {
    ["delete", "instance", "-n", NAMESPACE, name, "--wait=false"]
}

fn exists(lab: &Lab, name: &str) -> bool {
    lab.get("instances", NAMESPACE, name).is_some()
}

#[test]
fn managers_by_course_write_only_instances_of_their_courses() {
    let lab = lab();
    let port = reserved_port();
    let running = daemon(&lab, port, "", LOOPS);
    for name in ["net", "data"] {
        lab.apply(&workspace(SELECTOR, name, ""));
        lab.await_ready("workspaces", name);
        lab.apply(&template(&format!("workspace-{name}"), "lab", name));
    }
    let both = ", quota: {cpu: 16, memory: 64Gi, instances: 20}, workspaces: [{name: net, role: user}, {name: data, role: user}]";
    lab.apply(&tenant(SELECTOR, "ada", both));
    lab.await_ready("tenants", "ada");
    install(&lab, SELECTOR, port);
    for (name, course) in [("n1", "net"), ("n2", "net"), ("d1", "data"), ("d2", "data")] {
        lab.apply(&instance(name, &format!("workspace-{course}/lab"), "running: false"));
    }
    changes(&lab);
    deletions(&lab);
    // While no daemon runs, managers cannot delete, and the student and administrators can.
    drop(running);
    expect("a manager", manage(&lab, &["data"], &delete("d2"), ""), "failed calling webhook");
    expect("the student", act(&lab, "ada", &delete("d2"), ""), "");
}

/// Changes of Instances and of their status, and new Instances.
fn changes(lab: &Lab) {
    let stop = r#"{"spec": {"running": false, "prettyName": "x"}}"#;
    let phase = r#"{"status": {"phase": "Off"}}"#;
    let template = |course: &str| {
        let reference = json!({"name": "lab", "namespace": format!("workspace-{course}")});
        json!({"spec": {"template.crownlabs.polito.it/TemplateRef": reference}}).to_string()
    };
    for (name, word) in [("n1", ""), ("d1", REFUSED)] {
        expect(&format!("a change of {name}"), patch(lab, name, stop, &[]), word);
        let of_status = patch(lab, name, phase, &["--subresource=status"]);
        expect(&format!("the status of {name}"), of_status, word);
    }
    expect("an Instance taken over", patch(lab, "d1", &template("net"), &[]), REFUSED);
    expect("an Instance passed on", patch(lab, "n1", &template("data"), &[]), REFUSED);
    let create = |course: &str| {
        let new = instance("new", &format!("workspace-{course}/lab"), "running: false");
        manage(lab, OF_NET, &["create", "-f", "-", "--dry-run=server"], &new)
    };
    expect("a new Instance of the other course", create("data"), REFUSED);
    expect("a new Instance", create("net"), "");
}

/// Deletions, one by one and as a collection. The namespace decides about a Template that is gone.
fn deletions(lab: &Lab) {
    expect("of the other course", manage(lab, OF_NET, &delete("d1"), ""), REFUSED);
    lab.delete("templates", "workspace-data", &["lab"]);
    expect("of a Template that is gone", manage(lab, OF_NET, &delete("d1"), ""), REFUSED);
    expect("of the course", manage(lab, OF_NET, &delete("n1"), ""), "");
    let path = format!("/apis/crownlabs.polito.it/v1alpha2/namespaces/{NAMESPACE}/instances");
    expect("all at once", manage(lab, OF_NET, &["delete", "--raw", &path], ""), REFUSED);
    assert!(exists(lab, "d1") && exists(lab, "d2"), "the collection has Instances of both courses");
    expect("a manager of both", manage(lab, &["net", "data"], &delete("d1"), ""), "");
    assert!(!exists(lab, "d1"));
}
