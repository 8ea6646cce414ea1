//! The rules of the webhooks: for each one, a request that is admitted and one that is refused.

use std::thread;
use std::time::Duration;

use crownlabs::testing::clock;
use serde_json::{Value, json};

use super::{SELECTOR, act, await_metric, configurations, daemon, edit, free_port, install, lab, lab_with};
use crate::cluster::Options as ClusterOptions;
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::{tenant, workspace};

/// The selector label.
const KEY: &str = "crownlabs.polito.it/operator-selector";
const LOOPS: &str = "controllers: {instance: {enabled: false}, tenant: {baseWorkspaces: [utilities], \
                     personalWorkspace: {enabled: true}}}\n";

/// Creates the Workspaces and Tenants of the tests.
fn create_fixtures(lab: &Lab) {
    for (name, auto_enroll) in
        [("open", "immediate"), ("asked", "withApproval"), ("closed", ""), ("other", ""), ("utilities", "")]
    {
        lab.apply(&workspace(SELECTOR, name, auto_enroll));
    }
    let teacher = ", workspaces: [{name: closed, role: manager}]";
    lab.apply(&tenant(SELECTOR, "teacher", teacher));
    lab.apply(&tenant(SELECTOR, "ada", ", workspaces: [{name: closed, role: user}]"));
    for name in ["teacher", "ada"] {
        lab.await_ready("tenants", name);
    }
}

/// Asserts that a request was refused with a message that contains `word`, or admitted when `word` is empty; `what`
/// names the request.
fn expect(what: &str, answer: Result<String, String>, word: &str) {
    match answer {
        Ok(_) => assert!(word.is_empty(), "{what}: admitted"),
        Err(refusal) => assert!(!word.is_empty() && refusal.contains(word), "{what}: {refusal}"),
    }
}

/// A patch of `spec.workspaces`: names and roles.
fn enrolled(list: &[(&str, &str)]) -> Value {
    let list: Vec<Value> = list.iter().map(|(name, role)| json!({"name": name, "role": role})).collect();
    json!({"spec": {"workspaces": list}})
}

fn spec_of(lab: &Lab, name: &str) -> Value {
    lab.get("tenants", "default", name).expect("the Tenant")["spec"].clone()
}

/// Owner references to an object that does not exist: the garbage collector deletes what has them.
fn absent_owner() -> Value {
    json!([{"apiVersion": "v1", "kind": "Namespace", "name": "absent", "uid": "6ee8ee9e-94ed-4ad0-b9b1-ac9d1b2a0f7d"}])
}

/// What a Tenant may change of itself, and what others may.
fn edits(lab: &Lab) {
    let now = clock::rfc3339(clock::now());
    let closed = ("closed", "user");
    let everybody = ("utilities", "user");
    for (user, patch, word) in [
        ("ada", json!({"spec": {"publicKeys": ["ssh-ed25519 AAAA ada"]}}), ""),
        ("teacher", json!({"spec": {"publicKeys": ["ssh-ed25519 BBBB eve"]}}), "spec.publicKeys"),
        (
            "ada",
            json!({"spec": {"publicKeys": ["ssh-ed25519 AAAA ada\nssh-ed25519 BBBB eve"]}}),
            "spec.publicKeys[0] has a line break",
        ),
        ("ada", json!({"spec": {"lastLogin": now}}), ""),
        ("ada", json!({"spec": {"lastLogin": "2126-01-01T00:00:00Z"}}), "within 24 h of now"),
        ("ada", json!({"spec": {"lastLogin": null}}), "may not be removed"),
        ("ada", json!({"spec": {"quota": {"cpu": "64", "memory": "1Ti", "instances": 99}}}), "spec.quota"),
        ("ada", json!({"spec": {"createSandbox": true}}), "spec.createSandbox"),
        ("ada", json!({"spec": {"email": "eve@example.org"}}), "spec.email"),
        (
            "ada",
            json!({"spec": {"personalWorkspace": {"cpu": 9, "memory": "9Gi", "instances": 9}}}),
            "spec.personalWorkspace",
        ),
        ("ada", enrolled(&[closed, ("open", "user")]), ""),
        ("ada", enrolled(&[closed, ("open", "manager")]), "as user, not as manager"),
        ("ada", enrolled(&[closed]), ""),
        ("ada", enrolled(&[closed, ("asked", "user")]), "as candidate, not as user"),
        ("ada", enrolled(&[closed, ("asked", "candidate")]), ""),
        ("ada", enrolled(&[closed, ("asked", "user")]), "as candidate, not as user"),
        ("ada", enrolled(&[closed]), ""),
        ("ada", enrolled(&[closed, ("other", "user")]), "up to its managers"),
        ("ada", enrolled(&[closed, ("nowhere", "user")]), "\"nowhere\" not found"),
        ("ada", enrolled(&[("closed", "manager")]), "up to its managers"),
        ("ada", enrolled(&[]), "up to its managers"),
        ("ada", enrolled(&[closed, ("utilities", "manager")]), "up to its managers"),
        ("ada", enrolled(&[closed, everybody]), ""),
        ("Ada", enrolled(&[closed, ("open", "user")]), "\"Ada\" not found"),
        ("stranger", enrolled(&[closed, ("open", "user")]), "\"stranger\" not found"),
        ("teacher", enrolled(&[("closed", "manager")]), ""),
        ("teacher", enrolled(&[closed]), ""),
        ("teacher", enrolled(&[closed, ("other", "user")]), "not a manager of the Workspace other"),
        ("teacher", enrolled(&[closed, ("open", "user")]), "not a manager of the Workspace open"),
        ("teacher", json!({"spec": {"createSandbox": true}}), "spec.createSandbox"),
        ("teacher", json!({"metadata": {"ownerReferences": absent_owner()}}), "not metadata.ownerReferences"),
        ("teacher", json!({"metadata": {"annotations": {"note": "his"}}}), "not metadata.annotations"),
        ("ada", json!({"metadata": {"annotations": {"note": "mine"}}}), ""),
        ("ada", json!({"metadata": {"finalizers": null}}), "only administrators may remove the finalizer"),
        (
            "teacher",
            json!({"metadata": {"finalizers": ["a.b/c"]}}),
            "only administrators may remove the finalizer",
        ),
    ] {
        expect(&format!("{user}: {patch}"), edit(lab, user, "ada", &patch), word);
    }
    let workspaces = spec_of(lab, "ada")["workspaces"].clone();
    assert_eq!(
        workspaces,
        json!([{"name": "closed", "role": "user"}, {"name": "utilities", "role": "user"}])
    );
}

/// Who may create a Tenant, and what the defaulter adds to it.
fn creations(lab: &Lab) {
    let written = |name: &str, workspaces: &str| {
        tenant("elsewhere", name, &format!(", workspaces: [{workspaces}]"))
            .replace(", lastLogin: \"2099-01-01T00:00:00Z\"", "")
    };
    let create = |user: &str, text: &str| act(lab, user, &["create", "-f", "-"], text);
    let closed = "{name: closed, role: user}";
    for (user, workspaces, word) in [
        ("eve", "", "\"eve\" not found"),
        ("teacher", "], createSandbox: true, workspaces: [", "not with spec.createSandbox"),
        ("teacher", &format!("{closed}], publicKeys: [ssh-rsa A"), "not with spec.publicKeys"),
        ("teacher", closed, ""),
        ("teacher", "{name: other, role: manager}", "not a manager of the Workspace other"),
        ("teacher", "{name: utilities, role: manager}", "not a manager of the Workspace utilities"),
        ("ada", closed, "not a manager of the Workspace closed"),
        ("stranger", closed, "\"stranger\" not found"),
    ] {
        expect(&format!("{user} {workspaces}"), create(user, &written("eve", workspaces)), word);
    }
    // The defaulter sets the selector label, whatever was written, and adds only the base Workspace.
    let eve = lab.get("tenants", "default", "eve").expect("there");
    assert_eq!(eve["metadata"]["labels"][KEY], SELECTOR);
    assert_eq!(
        eve["spec"],
        json!({
            "firstName": "Ada", "lastName": "Rossi", "email": "eve@example.org", "createSandbox": false,
            "workspaces": [{"name": "closed", "role": "user"}, {"name": "utilities", "role": "user"}],
        })
    );
    // A Tenant without the optional members is stored without them.
    let least = "{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: least},
        spec: {firstName: A, lastName: B, email: a@b, quota: {cpu: 8, memory: 1024Mi, instances: 1}}}";
    lab.apply(least);
    let spec = spec_of(lab, "least");
    assert!(spec.get("lastLogin").is_none(), "{spec}");
    assert_eq!(spec["quota"], json!({"cpu": 8, "memory": "1024Mi", "instances": 1}));
    // The service tenant has an empty label, whatever an administrator wrote.
    lab.apply(&tenant("elsewhere", "service-tenant", ""));
    let service = lab.get("tenants", "default", "service-tenant").expect("there");
    assert_eq!(service["metadata"]["labels"][KEY], "");
}

/// The selector label: the defaulter restores it, and without the defaulter the validator refuses a change.
fn labels(lab: &Lab, port: u16) {
    let label = |value: Value| json!({"metadata": {"labels": {KEY: value}}});
    for value in [Value::Null, "".into(), "elsewhere".into()] {
        expect("the defaulter restores it", edit(lab, "ada", "ada", &label(value)), "");
        let ada = lab.get("tenants", "default", "ada").expect("there");
        assert_eq!(ada["metadata"]["labels"][KEY], SELECTOR);
    }
    lab.kubectl(&["delete", "mutatingwebhookconfiguration", "crownlabs-webhook"]);
    wait_until(PATIENCE, || match edit(lab, "ada", "ada", &label(Value::Null)) {
        Err(refusal) if refusal.contains("only administrators may change the label") => Ok(()),
        other => Err(format!("a refusal by the validator: {other:?}")),
    });
    // When the defaulter is installed again, the daemon writes its CA bundle again.
    lab.apply(&configurations(SELECTOR, port, None));
    wait_until(PATIENCE, || match edit(lab, "ada", "ada", &label(Value::Null)) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(format!("the defaulter: {refusal}")),
    });
}

/// Requests that the rules do not apply to: of administrators, of the daemon, and to the status.
fn exceptions(lab: &Lab) {
    let patch = json!({"spec": {"firstName": "Grace", "createSandbox": false}}).to_string();
    let mut kubectl = lab.cluster.kubectl();
    kubectl.args(["patch", "tenant", "ada", "--type=merge", "-p", patch.as_str()]);
    let output = kubectl.output().expect("kubectl runs");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("webhook check overridden"), "{output:?}");
    // The tenant loop updates the label; its service account is in no group of administrators.
    lab.await_value("tenants", "default", "ada", "/metadata/labels/crownlabs.polito.it~1first-name", "Grace");
    let status = ["patch", "tenant", "ada", "--subresource=status", "--type=merge", "-p"];
    let answer =
        act(lab, "stranger", &[&status[..], &[r#"{"status": {"failingWorkspaces": ["x"]}}"#]].concat(), "");
    expect("a status", answer, "");
    let group = ["--as-group=system:masters", "patch", "tenant", "ada", "--type=merge", "-p"];
    let answer = act(lab, "root", &[&group[..], &[r#"{"spec": {"firstName": "Ada"}}"#]].concat(), "");
    expect("a member of the group", answer, "");
}

/// A Template with one processor and 512 MiB.
fn template(namespace: &str, name: &str, workspace: &str) -> String {
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

fn instance(name: &str, template: &str, more: &str) -> String {
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

/// Creates an object of a YAML text as a user.
fn create(lab: &Lab, user: &str, text: &str) -> Result<String, String> {
    act(lab, user, &["create", "-f", "-"], text)
}

/// The refusal of a third Instance.
const FULL: &str = "quota exceeded: Instances (3 > 2), CPU (3 > 2)";

/// An Instance in the namespace of a Tenant is for that Tenant, whoever creates it.
fn tenants_of_namespaces(lab: &Lab) {
    lab.apply(&template("workspace-closed", "small", "closed"));
    let of_teacher =
        instance("sly", "workspace-closed/small", "running: false").replace("{name: ada}", "{name: teacher}");
    let refused = "the namespace tenant-ada is that of Tenant ada";
    for user in ["ada", "teacher", "root"] {
        expect("of another Tenant", create(lab, user, &of_teacher), refused);
    }
    let honest = instance("honest", "workspace-closed/small", "running: false");
    expect("of the Tenant", create(lab, "ada", &honest), "");
    let patch = json!({"spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "teacher"}}}).to_string();
    let arguments = ["patch", "instance", "-n", "tenant-ada", "honest", "--type=merge", "-p", &patch];
    expect("given to another Tenant", act(lab, "ada", &arguments, ""), refused);
    lab.kubectl(&["delete", "instance", "-n", "tenant-ada", "honest"]);
}

/// The quota allows two Instances, whoever creates them, and however many are created at the same time.
fn quota(lab: &Lab) {
    // A Template that was created with the Instance is found, although no watch may have shown it yet.
    let both = [template("workspace-other", "new", "other"), instance("first", "workspace-other/new", "")];
    let refused = "the Tenant ada is not enrolled in the Workspace other";
    expect("not enrolled", create(lab, "root", &both.concat()), refused);
    lab.kubectl(&["delete", "template", "-n", "workspace-other", "new"]);
    let enrolled = enrolled(&[("closed", "user"), ("other", "user"), ("utilities", "user")]);
    lab.patch("tenants", "", "ada", &enrolled.to_string());
    expect("both at once", create(lab, "root", &both.concat()), "");
    lab.kubectl(&["delete", "instance", "-n", "tenant-ada", "first"]);
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
    // A deleted Instance does not count any more at once.
    expect("the end of one", run(lab, "later", false), "");
    for _ in 0..3 {
        let brief = instance("brief", "workspace-closed/small", "");
        wait_until(PATIENCE, || {
            create(lab, "ada", &brief).map_err(|refusal| format!("within the quota: {refusal}"))
        });
        lab.kubectl(&["delete", "instance", "-n", "tenant-ada", "brief"]);
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
fn personal(lab: &Lab) {
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
    lab.kubectl(&["delete", "instance", "-n", "tenant-ada", "own"]);
    wait_until(PATIENCE, || admin(share(Value::Null)).map_err(|refusal| format!("taken away: {refusal}")));
}

#[test]
fn a_manager_cannot_let_the_garbage_collector_delete_a_user() {
    let lab = lab_with(ClusterOptions { owner_references_guarded: false, ..ClusterOptions::default() });
    let port = free_port();
    let _daemon = daemon(&lab, port, "", LOOPS);
    create_fixtures(&lab);
    install(&lab, SELECTOR, port);
    edits(&lab);
    creations(&lab);
    // What it is about: of an administrator, the API server takes such a reference, and the user is deleted.
    lab.patch("tenants", "", "eve", &json!({"metadata": {"ownerReferences": absent_owner()}}).to_string());
    lab.await_gone("tenants", "", "eve");
    assert!(lab.get("tenants", "", "ada").is_some_and(|ada| ada["metadata"]["deletionTimestamp"].is_null()));
}

#[test]
fn the_rules_hold_behind_a_real_api_server() {
    let lab = lab();
    let port = free_port();
    let mut daemon = daemon(&lab, port, "", LOOPS);
    create_fixtures(&lab);
    install(&lab, SELECTOR, port);
    edits(&lab);
    creations(&lab);
    labels(&lab, port);
    exceptions(&lab);
    tenants_of_namespaces(&lab);
    quota(&lab);
    personal(&lab);
    for path in ["/defaulter-v1alpha2-tenant", "/validator-v1alpha2-tenant", "/validator-v1alpha2-instance"] {
        await_metric(
            &daemon,
            &format!("controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"200\"}}"),
        );
        await_metric(
            &daemon,
            &format!("controller_runtime_webhook_latency_seconds_count{{webhook=\"{path}\"}}"),
        );
    }
    // While the daemon stops, it still answers for a moment; when it has ended, every change is refused.
    daemon.signal("TERM");
    let patch = json!({"metadata": {"annotations": {"note": "late"}}});
    expect("while it leaves", edit(&lab, "ada", "ada", &patch), "");
    let status = daemon.wait(Duration::from_secs(30)).expect("it ends");
    assert!(status.success(), "{status}");
    expect("without it", edit(&lab, "ada", "ada", &patch), "failed calling webhook");
}
