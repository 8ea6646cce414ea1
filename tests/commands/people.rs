//! A student, a manager and an administrator, and their rights by the `ClusterRoles` of CrownLabs, from whichever
//! installation.

use crate::lab::Lab;

/// The objects of these users as the Go operators create them: the Workspace `tea`, the Tenant `ada.rossi`, and the
/// bindings of both; and the binding of an administrator, which the site creates itself.
const OBJECTS: &str = "
{apiVersion: crownlabs.polito.it/v1alpha1, kind: Workspace, metadata: {name: tea, labels: {SELECTOR}},
 spec: {prettyName: Tea, quota: {cpu: 4, memory: 8Gi, instances: 2}}}
---
{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: ada.rossi, labels: {SELECTOR}},
 spec: {firstName: Ada, lastName: Rossi, email: ada.rossi@example.org, lastLogin: LOGIN, workspaces: [{name: tea, role: user}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: workspace-tea, labels: {SELECTOR, crownlabs.polito.it/managed-by: workspace,
 crownlabs.polito.it/type: workspace}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: tenant-ada-rossi, labels: {SELECTOR, crownlabs.polito.it/managed-by: tenant,
 crownlabs.polito.it/type: tenant, crownlabs.polito.it/name: ada-rossi}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: crownlabs-manage-instances-tea,
 labels: {SELECTOR, crownlabs.polito.it/managed-by: workspace}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-manage-instances}, subjects: [MANAGERS]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: crownlabs-manage-tenants-tea,
 labels: {SELECTOR, crownlabs.polito.it/managed-by: workspace}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-manage-tenants}, subjects: [MANAGERS]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: crownlabs-view-templates,
 namespace: workspace-tea, labels: {SELECTOR, crownlabs.polito.it/managed-by: workspace}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-view-templates},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'kubernetes:workspace-tea:user'}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: crownlabs-manage-templates,
 namespace: workspace-tea, labels: {SELECTOR, crownlabs.polito.it/managed-by: workspace}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-manage-templates}, subjects: [MANAGERS]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: crownlabs-manage-sharedvolumes,
 namespace: workspace-tea, labels: {SELECTOR, crownlabs.polito.it/managed-by: workspace}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-manage-sharedvolumes}, subjects: [MANAGERS]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: crownlabs-manage-instances,
 namespace: tenant-ada-rossi, labels: {SELECTOR, crownlabs.polito.it/managed-by: tenant}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-manage-instances},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada.rossi}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: site-administrators},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-manage-workspaces},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'kubernetes:admin'}]}
";

const STUDENT: &[&str] =
    &["--as=ada.rossi", "--as-group=system:authenticated", "--as-group=kubernetes:workspace-tea:user"];
const MANAGER: &[&str] =
    &["--as=carlo.verdi", "--as-group=system:authenticated", "--as-group=kubernetes:workspace-tea:manager"];
const ADMINISTRATOR: &[&str] =
    &["--as=root.neri", "--as-group=system:authenticated", "--as-group=kubernetes:admin"];

/// The rights of the student, the manager and the administrator: `VERB RESOURCE [NAMESPACE]`, and whether each may.
const RIGHTS: [(&str, [bool; 3]); 10] = [
    ("create instances tenant-ada-rossi", [true, true, false]),
    ("delete instances tenant-ada-rossi", [true, true, false]),
    ("list templates workspace-tea", [true, true, false]),
    ("create templates workspace-tea", [false, true, false]),
    ("create sharedvolumes workspace-tea", [false, true, false]),
    ("list workspaces", [true, true, true]),
    ("list imagelists", [true, true, true]),
    ("patch tenants", [false, true, false]),
    ("delete tenants", [false, false, false]),
    ("create workspaces", [false, false, true]),
];

/// Creates the objects of these users.
pub fn arrive(lab: &Lab, login: &str) {
    let managers =
        "{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'kubernetes:workspace-tea:manager'}";
    let objects = OBJECTS.replace("SELECTOR", "crownlabs.polito.it/operator-selector: production");
    lab.apply(&objects.replace("MANAGERS", managers).replace("LOGIN", login));
}

/// Asserts that each user may do the same as before.
pub fn assert_rights(lab: &Lab) {
    for (right, expected) in RIGHTS {
        let mut words = right.split(' ');
        let (verb, resource) = (words.next().expect("a verb"), words.next().expect("a resource"));
        let resource = format!("{resource}.crownlabs.polito.it");
        let namespace =
            words.next().map_or_else(|| "-A".to_owned(), |namespace| format!("--namespace={namespace}"));
        let question = ["auth", "can-i", verb, &resource, &namespace];
        let may = [STUDENT, MANAGER, ADMINISTRATOR].map(|person| {
            let answer = lab.cluster.kubectl().args(question).args(person).output().expect("it starts");
            match answer.stdout.trim_ascii_end() {
                b"yes" => true,
                b"no" => false,
                _ => panic!("{right}: {}", String::from_utf8_lossy(&answer.stderr)),
            }
        });
        assert_eq!(may, expected, "{right}");
    }
}
