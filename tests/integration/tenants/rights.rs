//! The rights that the daemon gives to users of each role, as the API server's authorizer sees them.

use std::collections::BTreeMap;

use super::{tenant, workspace};
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

/// Verb, resource, namespace, and the users who may: `t` the tenant rita, `u` rita as a user of the course, `m` a
/// manager of the course, `o` the tenant otto, who manages another course, `a` anonymous.
const TABLE: &[(&str, &str, &str, &str)] = &[
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

/// Whether the authorizer allows a user a request.
fn allowed(lab: &Lab, user: User, verb: &str, resource: &str, namespace: &str) -> bool {
    // `pods/exec` is a subresource, `tenants/rita` an object.
    let object = resource.split_once('/').filter(|(_, rest)| !["exec", "status"].contains(rest));
    let (resource, name) = object.unwrap_or((resource, ""));
    let answer = lab.cluster.may(user, verb, resource, namespace, name);
    answer.unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn every_user_has_exactly_the_rights_in_the_table() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "rights", config: "" });
    for name in ["rights-a", "rights-b"] {
        lab.apply(&workspace("rights", name, ""));
        lab.await_ready("workspaces", name);
    }
    lab.apply(&tenant("rights", "rita", ", createSandbox: true, workspaces: [{name: rights-a, role: user}]"));
    lab.apply(&tenant("rights", "otto", ", workspaces: [{name: rights-b, role: manager}]"));
    for name in ["rita", "otto"] {
        lab.await_ready("tenants", name);
    }
    // The authorizer sees a new binding with a short delay.
    wait_until(PATIENCE, || {
        let seen = allowed(&lab, PEOPLE[0].1, "create", "pods", "sandbox-rita");
        seen.then_some(()).ok_or_else(|| "the last binding".to_owned())
    });
    let mut wrong = Vec::new();
    for (verb, resource, namespace, who) in TABLE {
        for (name, person) in PEOPLE {
            let expected = who.contains(&name[..1]);
            if allowed(&lab, person, verb, resource, namespace) != expected {
                wrong.push(format!("{name}: {verb} {resource} in {namespace:?} expected {expected}"));
            }
        }
    }
    assert!(
        TABLE.len() >= 60 && wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        TABLE.len(),
        wrong.join("\n")
    );
    no_escalation(&lab);
    lab.delete("tenant", "", &["rita", "otto"]);
    lab.delete("workspace", "", &["rights-a", "rights-b"]);
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
