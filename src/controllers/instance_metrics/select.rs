//! The selection of pods and containers to measure.

use std::collections::BTreeMap;

use super::usage::{Processor, Sample};
use crate::api::labels::INSTANCE;
use crate::clients::cri::messages::{Container, ContainerStats, CpuUsage, PodSandbox};
use crate::runtime::ObjectKey;

/// A label of KubeVirt's pods. Their use is the use of the whole virtual machine.
const KUBEVIRT: &str = "kubevirt.io";
/// The containers of an Instance beside its application: the desktop, its web proxy, and the download of its files.
const SIDECARS: [&str; 3] = ["xvnc", "websockify", "content-downloader"];
/// The maximum number of measured pods on a node. The newest ones count. A node has 110 pods by default.
pub const MOST_PODS: usize = 1_024;

/// A pod of an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// The name of the Instance.
    pub instance: String,
    /// When its sandbox was created, in nanoseconds since 1970.
    pub created: i64,
}

/// Whether one of these patterns matches a namespace. A pattern is a name, or the beginning of a name followed by `*`.
fn matches(patterns: &[String], namespace: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(begin) => namespace.starts_with(begin),
        None => namespace == pattern,
    })
}

/// The pods of Instances in `namespaces` among these sandboxes, by the id of the sandbox. In other namespaces users may
/// create pods with any labels, which would count towards another user's Instance. If several sandboxes have the same
/// name, for example because a pod was recreated before the runtime removed the old one, only the newest counts.
pub fn pods(namespaces: &[String], sandboxes: Vec<PodSandbox>) -> BTreeMap<String, Pod> {
    let mut newest: BTreeMap<ObjectKey, (i64, String, String)> = BTreeMap::new();
    for mut sandbox in sandboxes {
        let Some(metadata) = sandbox.metadata else { continue };
        let is_ours = matches(namespaces, &metadata.namespace);
        if metadata.name.is_empty() || !is_ours || sandbox.labels.contains_key(KUBEVIRT) {
            continue;
        }
        let Some(instance) = sandbox.labels.remove(INSTANCE) else { continue };
        let key = ObjectKey::new(metadata.namespace, metadata.name);
        let found = (sandbox.created_at, sandbox.id, instance);
        if newest.get(&key).is_none_or(|known| *known < found) {
            newest.insert(key, found);
        }
    }
    let mut all: Vec<_> = newest.into_iter().collect();
    all.sort_by_key(|(_, (created, _, _))| std::cmp::Reverse(*created));
    all.truncate(MOST_PODS);
    let by_sandbox = |(key, (created, id, instance))| (id, Pod { key, instance, created });
    all.into_iter().map(by_sandbox).collect()
}

/// The application containers of these pods, by their id, with the id of their sandbox.
pub fn containers(pods: &BTreeMap<String, Pod>, containers: Vec<Container>) -> BTreeMap<String, String> {
    let is_application = |container: &Container| {
        let name = container.metadata.as_ref().map_or("", |metadata| &metadata.name);
        pods.contains_key(&container.pod_sandbox_id) && !SIDECARS.contains(&name)
    };
    let found = containers.into_iter().filter(is_application);
    found.map(|container| (container.id, container.pod_sandbox_id)).collect()
}

/// The samples of these containers, selected from the samples of the runtime.
pub fn samples(
    pods: &BTreeMap<String, Pod>,
    containers: &BTreeMap<String, String>,
    stats: Vec<ContainerStats>,
) -> Vec<Sample> {
    let mut samples: BTreeMap<String, Sample> = BTreeMap::new();
    for stats in stats {
        let Some(attributes) = stats.attributes else { continue };
        let Some(pod) = containers.get(&attributes.id).and_then(|sandbox| pods.get(sandbox)) else {
            continue;
        };
        let used = |cpu: CpuUsage| Some(Processor { at: cpu.timestamp, used: cpu.usage_core_nano_seconds? });
        let sample = Sample {
            container: attributes.id.clone(),
            pod: pod.clone(),
            processor: stats.cpu.and_then(used),
            memory: stats.memory.and_then(|memory| memory.working_set_bytes).unwrap_or(0),
            disk: stats.writable_layer.and_then(|layer| layer.used_bytes).unwrap_or(0),
        };
        samples.insert(attributes.id, sample);
    }
    samples.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::cri::messages::{
        ContainerAttributes, ContainerMetadata, FilesystemUsage, MemoryUsage, PodSandboxMetadata,
    };

    fn sandbox(
        id: &str,
        namespace: &str,
        name: &str,
        created_at: i64,
        labels: &[(&str, &str)],
    ) -> PodSandbox {
        let metadata = PodSandboxMetadata { name: name.to_owned(), namespace: namespace.to_owned() };
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let id = id.to_owned();
        PodSandbox { id, metadata: Some(metadata), created_at, labels }
    }

    fn container(id: &str, sandbox: &str, name: &str) -> Container {
        Container {
            id: id.to_owned(),
            pod_sandbox_id: sandbox.to_owned(),
            metadata: Some(ContainerMetadata { name: name.to_owned() }),
            ..Container::default()
        }
    }

    /// The pods in the namespaces `tenant-…` and `exams`.
    fn pods(sandboxes: Vec<PodSandbox>) -> BTreeMap<String, Pod> {
        super::pods(&["tenant-*", "exams"].map(str::to_owned), sandboxes)
    }

    #[test]
    fn pods_of_users_do_not_count() {
        let ours = [(INSTANCE, "lab")];
        let namespaces = ["tenant-a", "exams", "sandbox-a", "exams-2", "xtenant-a", "tenant", "default"];
        let sandboxes = namespaces.map(|namespace| sandbox(namespace, namespace, "pod", 1, &ours));
        assert_eq!(pods(sandboxes.to_vec()).into_keys().collect::<Vec<_>>(), ["exams", "tenant-a"]);
    }

    #[test]
    fn only_pods_of_instances_in_containers_count() {
        let ours = [(INSTANCE, "lab")];
        let found = pods(vec![
            sandbox("a", "tenant-a", "pod", 1, &ours),
            sandbox("b", "tenant-b", "pod", 1, &ours),
            sandbox("c", "tenant-a", "machine", 1, &[(INSTANCE, "vm"), (KUBEVIRT, "virt-launcher")]),
            sandbox("d", "kube-system", "dns", 1, &[("app", "dns")]),
            sandbox("e", "tenant-a", "", 1, &ours),
            PodSandbox { id: "f".to_owned(), ..PodSandbox::default() },
        ]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(found["a"].instance, "lab");
    }

    #[test]
    fn the_newest_sandbox_of_a_pod_counts() {
        let ours = [(INSTANCE, "lab")];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let sandboxes = order.map(|at| sandbox(&at.to_string(), "tenant-a", "pod", at, &ours));
            let found = pods(sandboxes.to_vec());
            assert_eq!(found.keys().collect::<Vec<_>>(), ["2"], "{order:?}");
        }
    }

    #[test]
    fn a_node_with_too_many_pods_is_measured_in_part() {
        let ours = [(INSTANCE, "lab")];
        let many =
            (0..2_000).map(|at| sandbox(&format!("{at:04}"), "tenant-a", &format!("pod-{at}"), at, &ours));
        let found = pods(many.collect());
        assert_eq!(found.len(), MOST_PODS);
        assert_eq!(found.keys().next().map(String::as_str), Some("0976"), "the oldest are left out");
    }

    #[test]
    fn sidecars_of_an_instance_do_not_count() {
        let pods = pods(vec![sandbox("a", "tenant-a", "pod", 1, &[(INSTANCE, "lab")])]);
        let of = |names: [&str; 3]| {
            let all = names.iter().map(|name| container(name, "a", name)).chain([container("x", "z", "app")]);
            containers(&pods, all.collect()).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(of(["app", "xvnc", "websockify"]), ["app"]);
        assert_eq!(of(["content-downloader", "app", "other"]), ["app", "other"]);
    }

    #[test]
    fn only_samples_of_selected_containers_count() {
        let pods = pods(vec![sandbox("a", "tenant-a", "pod", 1, &[(INSTANCE, "lab")])]);
        let containers = containers(&pods, vec![container("one", "a", "app"), container("two", "a", "db")]);
        let stats = |id: &str| ContainerStats {
            attributes: Some(ContainerAttributes { id: id.to_owned() }),
            cpu: Some(CpuUsage { timestamp: 7, usage_core_nano_seconds: Some(3) }),
            memory: Some(MemoryUsage { working_set_bytes: Some(4) }),
            writable_layer: Some(FilesystemUsage { used_bytes: Some(5) }),
        };
        let bare = ContainerStats { cpu: None, memory: None, writable_layer: None, ..stats("two") };
        let twice = stats("one");
        let found = samples(&pods, &containers, vec![stats("one"), bare, stats("other"), twice]);
        let numbers: Vec<_> = found
            .iter()
            .map(|found| (&*found.container, found.processor, found.memory, found.disk))
            .collect();
        assert_eq!(
            numbers,
            [("one", Some(Processor { at: 7, used: 3 }), 4, 5), ("two", None, 0, 0)],
            "one that is named twice counts once"
        );
    }
}
