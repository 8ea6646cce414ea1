//! Requests about Instances: their Tenant, the Templates that the Tenant may use, and the quota.

use std::thread;

use serde_json::{Value, json};

use super::act;
use super::rules::{enrolled, expect};
use crate::lab::{Lab, PATIENCE, wait_until};

/// A Template with one processor and 512 MiB.
pub fn template(namespace: &str, name: &str, workspace: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  prettyName: {name}
  description: for the tests
  workspace.crownlabs.polito.it/WorkspaceRef: {{name: {workspace}}}
  environmentList:
  - name: main
    image: r.example.org/web:1
    environmentType: Standalone
    resources: {{cpu: 1, reservedCPUPercentage: 10, memory: 512Mi}}
"
    )
}

pub fn instance(name: &str, template: &str, more: &str) -> String {
    let (namespace, template) = template.split_once('/').expect("namespace/name");
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {{name: {name}, namespace: tenant-ada}}
spec:
  template.crownlabs.polito.it/TemplateRef: {{name: {template}, namespace: {namespace}}}
  tenant.crownlabs.polito.it/TenantRef: {{name: ada}}
  {more}
"
    )
}

/// Starts or stops an Instance of ada.
fn run(lab: &Lab, name: &str, running: bool) -> Result<String, String> {
    let patch = json!({"spec": {"running": running}}).to_string();
    act(lab, "ada", &["patch", "instance", "-n", "tenant-ada", name, "--type=merge", "-p", &patch], "")
}

/// Creates an object from a YAML text as a user.
fn create(lab: &Lab, user: &str, text: &str) -> Result<String, String> {
    act(lab, user, &["create", "-f", "-"], text)
}

/// The rejection of a third Instance.
const FULL: &str = "quota exceeded: Instances (3 > 2), CPU (3 > 2)";

/// An Instance in the namespace of a Tenant belongs to that Tenant, whoever creates it.
pub fn tenants_of_namespaces(lab: &Lab) {
    lab.apply(&template("workspace-closed", "small", "closed"));
    let of_teacher =
        instance("sly", "workspace-closed/small", "running: false").replace("{name: ada}", "{name: teacher}");
    let refused = "the namespace tenant-ada belongs to Tenant ada";
    for user in ["ada", "teacher", "root"] {
        expect("of another Tenant", create(lab, user, &of_teacher), refused);
    }
    let honest = instance("honest", "workspace-closed/small", "running: false");
    expect("of the Tenant", create(lab, "ada", &honest), "");
    let patch = json!({"spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "teacher"}}}).to_string();
    let arguments = ["patch", "instance", "-n", "tenant-ada", "honest", "--type=merge", "-p", &patch];
    expect("given to another Tenant", act(lab, "ada", &arguments, ""), refused);
    mail_records(lab);
    lab.delete("instance", "tenant-ada", &["honest"]);
}

/// Only the daemon and administrators may write when an Instance's mails were accepted, by any kind of request.
fn mail_records(lab: &Lab) {
    let key = "crownlabs.polito.it/mailed-expiration-warning";
    let set = |user: &str, way: &[&str], value: Value| {
        let patch =
            json!({"metadata": {"annotations": {key: value}}, "status": {"phase": "Off"}}).to_string();
        let arguments = ["patch", "instance", "-n", "tenant-ada", "honest", "--type=merge", "-p", &patch];
        act(lab, user, &[&arguments[..], way].concat(), "")
    };
    let stored = || {
        let honest = lab.get("instances", "tenant-ada", "honest").expect("it is there");
        honest["metadata"]["annotations"][key].clone()
    };
    let (time, refused) = ("2026-11-20T17:00:00Z", "only CrownLabs writes it, so leave it ");
    for user in ["ada", "teacher"] {
        expect("set", set(user, &[], json!(time)), &format!("{refused}out"));
        // This subresource accepts only changes to the status.
        expect("with the status", set(user, &["--subresource=status"], json!(time)), "");
        assert_eq!(stored(), Value::Null, "{user}");
    }
    let root = &["--as-group=system:masters"];
    expect("set by an administrator", set("root", root, json!(time)), "");
    for user in ["ada", "teacher"] {
        expect("changed", set(user, &[], json!("2027-01-01T00:00:00Z")), &format!("{refused}as it is"));
        expect("removed", set(user, &[], Value::Null), &format!("{refused}as it is"));
        expect("removed with the status", set(user, &["--subresource=status"], Value::Null), "");
    }
    assert_eq!(stored(), time);
    let replaced = instance("honest", "workspace-closed/small", "running: false");
    expect(
        "replaced without it",
        act(lab, "ada", &["replace", "-f", "-"], &replaced),
        &format!("{refused}as it is"),
    );
    let copy = instance("copy", "workspace-closed/small", "running: false")
        .replace("metadata: {", &format!("metadata: {{annotations: {{{key}: \"{time}\"}}, "));
    assert!(copy.contains(key), "{copy}");
    expect("created with it", create(lab, "ada", &copy), &format!("{refused}out"));
}

/// The quota allows two Instances, whoever creates them, and however many are created at the same time.
pub fn quota(lab: &Lab) {
    // A Template that was created together with the Instance is found, although no watch may have delivered it yet.
    let both = [template("workspace-other", "new", "other"), instance("first", "workspace-other/new", "")];
    let refused = "the Tenant ada is not enrolled in the Workspace other";
    expect("not enrolled", create(lab, "root", &both.concat()), refused);
    lab.delete("template", "workspace-other", &["new"]);
    let enrolled = enrolled(&[("closed", "user"), ("other", "user"), ("utilities", "user")]);
    lab.patch("tenants", "", "ada", &enrolled.to_string());
    // The webhook's watch may deliver the enrolment with a short delay.
    wait_until(PATIENCE, || {
        create(lab, "root", &both.concat()).map_err(|refusal| {
            lab.delete("template", "workspace-other", &["new"]);
            format!("both at once: {refusal}")
        })
    });
    lab.delete("instance", "tenant-ada", &["first"]);
    lab.apply(&template("workspace-closed", "small", "closed"));
    // A dry run does not count.
    for _ in 0..3 {
        let dry = ["create", "--dry-run=server", "-f", "-"];
        expect("a trial", act(lab, "ada", &dry, &instance("trial", "workspace-closed/small", "")), "");
    }
    concurrent_creations(lab);
    let running: Vec<String> = lab
        .list("instances", "tenant-ada")
        .iter()
        .map(|each| each["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    expect(
        "one that is stopped",
        create(lab, "ada", &instance("later", "workspace-closed/small", "running: false")),
        "",
    );
    expect("its start", run(lab, "later", true), FULL);
    expect("the end of another", run(lab, &running[0], false), "");
    wait_until(PATIENCE, || run(lab, "later", true).map_err(|refusal| format!("its start then: {refusal}")));
    expect("the other again", run(lab, &running[0], true), FULL);
    expect(
        "a change of what runs",
        act(lab, "ada", &["label", "instance", "-n", "tenant-ada", "later", "a=b"], ""),
        "",
    );
    // A deleted Instance stops counting at once.
    expect("the end of one", run(lab, "later", false), "");
    for _ in 0..3 {
        let brief = instance("brief", "workspace-closed/small", "");
        wait_until(PATIENCE, || {
            create(lab, "ada", &brief).map_err(|refusal| format!("within the quota: {refusal}"))
        });
        lab.delete("instance", "tenant-ada", &["brief"]);
    }
    let absent = instance("absent", "workspace-closed/absent", "");
    expect("no Template", create(lab, "ada", &absent), "the Template workspace-closed/absent does not exist");
    // Another Workspace has its own quota.
    lab.apply(&template("workspace-other", "small", "other"));
    expect("another Workspace", create(lab, "ada", &instance("elsewhere", "workspace-other/small", "")), "");
}

/// Of eight Instances that are created at the same time, two are admitted.
fn concurrent_creations(lab: &Lab) {
    let answers: Vec<Result<String, String>> = thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|number| {
                let user = if number % 2 == 0 { "ada" } else { "teacher" };
                let text = instance(&format!("i{number}"), "workspace-closed/small", "");
                scope.spawn(move || act(lab, user, &["create", "-f", "-"], &text))
            })
            .collect();
        all.into_iter().map(|each| each.join().expect("no panic")).collect()
    });
    let (admitted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(admitted.len(), 2, "{refused:?}");
    for refusal in refused {
        expect("the others", refusal, FULL);
    }
}

/// The quota of a personal Workspace.
pub fn personal(lab: &Lab) {
    let share = |value: Value| json!({"spec": {"personalWorkspace": value}});
    let admin = |patch: Value| {
        lab.try_kubectl(&["patch", "tenant", "ada", "--type=merge", "-p", &patch.to_string()], "")
    };
    let one = json!({"cpu": 1, "memory": "1Gi", "instances": 1});
    let create = |text: &str| act(lab, "ada", &["create", "-f", "-"], text);
    lab.apply(&template("tenant-ada", "mine", "closed"));
    expect("none yet", create(&instance("own", "tenant-ada/mine", "")), "has no personal workspace");
    expect("given", admin(share(one)), "");
    wait_until(PATIENCE, || {
        create(&instance("own", "tenant-ada/mine", "")).map_err(|refusal| format!("the first: {refusal}"))
    });
    expect(
        "the second",
        create(&instance("own2", "tenant-ada/mine", "")),
        "quota exceeded: Instances (2 > 1), CPU (2 > 1)",
    );
    wait_until(PATIENCE, || match admin(share(Value::Null)) {
        Err(refusal) if refusal.contains("the personal workspace is in use: the Instance own") => Ok(()),
        other => Err(format!("a conflict: {other:?}")),
    });
    lab.delete("instance", "tenant-ada", &["own"]);
    wait_until(PATIENCE, || admin(share(Value::Null)).map_err(|refusal| format!("taken away: {refusal}")));
}
