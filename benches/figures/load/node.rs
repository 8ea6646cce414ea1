//! What the loops of lists of images, of exams and of nodes work with under load: a registry, a node with containers, and the
//! rights that the chart gives to accounts of their own.

use std::net::TcpListener;

use anyhow::Result;

use crate::fixtures;
use cluster::containerd::{Containerd, Pod};
use cluster::network::Namespace;
use cluster::registry::Registry;

/// The number of containers on the node, each of which is an Instance.
const CONTAINERS: usize = 20;
/// The number of images in the registry, and of the tags of each.
const IMAGES: usize = 20;
const TAGS: usize = 10;

/// The name of the node.
const NAME: &str = "load-node";

/// The namespace of exams, and the rights there.
const EXAMS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: exams}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: exams, namespace: exams}
rules:
- {apiGroups: [crownlabs.polito.it], resources: [instances], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [crownlabs.polito.it], resources: [templates], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: exams, namespace: exams}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: exams}
subjects: [{kind: ServiceAccount, name: crownlabs, namespace: crownlabs-system}]
";

/// The objects of both.
pub fn objects() -> String {
    format!("{}---{EXAMS}", fixtures::node(NAME))
}

/// A node and a registry, which end when this is dropped.
pub struct Node {
    containerd: Containerd,
    namespace: Namespace,
    registry: Registry,
}

impl Node {
    /// Starts both, with what they have.
    pub async fn start() -> Result<Self> {
        eprintln!("a node with {CONTAINERS} containers, and a registry with {IMAGES} images …");
        let namespace = Namespace::new();
        let containerd = Containerd::start(&namespace, 1)?;
        for at in 0..CONTAINERS {
            let pod = Pod::new("tenant-load", &format!("pod-{at}"));
            let pod = pod.with_label("crownlabs.polito.it/instance", &format!("lab-{at}"));
            let sandbox = containerd.run_pod(&pod).await?;
            containerd.run_container(&pod, &sandbox, "app", &["0"]).await?;
        }
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let registry = Registry::start(&address.to_string())?;
        let tags: Vec<String> = (0..TAGS).map(|tag| format!("1.{tag}")).collect();
        for image in 0..IMAGES {
            registry.push(&format!("machines/image-{image}"), &tags)?;
        }
        Ok(Self { containerd, namespace, registry })
    }

    /// The keys below `controllers`.
    pub fn controllers(&self) -> String {
        let (socket, namespace) =
            (self.containerd.socket().display().to_string(), self.namespace.path().display().to_string());
        format!(
            "  imageList: {{enabled: true, registries: [{{imageListName: images, url: \"{url}\", registryName: registry.example.org}}]}}
  examAgent: {{enabled: true, listen: \"127.0.0.1:0\", namespace: exams, allowedIps: [127.0.0.0/8]}}
  podConfig: {{enabled: true}}
  podConfigNode: {{enabled: true, nodeName: {NAME}, nodeNamespace: {namespace}, runtimeEndpoint: {socket}}}
  instanceMetrics: {{enabled: true, listen: \"127.0.0.1:0\", runtimeEndpoint: {socket}}}
",
            url = self.registry.url(),
        )
    }
}
