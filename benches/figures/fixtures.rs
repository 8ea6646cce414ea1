//! The fixtures of the bench: the daemon's configuration and the objects that Instances refer to.

/// The configuration of the daemon: every loop that is on by default.
pub const CONFIG: &str = "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {crownlabs.polito.it/operator-selector: bench}
server: {metrics: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}
";

/// A lease that its last holder has released, the namespaces, the Tenant `ada` with her MyDrive, and the Templates
/// [`TEMPLATES`](crate::harness::TEMPLATES).
///
/// If there is no lease, a daemon waits for ten seconds: another replica may still hold the lease that was deleted.
pub const FIXTURES: &str = "
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: crownlabs-controller-manager, namespace: crownlabs-system}
spec: {holderIdentity: \"\", leaseDurationSeconds: 1, leaseTransitions: 1}
---
apiVersion: v1
kind: Namespace
metadata: {name: workspace-bench, labels: {crownlabs.polito.it/operator-selector: bench}}
---
apiVersion: v1
kind: Namespace
metadata: {name: tenant-bench, labels: {crownlabs.polito.it/operator-selector: bench}}
---
apiVersion: v1
kind: Secret
metadata: {name: mydrive-info, namespace: tenant-bench}
stringData: {server-name: nfs.example.org, path: /exports/ada}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: ada}
spec: {firstName: Ada, lastName: Rossi, email: ada@example.org, publicKeys: [\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3 ada@lab\"]}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: container, namespace: workspace-bench}
spec:
  prettyName: container
  description: bench
  workspace.crownlabs.polito.it/WorkspaceRef: {name: bench}
  environmentList:
  - {name: main, environmentType: Container, image: \"r.example.org/app:1\", resources: {cpu: 1, reservedCPUPercentage: 10, memory: 1G}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: vm, namespace: workspace-bench}
spec:
  prettyName: vm
  description: bench
  workspace.crownlabs.polito.it/WorkspaceRef: {name: bench}
  environmentList:
  - {name: main, environmentType: VirtualMachine, image: \"r.example.org/vm:1\", resources: {cpu: 1, reservedCPUPercentage: 10, memory: 1G}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: vm-persistent, namespace: workspace-bench}
spec:
  prettyName: vm-persistent
  description: bench
  workspace.crownlabs.polito.it/WorkspaceRef: {name: bench}
  environmentList:
  - {name: main, environmentType: VirtualMachine, image: \"r.example.org/vm:1\", persistent: true, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 1G, disk: 10G}}
";

/// A node with this name, and the rights that the daemon's account needs there: the chart gives them to a
/// separate account.
pub fn node(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Node
metadata: {{name: {name}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: pod-networks}}
rules:
- {{apiGroups: [''], resources: [nodes], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: pod-networks}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-networks}}
subjects: [{{kind: ServiceAccount, name: crownlabs, namespace: crownlabs-system}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: pod-networks, namespace: crownlabs-system}}
rules:
- {{apiGroups: [''], resources: [configmaps], verbs: [list, watch, create, patch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: pod-networks, namespace: crownlabs-system}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: pod-networks}}
subjects: [{{kind: ServiceAccount, name: crownlabs, namespace: crownlabs-system}}]
"
    )
}
