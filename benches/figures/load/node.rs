//! The servers that the loops for image lists, exams and nodes use under load: a registry, a node with containers, and
//! the rights that the chart gives to separate accounts.

use anyhow::Result;

use crate::fixtures;
use cluster::containerd::{Containerd, Pod};
use cluster::network::Namespace;
use cluster::registry::Registry;
use cluster::reserve_port;

/// The number of containers on the node. Each is an Instance.
const CONTAINERS: usize = 20;
/// The number of images in the registry, and of the tags of each.
const IMAGES: usize = 20;
const TAGS: usize = 10;

/// The name of the node.
const NAME: &str = "load-node";

/// The namespace of exams, and the rights in it.
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

/// The objects of the node and of exams.
pub fn objects() -> String {
    format!("{}---{EXAMS}", fixtures::node(NAME))
}

/// A node and a registry. Both stop when this is dropped.
pub struct Node {
    containerd: Containerd,
    namespace: Namespace,
    registry: Registry,
}

impl Node {
    /// Starts the node with its containers, and the registry with its images.
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
        let registry = Registry::start(&format!("127.0.0.1:{}", reserve_port()?))?;
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
