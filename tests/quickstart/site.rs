//! The servers that run when the new user begins: a control plane and a node without any part of CrownLabs, and a
//! registry.

use std::path::PathBuf;

use serde_json::Value;

use cluster::assets::{self, Assets};
use cluster::network::Namespace;
use cluster::node::Node;
use cluster::registry::Registry;
use cluster::{Cluster, Options};

use crate::lab::Lab;
use crate::programs::Programs;
use crate::{browser, images};

/// The administrators of a cluster made by kubeadm, as `kind` does.
const ADMINISTRATORS: &str = "kubeadm:cluster-admins";

/// A control plane, a node and a registry in a separate network.
pub struct Site {
    // Dropped in this order.
    pub node: Node,
    pub lab: Lab,
    pub registry: Registry,
    administrator: PathBuf,
    _namespace: Namespace,
}

impl Site {
    /// Starts everything, in a network that this thread enters.
    pub fn start() -> Self {
        // The network is isolated: the programs that are not in the cache are built before.
        let made = Assets::get().and_then(|_| assets::kubelet());
        made.unwrap_or_else(|error| panic!("the programs of the control plane and the node: {error:#}"));
        let namespace = Namespace::new();
        namespace.enter();
        let options = Options {
            simulate: false,
            node: true,
            kubevirt: false,
            load_balancer: false,
            ..Options::default()
        };
        let cluster = Cluster::start(options).unwrap_or_else(|error| panic!("the control plane: {error:#}"));
        let registry = images::registry(cluster.dir());
        let node = Node::start(&cluster, &namespace, &registry.url());
        let node = node.unwrap_or_else(|error| panic!("the node: {error:#}"));
        let administrator = cluster.kubeconfig("kubernetes-admin", ADMINISTRATORS).expect("a kubeconfig");
        let lab = Lab { cluster };
        lab.apply(&format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: \"{ADMINISTRATORS}\"}},
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}},
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"{ADMINISTRATORS}\"}}]}}"
        ));
        Self { node, lab, registry, administrator, _namespace: namespace }
    }

    /// The kubeconfig that `kind` writes.
    pub fn administrator(&self) -> &PathBuf {
        &self.administrator
    }

    /// Opens the page at a URL in the browser, through the Ingress controller.
    pub fn open(&mut self, programs: &Programs, url: &str) {
        self.assert_let_in();
        let port = &programs.kind()["nodes"][0]["extraPortMappings"][0];
        assert_eq!(port["containerPort"], 443, "the port of the Ingress controller");
        let port = port["hostPort"].as_u64().expect("a port of the laptop");
        let page = browser::open(&self.lab, &programs.own(), port, url);
        assert!(page.contains("<h1>Hello, Ada</h1>"), "{page}");
    }

    /// Asserts that the network policies of the user's namespace let the Ingress controller in.
    fn assert_let_in(&self) {
        let controller = self.lab.get("namespaces", "", "ingress-nginx").expect("the Ingress controller");
        let labels = &controller["metadata"]["labels"];
        let policies = self.lab.list("networkpolicies", "tenant-ada");
        let sources = policies.iter().filter_map(|policy| policy["spec"]["ingress"][0]["from"].as_array());
        let lets_in = |source: &Value| {
            let wanted = source["namespaceSelector"]["matchLabels"].as_object();
            wanted.is_some_and(|wanted| wanted.iter().all(|(label, value)| labels[label] == *value))
        };
        assert!(sources.flatten().any(lets_in), "{labels} are let in by {policies:#?}");
    }

    /// Asserts that nothing has failed so far, and that no pod was restarted.
    pub fn check(&mut self) {
        self.node.check().unwrap_or_else(|error| panic!("{error:#}"));
        self.lab.kubectl(&["wait", "tenant/ada", "--for=condition=Ready", "--timeout=3m"]);
        let claim = self.lab.get("persistentvolumeclaims", "mydrive-pvcs", "ada-drive").expect("MyDrive");
        assert_eq!(claim["status"]["phase"], "Pending", "the page says so");
        let pods = self.lab.list("pods", "");
        assert!(pods.len() >= 3, "two pods of the daemon and one of the machine: {pods:#?}");
        for pod in pods {
            for container in pod["status"]["containerStatuses"].as_array().expect("containers") {
                assert_eq!(container["restartCount"], 0, "{pod:#}\n{}", self.node.logs());
            }
        }
    }

    /// The state of the cluster, for the diagnosis of a failure.
    pub fn state(&self) -> String {
        let seen = [
            &["get", "pods,instances,tenants,workspaces,ingresses", "--all-namespaces", "-o", "wide"][..],
            &["get", "events", "--all-namespaces"],
        ];
        let seen = seen.map(|arguments| self.lab.try_kubectl(arguments, "").unwrap_or_else(|error| error));
        let log = self.lab.cluster.dir().join("kubelet.log");
        format!("{}\n{}\n{}", seen.join("\n"), self.node.logs(), cluster::processes::tail(&log, 30))
    }
}
