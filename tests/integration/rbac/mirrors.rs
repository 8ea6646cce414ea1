//! The loop of mirrors does everything that it does, once.

use super::NAMESPACE;
use crate::lab::Lab;
use crate::mirrors::{CLASS, mirror};

/// A claim that the namespaces of this test may mirror. Its class provisions any claim.
const ORIGIN: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: mirrored
  namespace: workspace-rbac
  annotations: {pmp.crownlabs.polito.it/required-target-ns-labels: crownlabs.polito.it/operator-selector=rbac}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: rook-nfs
  resources: {requests: {storage: 1Gi}}
";

/// A mirror gets a volume, which is removed with it. The cluster keeps the origins of mirrors.
pub fn exercise_mirrors(lab: &Lab) {
    let claims = "persistentvolumeclaims";
    lab.apply(CLASS);
    lab.apply(ORIGIN);
    lab.await_value(claims, "workspace-rbac", "mirrored", "/status/phase", "Bound");
    lab.apply(&mirror(NAMESPACE, "copy", ("workspace-rbac", "mirrored")));
    let copy = lab.await_value(claims, NAMESPACE, "copy", "/status/phase", "Bound");
    lab.delete(claims, NAMESPACE, &["copy"]);
    lab.await_gone("persistentvolumes", "", copy["spec"]["volumeName"].as_str().expect("a name"));
}
