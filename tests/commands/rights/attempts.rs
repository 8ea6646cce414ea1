//! The requests of every role, and the objects that they concern.

/// A user who sends requests.
pub struct Person {
    /// The name.
    pub name: &'static str,
    /// The groups of the user.
    pub groups: &'static [&'static str],
}

const STUDENT: Person =
    Person { name: "ada.rossi", groups: &["system:authenticated", "kubernetes:workspace-tea:user"] };
const CANDIDATE: Person = Person { name: "bea.neri", groups: &["system:authenticated"] };
const MANAGER: Person =
    Person { name: "carlo.verdi", groups: &["system:authenticated", "kubernetes:workspace-tea:manager"] };
const ACCOUNT: Person = Person {
    name: "system:serviceaccount:sandbox-ada-rossi:robot",
    groups: &["system:authenticated", "system:serviceaccounts", "system:serviceaccounts:sandbox-ada-rossi"],
};
const ADMINISTRATOR: Person = Person { name: "root", groups: &["system:authenticated", "system:masters"] };
const COLLECTOR: Person = Person {
    name: "system:serviceaccount:kube-system:generic-garbage-collector",
    groups: &["system:authenticated", "system:serviceaccounts", "system:serviceaccounts:kube-system"],
};

/// The program that answers the webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The Go operators of 2025, whose webhooks cover only Tenants.
    Operators = 0,
    /// The daemon.
    Daemon = 1,
    /// Nothing answers: the configurations of the daemon exist, but it has no pod.
    None = 2,
}

/// A dry-run request, and whether it is accepted: see [`Guard`].
pub struct Attempt {
    /// The user.
    pub who: &'static Person,
    /// The effect of the request.
    pub what: &'static str,
    /// The method.
    pub method: &'static str,
    /// The path.
    pub path: &'static str,
    /// The body: an object, or a merge patch.
    pub body: &'static str,
    /// Whether each guard accepts it.
    pub accepted: [bool; 3],
}

impl Attempt {
    /// The user and the effect.
    pub fn sentence(&self) -> String {
        format!("{} {}", self.who.name, self.what)
    }
}

const TENANTS: &str = "/apis/crownlabs.polito.it/v1alpha2/tenants";
const MACHINES: &str = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-ada-rossi/instances";
const DESK: &str = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-ada-rossi/instances/desk";
const ADA: &str = "/apis/crownlabs.polito.it/v1alpha2/tenants/ada.rossi";
const BEA: &str = "/apis/crownlabs.polito.it/v1alpha2/tenants/bea.neri";
const CARLO: &str = "/apis/crownlabs.polito.it/v1alpha2/tenants/carlo.verdi";
const PROMOTED: &str = r#"{"spec": {"workspaces": [{"name": "tea", "role": "manager"}]}}"#;
const ADMITTED: &str = r#"{"spec": {"workspaces": [{"name": "tea", "role": "user"}]}}"#;

const ALWAYS: [bool; 3] = [true; 3];
/// Requests that are always rejected.
pub const NEVER: [bool; 3] = [false; 3];
/// Requests that a guard accepts, and that are rejected without one.
const GUARDED: [bool; 3] = [true, true, false];

/// The requests.
#[rustfmt::skip]
pub const ATTEMPTS: [Attempt; 19] = [
    Attempt { who: &STUDENT, what: "becomes a manager", method: "PATCH", path: ADA, body: PROMOTED, accepted: NEVER },
    Attempt { who: &STUDENT, what: "enters a closed course", method: "PATCH", path: ADA, accepted: NEVER,
        body: r#"{"spec": {"workspaces": [{"name": "tea", "role": "user"}, {"name": "chem", "role": "user"}]}}"# },
    Attempt { who: &STUDENT, what: "changes the own keys", method: "PATCH", path: ADA, accepted: GUARDED,
        body: r#"{"spec": {"publicKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"]}}"# },
    Attempt { who: &STUDENT, what: "makes a machine in the name of another Tenant", method: "POST", path: MACHINES,
        accepted: [true, false, false],
        body: r#"{"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "metadata": {"name": "of-bea"}, "spec": {
            "running": false, "template.crownlabs.polito.it/TemplateRef": {"name": "lab", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "bea.neri"}}}"# },
    Attempt { who: &STUDENT, what: "makes a machine of a closed course", method: "POST", path: MACHINES,
        accepted: [true, false, false],
        body: r#"{"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "metadata": {"name": "of-chem"}, "spec": {
            "running": true, "template.crownlabs.polito.it/TemplateRef": {"name": "closed", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada.rossi"}}}"# },
    Attempt { who: &STUDENT, what: "records a mail about the own machine", method: "PATCH", path: DESK,
        accepted: [true, false, false],
        body: r#"{"metadata": {"annotations": {"crownlabs.polito.it/mailed-expired": "2026-01-01T00:00:00Z"}}}"# },
    Attempt { who: &STUDENT, what: "renames the own machine", method: "PATCH", path: DESK, accepted: GUARDED,
        body: r#"{"spec": {"prettyName": "Desk of Ada"}}"# },
    Attempt { who: &STUDENT, what: "reads the own machine", method: "GET", path: DESK, body: "", accepted: ALWAYS },
    Attempt { who: &STUDENT, what: "deletes the own machine", method: "DELETE", path: DESK, body: "", accepted: ALWAYS },
    Attempt { who: &CANDIDATE, what: "becomes a user", method: "PATCH", path: BEA, body: ADMITTED, accepted: NEVER },
    Attempt { who: &CANDIDATE, what: "becomes a manager", method: "PATCH", path: BEA, body: PROMOTED, accepted: NEVER },
    Attempt { who: &MANAGER, what: "accepts a candidate", method: "PATCH", path: BEA, body: ADMITTED, accepted: GUARDED },
    Attempt { who: &MANAGER, what: "becomes a manager of another course", method: "PATCH", path: CARLO, accepted: NEVER,
        body: r#"{"spec": {"workspaces": [{"name": "tea", "role": "manager"}, {"name": "chem", "role": "manager"}]}}"# },
    Attempt { who: &MANAGER, what: "changes the address of a student", method: "PATCH", path: ADA, accepted: NEVER,
        body: r#"{"spec": {"email": "carlo@example.org"}}"# },
    Attempt { who: &MANAGER, what: "reads Tenants", method: "GET", path: TENANTS, body: "", accepted: ALWAYS },
    Attempt { who: &ACCOUNT, what: "makes its Tenant a manager", method: "PATCH", path: ADA, body: PROMOTED, accepted: NEVER },
    Attempt { who: &ACCOUNT, what: "accepts a candidate", method: "PATCH", path: BEA, body: ADMITTED, accepted: NEVER },
    Attempt { who: &ADMINISTRATOR, what: "makes a student a manager", method: "PATCH", path: ADA, body: PROMOTED, accepted: ALWAYS },
    Attempt { who: &COLLECTOR, what: "takes a finalizer from a machine", method: "PATCH", path: DESK, accepted: ALWAYS,
        body: r#"{"metadata": {"finalizers": null}}"# },
];

/// More objects than those of [`people`](crate::people): a candidate, a manager, a closed course and a Template
/// of it, the rights of a Tenant over its object as the operators grant them, an account that may patch Tenants,
/// and a machine.
pub const OBJECTS: &str = "
{apiVersion: crownlabs.polito.it/v1alpha1, kind: Workspace, metadata: {name: chem, labels: {SELECTOR}},
 spec: {prettyName: Chemistry, quota: {cpu: 4, memory: 8Gi, instances: 2}}}
---
{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: bea.neri, labels: {SELECTOR}},
 spec: {firstName: Bea, lastName: Neri, email: bea.neri@example.org, workspaces: [{name: tea, role: candidate}]}}
---
{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: carlo.verdi, labels: {SELECTOR}},
 spec: {firstName: Carlo, lastName: Verdi, email: carlo.verdi@example.org, workspaces: [{name: tea, role: manager}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: own-tenants},
 rules: [{apiGroups: [crownlabs.polito.it], resources: [tenants], resourceNames: [ada.rossi, bea.neri], verbs: [get, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: own-tenants},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: own-tenants}, subjects: [
 {apiGroup: rbac.authorization.k8s.io, kind: User, name: ada.rossi}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: bea.neri}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: robot},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-manage-tenants},
 subjects: [{kind: ServiceAccount, name: robot, namespace: sandbox-ada-rossi}]}
---
{apiVersion: crownlabs.polito.it/v1alpha2, kind: Template, metadata: {name: lab, namespace: workspace-tea}, spec: {
 prettyName: Lab, description: Lab, workspace.crownlabs.polito.it/WorkspaceRef: {name: tea}, environmentList: [{name: desk,
 environmentType: Container, image: example.org/desk, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 1Gi}}]}}
---
{apiVersion: crownlabs.polito.it/v1alpha2, kind: Template, metadata: {name: closed, namespace: workspace-tea}, spec: {
 prettyName: Closed, description: Closed, workspace.crownlabs.polito.it/WorkspaceRef: {name: chem}, environmentList: [{name: desk,
 environmentType: Container, image: example.org/desk, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 1Gi}}]}}
---
{apiVersion: crownlabs.polito.it/v1alpha2, kind: Instance, metadata: {name: desk, namespace: tenant-ada-rossi}, spec: {running: false,
 template.crownlabs.polito.it/TemplateRef: {name: lab, namespace: workspace-tea}, tenant.crownlabs.polito.it/TenantRef: {name: ada.rossi}}}
";
