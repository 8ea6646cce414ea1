//! The programs that the page calls, in front on the path. Programs that need the Internet or Docker are replaced:
//!
//! - `git clone` creates a link to this working copy;
//! - `kind create cluster` gives access to the running control plane, as an administrator like those of kubeadm, and
//!   `kind delete cluster` removes the access;
//! - `kubectl` is the real one, but the manifests of ingress-nginx are replaced by a namespace and a Deployment without
//!   pods, and [`crate::browser`] does the work of the controller;
//! - `helm` is the real one, and the account on `ghcr.io` is the registry on loopback.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::documents::project;
use crate::images::{OWNER, helm};
use crate::site::Site;

const GIT: &str = r#"
[ "$1" = clone ] && [ $# = 3 ] || fail
ln -s "$PROJECT" "$3"
"#;

const KIND: &str = r#"
case "$*" in
"create cluster --config "*) cp "$4" "$OWN/kind.yaml"; cp "$OWN/administrator" "$KUBECONFIG" ;;
"delete cluster") rm "$KUBECONFIG" ;;
*) fail ;;
esac
"#;

const KUBECTL: &str = r#"
arguments=()
for argument; do
	case $argument in
	https://raw.githubusercontent.com/kubernetes/ingress-nginx/*/deploy/static/provider/kind/deploy.yaml)
		argument=$OWN/ingress-nginx.yaml ;;
	https://*) fail ;;
	esac
	arguments+=("$argument")
done
exec "$REAL_KUBECTL" "${arguments[@]}"
"#;

const HELM: &str = r#"
arguments=()
for argument; do
	case $argument in
	oci://ghcr.io/*/*) arguments+=(--plain-http "oci://$REGISTRY/${argument#oci://ghcr.io/*/}") ;;
	*://*) fail ;;
	*) arguments+=("$argument") ;;
	esac
done
exec "$REAL_HELM" "${arguments[@]}"
"#;

/// The parts of ingress-nginx that the commands of the page see.
const INGRESS_NGINX: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: ingress-nginx, labels: {app.kubernetes.io/name: ingress-nginx}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ingress-nginx-controller, namespace: ingress-nginx}
spec:
  replicas: 0
  selector: {matchLabels: {app.kubernetes.io/component: controller}}
  template:
    metadata: {labels: {app.kubernetes.io/component: controller}}
    spec: {containers: [{name: controller, image: registry.k8s.io/ingress-nginx/controller}]}
";

/// The programs, and the folder of a user who has nothing installed yet.
pub struct Programs {
    folder: TempDir,
    environment: BTreeMap<String, String>,
}

impl Programs {
    pub fn new(site: &Site) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["bin", "own", "home"] {
            fs::create_dir(path(name)).expect("a folder");
        }
        for (name, text) in [("git", GIT), ("kind", KIND), ("kubectl", KUBECTL), ("helm", HELM)] {
            write_program(&path("bin").join(name), text);
        }
        fs::write(path("own/ingress-nginx.yaml"), INGRESS_NGINX).expect("written");
        fs::copy(site.administrator(), path("own/administrator")).expect("copied");
        let before = std::env::var("PATH").expect("a path");
        let text = |path: PathBuf| path.display().to_string();
        let environment = [
            ("PATH", format!("{}:{before}", path("bin").display())),
            ("HOME", text(path("home"))),
            ("KUBECONFIG", text(path("home/kubeconfig"))),
            ("PROJECT", text(project())),
            ("OWN", text(path("own"))),
            ("REGISTRY", format!("{}/{OWNER}", site.registry.address())),
            ("REAL_HELM", text(helm())),
            ("REAL_KUBECTL", text(site.lab.cluster.kubectl().get_program().into())),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value)).into();
        Self { folder, environment }
    }

    /// The current folder of the user.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A folder for files of the test.
    pub fn own(&self) -> PathBuf {
        self.folder.path().join("own")
    }

    /// The environment of the user.
    pub fn environment(&self) -> BTreeMap<String, String> {
        self.environment.clone()
    }

    /// Whether there is a cluster for `kubectl`.
    pub fn has_cluster(&self) -> bool {
        self.folder.path().join("home/kubeconfig").exists()
    }

    /// The configuration of the cluster.
    pub fn kind(&self) -> serde_json::Value {
        let text = fs::read_to_string(self.own().join("kind.yaml")).expect("the page makes a cluster");
        serde_saphyr::from_str(&text).expect("YAML")
    }
}

fn write_program(file: &Path, text: &str) {
    let fail = r#"fail() { echo "nothing here stands for: $0 $*" >&2; exit 1; }"#;
    fs::write(file, format!("#!/bin/bash\nset -euo pipefail\n{fail}\n{text}")).expect("written");
    fs::set_permissions(file, Permissions::from_mode(0o755)).expect("a program");
}
