//! The rights that the daemon gives to users of each role, as the API server's authorizer sees them.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::{own_template, tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::direct::User;

/// The users of the table, where they are named by their first letter.
const PEOPLE: [(&str, User); 5] = [
    ("tenant", User { name: "rita", groups: &[] }),
    ("user", User { name: "rita", groups: &["kubernetes:workspace-rights-a:user", "system:authenticated"] }),
    (
        "manager",
        User { name: "mario", groups: &["kubernetes:workspace-rights-a:manager", "system:authenticated"] },
    ),
    (
        "other",
        User { name: "otto", groups: &["kubernetes:workspace-rights-b:manager", "system:authenticated"] },
    ),
    ("anonymous", User { name: "system:anonymous", groups: &["system:unauthenticated"] }),
];

/// The subresource with the screen of a virtual machine, with its API group.
const SCREEN: &str = "virtualmachineinstances.subresources.kubevirt.io/vnc";

/// A request and its users: verb, resource, namespace, and the letters of the users whom the authorizer allows it.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// The rights if managers have theirs in the whole cluster. `t` is the tenant rita, `u` is rita as a user of the course, `m` is a manager
/// of the course, `o` is the tenant otto, who manages another course, and `a` is anonymous.
const TABLE: &[Row] = &[
    // Instances of rita: rita herself, and the managers of any course, whose right is cluster-wide.
    ("get", "instances", "tenant-rita", "tumo"),
    ("list", "instances", "tenant-rita", "tumo"),
    ("watch", "instances", "tenant-rita", "tumo"),
    ("create", "instances", "tenant-rita", "tumo"),
    ("update", "instances", "tenant-rita", "tumo"),
    ("patch", "instances", "tenant-rita", "tumo"),
    ("delete", "instances", "tenant-rita", "tumo"),
    ("deletecollection", "instances", "tenant-rita", "tumo"),
    ("patch", "instances/status", "tenant-rita", "tumo"),
    ("create", "instances", "tenant-otto", "mo"),
    ("list", "instances", "tenant-otto", "mo"),
    ("delete", "instances", "tenant-otto", "mo"),
    ("create", "instances", "workspace-rights-a", "mo"),
    // The screens of virtual machines: the role of the managers in the whole cluster does not have them.
    ("get", SCREEN, "tenant-rita", "tu"),
    ("get", SCREEN, "tenant-otto", "o"),
    ("get", SCREEN, "workspace-rights-a", ""),
    ("create", SCREEN, "tenant-rita", ""),
    // The other objects of the tenant namespace: only the daemon.
    ("get", "secrets", "tenant-rita", ""),
    ("list", "secrets", "tenant-rita", ""),
    ("create", "secrets", "tenant-rita", ""),
    ("get", "secrets/mydrive-info", "tenant-rita", ""),
    ("get", "secrets/mydrive-info", "tenant-otto", ""),
    ("create", "pods", "tenant-rita", ""),
    ("create", "pods/exec", "tenant-rita", ""),
    ("get", "pods", "tenant-rita", ""),
    ("get", "services", "tenant-rita", ""),
    ("create", "ingresses", "tenant-rita", ""),
    ("patch", "resourcequotas", "tenant-rita", ""),
    ("delete", "resourcequotas", "tenant-rita", ""),
    ("delete", "networkpolicies", "tenant-rita", ""),
    ("patch", "networkpolicies", "tenant-rita", ""),
    ("create", "rolebindings", "tenant-rita", ""),
    ("patch", "rolebindings", "tenant-rita", ""),
    ("create", "roles", "tenant-rita", ""),
    ("create", "templates", "tenant-rita", ""),
    ("create", "sharedvolumes", "tenant-rita", ""),
    ("delete", "persistentvolumeclaims", "mydrive-pvcs", ""),
    ("get", "persistentvolumeclaims", "mydrive-pvcs", ""),
    ("create", "jobs", "mydrive-pvcs", ""),
    // The course: its users read the Templates, its managers change them.
    ("get", "templates", "workspace-rights-a", "um"),
    ("list", "templates", "workspace-rights-a", "um"),
    ("watch", "templates", "workspace-rights-a", "um"),
    ("create", "templates", "workspace-rights-a", "m"),
    ("update", "templates", "workspace-rights-a", "m"),
    ("delete", "templates", "workspace-rights-a", "m"),
    ("get", "sharedvolumes", "workspace-rights-a", "m"),
    ("create", "sharedvolumes", "workspace-rights-a", "m"),
    ("delete", "sharedvolumes", "workspace-rights-a", "m"),
    ("get", "templates", "workspace-rights-b", "o"),
    ("create", "templates", "workspace-rights-b", "o"),
    ("create", "sharedvolumes", "workspace-rights-b", "o"),
    // Announcements: as Templates; those for everyone are in the namespace of the installation.
    ("list", "announcements", "workspace-rights-a", "um"),
    ("create", "announcements", "workspace-rights-a", "m"),
    ("delete", "announcements", "workspace-rights-a", "m"),
    ("create", "announcements", "workspace-rights-b", "o"),
    ("list", "announcements", "crownlabs-system", ""),
    ("create", "announcements", "crownlabs-system", ""),
    ("get", "secrets", "workspace-rights-a", ""),
    ("create", "rolebindings", "workspace-rights-a", ""),
    // Tenants: rita herself and managers. The webhooks decide what they may change.
    ("get", "tenants/rita", "", "tumo"),
    ("patch", "tenants/rita", "", "tumo"),
    ("update", "tenants/rita", "", "tumo"),
    ("delete", "tenants/rita", "", ""),
    ("get", "tenants/otto", "", "mo"),
    ("patch", "tenants/otto", "", "mo"),
    ("list", "tenants", "", "mo"),
    ("create", "tenants", "", "mo"),
    ("delete", "tenants", "", ""),
    ("deletecollection", "tenants", "", ""),
    ("patch", "tenants/status", "", ""),
    // Workspaces, namespaces and RBAC objects: only administrators. Every user who can log in can list the courses.
    ("get", "workspaces/rights-a", "", "umo"),
    ("list", "imagelists", "", "umo"),
    ("create", "workspaces", "", ""),
    ("patch", "workspaces/rights-a", "", ""),
    ("delete", "workspaces/rights-a", "", ""),
    ("create", "namespaces", "", ""),
    ("delete", "namespaces", "", ""),
    ("patch", "namespaces", "", ""),
    ("get", "nodes", "", ""),
    ("create", "clusterroles", "", ""),
    ("bind", "clusterroles", "", ""),
    ("escalate", "clusterroles", "", ""),
    ("impersonate", "users", "", ""),
    ("patch", "clusterroles/crownlabs-manage-tenant-rita", "", ""),
    ("create", "clusterrolebindings", "", ""),
    ("delete", "clusterrolebindings", "", ""),
    ("create", "imagelists", "", ""),
    // A user who may create them connects pods past network policies.
    ("create", "podconfigs", "tenant-rita", ""),
    ("create", "podconfigs", "workspace-rights-a", ""),
    ("create", "podconfigs", "sandbox-rita", ""),
    // The sandbox: everything but its quota, its limits and the namespace itself.
    ("create", "pods", "sandbox-rita", "tu"),
    ("create", "pods/exec", "sandbox-rita", "tu"),
    ("create", "deployments", "sandbox-rita", "tu"),
    ("get", "secrets", "sandbox-rita", "tu"),
    ("create", "rolebindings", "sandbox-rita", "tu"),
    ("create", "roles", "sandbox-rita", "tu"),
    ("escalate", "roles", "sandbox-rita", ""),
    ("bind", "roles", "sandbox-rita", ""),
    ("create", "networkpolicies", "sandbox-rita", "tu"),
    ("patch", "resourcequotas", "sandbox-rita", ""),
    ("patch", "limitranges", "sandbox-rita", ""),
    ("delete", "namespaces/sandbox-rita", "", ""),
    ("create", "instances", "sandbox-rita", "mo"),
];

/// The rows that differ if the rights of managers end at their courses. Mario manages a course of rita, and Otto does not.
const BY_COURSE: &[Row] = &[
    ("get", "instances", "tenant-rita", "tum"),
    ("list", "instances", "tenant-rita", "tum"),
    ("watch", "instances", "tenant-rita", "tum"),
    // The webhooks decide about the Template.
    ("create", "instances", "tenant-rita", "tum"),
    ("update", "instances", "tenant-rita", "tum"),
    ("patch", "instances", "tenant-rita", "tum"),
    ("delete", "instances", "tenant-rita", "tum"),
    ("deletecollection", "instances", "tenant-rita", "tum"),
    ("patch", "instances/status", "tenant-rita", "tum"),
    ("get", SCREEN, "tenant-rita", "tum"),
    ("create", "instances", "tenant-otto", "o"),
    ("list", "instances", "tenant-otto", "o"),
    ("delete", "instances", "tenant-otto", "o"),
    ("create", "instances", "workspace-rights-a", ""),
    ("create", "instances", "sandbox-rita", ""),
];

/// The keys of the daemon for the role of the chart, with rights of managers in the whole cluster, and by course.
const CLUSTER: &str = "controllers: {tenant: {instancesClusterRole: crownlabs-own-instances}}";
const COURSE: &str =
    "controllers: {tenant: {instancesClusterRole: crownlabs-own-instances, managers: course}}";

/// Whether the authorizer allows a user a request.
fn allowed(lab: &Lab, user: User, verb: &str, resource: &str, namespace: &str) -> bool {
    // `pods/exec` is a subresource, `tenants/rita` an object.
    let object = resource.split_once('/').filter(|(_, rest)| !["exec", "status", "vnc"].contains(rest));
    let (resource, name) = object.unwrap_or((resource, ""));
    let answer = lab.cluster.may(user, verb, resource, namespace, name);
    answer.unwrap_or_else(|error| panic!("{error:#}"))
}

/// The rows of the table, with the rights of managers in the whole cluster or only in their courses.
fn table(is_by_course: bool) -> Vec<Row> {
    let of = |row: &Row| {
        let mut changed = BY_COURSE.iter().filter(|_| is_by_course);
        *changed.find(|changed| is_same(changed, row)).unwrap_or(row)
    };
    TABLE.iter().map(of).collect()
}

/// Whether two rows are about the same request.
fn is_same(one: &Row, other: &Row) -> bool {
    (one.0, one.1, one.2) == (other.0, other.1, other.2)
}

/// The rights that differ from these rows.
fn wrong(lab: &Lab, rows: &[Row]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (verb, resource, namespace, who) in rows {
        for (name, person) in PEOPLE {
            let expected = who.contains(&name[..1]);
            if allowed(lab, person, verb, resource, namespace) != expected {
                wrong.push(format!("{name}: {verb} {resource} in {namespace:?} expected {expected}"));
            }
        }
    }
    wrong
}

/// Waits until the rights match the table. In the meantime, the manager of a course can always read the Instances of
/// its students.
fn await_switch(lab: &Lab, is_by_course: bool) {
    let (_, mario) = PEOPLE[2];
    let mut changed = table(is_by_course);
    changed.retain(|row| BY_COURSE.iter().any(|other| is_same(row, other)));
    wait_until(PATIENCE, || {
        assert!(allowed(lab, mario, "list", "instances", "tenant-rita"), "a manager lost their right");
        let wrong = wrong(lab, &changed);
        wrong.is_empty().then_some(()).ok_or_else(|| wrong.join("\n"))
    });
    assert_eq!(wrong(lab, &table(is_by_course)), [""; 0]);
}

/// The bindings of managers on Instances, with their versions.
fn bindings(lab: &Lab) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let places =
        [("clusterrolebindings", ""), ("rolebindings", "tenant-rita"), ("rolebindings", "tenant-otto")];
    for (kind, namespace) in places {
        for object in lab.list(kind, namespace) {
            let [name, version] = ["name", "resourceVersion"]
                .map(|member| object["metadata"][member].as_str().unwrap_or_default().to_owned());
            let is_wide = name.starts_with("crownlabs-manage-instances-rights-");
            if is_wide || name == "crownlabs-manage-instances-managers" {
                found.insert(format!("{namespace}/{name}"), version);
            }
        }
    }
    found
}

#[test]
fn every_user_has_exactly_the_rights_in_the_table() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let start = |config| Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "rights", config });
    let daemon = start("");
    for name in ["rights-a", "rights-b"] {
        lab.apply(&workspace("rights", name, ""));
        lab.await_ready("workspaces", name);
    }
    lab.apply(&tenant("rights", "rita", ", createSandbox: true, workspaces: [{name: rights-a, role: user}]"));
    lab.apply(&tenant("rights", "otto", ", workspaces: [{name: rights-b, role: manager}]"));
    for name in ["rita", "otto"] {
        lab.await_ready("tenants", name);
    }
    drop(daemon);
    // As after a takeover, bindings with the other role replace the present ones. The authorizer sees a new binding with a
    // short delay.
    let daemon = start(CLUSTER);
    wait_until(PATIENCE, || {
        let mut last = table(false);
        last.retain(|row| row.1 == SCREEN || row.2 == "sandbox-rita");
        let wrong = wrong(&lab, &last);
        wrong.is_empty().then_some(()).ok_or_else(|| wrong.join("\n"))
    });
    let wrong = wrong(&lab, &table(false));
    assert!(
        TABLE.len() >= 60 && wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        TABLE.len(),
        wrong.join("\n")
    );
    no_escalation(&lab);
    let by_cluster = bindings(&lab);
    let names = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<Vec<_>>();
    let wide = ["a", "b"].map(|name| format!("/crownlabs-manage-instances-rights-{name}"));
    assert_eq!(names(&by_cluster), wide);
    drop(daemon);
    let daemon = start(COURSE);
    await_switch(&lab, true);
    let by_course = bindings(&lab);
    let own = ["otto", "rita"].map(|name| format!("tenant-{name}/crownlabs-manage-instances-managers"));
    assert_eq!(names(&by_course), own);
    a_course_has_its_own_status(&lab);
    an_enrolment_patches_one_binding(&lab, &by_course);
    drop(daemon);
    let _daemon = start(CLUSTER);
    await_switch(&lab, false);
    wait_until(PATIENCE, || {
        let found = names(&bindings(&lab));
        (found == wide).then_some(()).ok_or_else(|| format!("{found:?}"))
    });
    lab.delete("tenant", "", &["rita", "otto"]);
    lab.delete("workspace", "", &["rights-a", "rights-b"]);
}

/// `crownlabs status` shows the Instances of a course to its manager, and none to the manager of another course.
fn a_course_has_its_own_status(lab: &Lab) {
    lab.apply(&own_template("workspace-rights-a", "own").replace("{name: personal}", "{name: rights-a}"));
    lab.apply(
        "{apiVersion: crownlabs.polito.it/v1alpha2, kind: Instance, metadata: {name: seen, namespace: tenant-rita}, spec: {
         template.crownlabs.polito.it/TemplateRef: {name: own, namespace: workspace-rights-a},
         tenant.crownlabs.polito.it/TenantRef: {name: rita}, running: false}}",
    );
    let label = "/metadata/labels/crownlabs.polito.it~1workspace";
    lab.await_value("instances", "tenant-rita", "seen", label, "rights-a");
    let folder = TempDir::new().expect("a folder");
    let status = |user: User| {
        let text = fs::read_to_string(lab.admin()).expect("a kubeconfig");
        let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
        let account = &mut kubeconfig["users"][0]["user"];
        (account["as"], account["as-groups"]) = (user.name.into(), user.groups.into());
        let file = folder.path().join(user.name);
        fs::write(&file, kubeconfig.to_string()).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_crownlabs"));
        command.args(["status", "rights-a", "-o", "json", "--kubeconfig"]).arg(&file);
        let output = command.output().expect("it starts");
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let (is_success, text) = status(PEOPLE[2].1);
    assert!(is_success && text.contains("tenant-rita/seen"), "{text}");
    let (is_success, text) = status(PEOPLE[3].1);
    assert!(!is_success && text.contains("you are not allowed to read the instances"), "{text}");
}

/// An enrolment changes the binding in the namespace of the Tenant. A new manager changes none of them.
fn an_enrolment_patches_one_binding(lab: &Lab, before: &BTreeMap<String, String>) {
    let groups = |lab: &Lab| {
        let binding = lab.get("rolebindings", "tenant-rita", "crownlabs-manage-instances-managers");
        let subjects = binding.expect("the binding")["subjects"].as_array().cloned().unwrap_or_default();
        subjects.iter().map(|subject| subject["name"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    let enrol = |entries: &str| {
        lab.patch("tenants", "default", "rita", &format!("{{\"spec\": {{\"workspaces\": [{entries}]}}}}"));
    };
    let [a, b] = ["a", "b"].map(|name| format!("{{\"name\": \"rights-{name}\", \"role\": \"user\"}}"));
    let wanted = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("kubernetes:workspace-rights-{name}:manager")).collect()
    };
    let await_groups = |names: &[&str]| {
        wait_until(PATIENCE, || {
            let found = groups(lab);
            (found == wanted(names)).then_some(()).ok_or_else(|| format!("{found:?}"))
        });
    };
    enrol(&format!("{b}, {a}"));
    await_groups(&["a", "b"]);
    enrol(&a);
    await_groups(&["a"]);
    let key = "tenant-otto/crownlabs-manage-instances-managers";
    assert_eq!(bindings(lab).get(key), before.get(key), "the binding of another Tenant stays as it is");
}

/// In the sandbox, a user may create roles and bindings, but only for rights that the user has.
fn no_escalation(lab: &Lab) {
    let rita = ["--as=rita", "--as-group=system:authenticated"];
    let attempts: BTreeMap<&str, &str> = BTreeMap::from([
        (
            "a binding to what she has not",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: up, namespace: sandbox-rita}, \
             roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: []}",
        ),
        (
            "a role with more than she has",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: up, namespace: sandbox-rita}, \
             rules: [{apiGroups: [\"\"], resources: [resourcequotas], verbs: [delete]}]}",
        ),
        (
            "a Secret in another's namespace",
            "{apiVersion: v1, kind: Secret, metadata: {name: up, namespace: tenant-otto}}",
        ),
    ]);
    for (what, object) in attempts {
        let mut arguments = vec!["create", "-f", "-"];
        arguments.extend(rita);
        let refusal = lab.try_kubectl(&arguments, object).expect_err(what);
        assert!(refusal.to_lowercase().contains("forbidden"), "{what}: {refusal}");
    }
    // She may grant rights that she has herself.
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: down, namespace: sandbox-rita}, \
                rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}";
    lab.try_kubectl(&["create", "-f", "-", rita[0], rita[1]], role).expect("her own right");
    // She cannot read the Secrets of another tenant.
    let claim = lab.try_kubectl(&["get", "secrets", "-n", "tenant-otto", rita[0], rita[1]], "");
    assert!(claim.expect_err("not hers").contains("forbidden"));
}
