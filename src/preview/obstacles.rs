//! Obstacles to the daemon in a cluster that the Go operators run.

use std::collections::BTreeMap;

use kube::Client;
use serde_json::Value;

use super::layout::mismatch;
use crate::api::crd::crds;
use crate::api::{GROUP, labels};
use crate::config::{Config, tree};
use crate::loops::enabled;
use crate::offline::fields;
use crate::runtime::apply::{Verb, Write};
use crate::runtime::client::each_listed;
use crate::runtime::definitions::foreign_versions;
use crate::runtime::error::with_sources;
use crate::runtime::preview::Previewed;

/// The images of the Go operators, by the last component of their names, with the loops that replace them.
const OPERATORS: [(&str, &[&str]); 10] = [
    (
        "operator",
        &["tenant", "workspace", "instance", "publicExposure", "snapshot", "sharedVolume", "imageList"],
    ),
    ("tenant-operator", &["tenant", "workspace"]),
    ("instance-operator", &["instance", "publicExposure", "snapshot", "sharedVolume"]),
    ("instance-automation", &["inactivity", "expiration", "termination", "submission"]),
    ("image-list", &["imageList"]),
    ("bastion-operator", &["bastion"]),
    ("bastion-ssh-tracker", &["sshTracker"]),
    ("webssh-bastion", &["webSsh"]),
    ("webssh", &["webSsh"]),
    ("exam-agent", &["examAgent"]),
];
/// The kinds of workloads that run the Go operators.
const WORKLOADS: [(&str, &str); 3] =
    [("Deployment", "deployments"), ("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets")];
/// The kinds of webhook configurations.
const WEBHOOKS: [(&str, &str); 2] = [
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
];

/// The obstacles, one sentence each.
#[derive(Debug, Default)]
pub struct Obstacles {
    /// Operators that do the work of an enabled loop.
    operators: Vec<String>,
    /// Webhooks for our kinds that the daemon does not serve.
    webhooks: Vec<String>,
    /// Versions of stored objects that our CRDs do not have.
    stored: Vec<String>,
    /// Fields of custom resources that our CRDs do not have.
    dropped: Vec<String>,
    /// Instances whose names differ from the names that new ones would get.
    layout: Vec<String>,
    /// Writes that interrupt users.
    interruptions: Vec<String>,
    /// Lists that could not be read. They are not obstacles, but may hide some.
    pub unread: Vec<String>,
}

impl Obstacles {
    /// Finds all obstacles.
    pub async fn find(client: &Client, config: &Config, previews: &[Previewed]) -> Self {
        let writes = previews.iter().flat_map(|preview| &preview.writes);
        let interruptions = writes.filter_map(interruption).collect();
        let mut found = Self { interruptions, ..Self::default() };
        let is_enabled = |name: &&str| enabled(&config.controllers).any(|entry| entry.name == *name);
        for (kind, plural) in WORKLOADS {
            let workloads = found.read(client, &format!("/apis/apps/v1/{plural}"), "").await;
            found.operators.extend(workloads.iter().filter_map(|object| operator(kind, object, &is_enabled)));
        }
        for (kind, plural) in WEBHOOKS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
            let configurations = found.read(client, &path, "").await;
            let own = (&*config.server.webhook.service_name, &*config.leader_election.namespace);
            found.webhooks.extend(configurations.iter().filter_map(|object| webhook(kind, object, own)));
        }
        let managed = format!("&labelSelector={}%3D{}", labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let services = found.read(client, "/api/v1/services", &managed).await;
        found.layout = mismatch(&services, config.controllers.instance.layout).into_iter().collect();
        found.stored = found.stored_versions(client).await;
        found.dropped = found.fields(client).await;
        found
    }

    /// The obstacles of each kind, with the name and the heading of the kind.
    pub fn sections(&self) -> [(&'static str, &'static str, &[String]); 6] {
        [
            (
                "operators",
                "These operators do the same work; stop them before the daemon starts:",
                &self.operators,
            ),
            (
                "webhooks",
                "Other programs serve these webhooks. Stop those programs, install the daemon, then delete the webhooks: \
                 until then, the API server rejects every write that a webhook cannot review:",
                &self.webhooks,
            ),
            (
                "fields",
                "The daemon's CRDs do not have these fields, so the next write of each object drops them:",
                &self.dropped,
            ),
            (
                "storedVersions",
                "Objects of these CRDs were stored in versions that the daemon's CRDs do not have, so the API server \
                 rejects the daemon's CRDs; rewrite the objects, then remove the versions from \
                 status.storedVersions:",
                &self.stored,
            ),
            ("layout", "New Instances would get other names than existing ones:", &self.layout),
            ("interruptions", "These writes interrupt users or delete something:", &self.interruptions),
        ]
    }

    /// The number of obstacles.
    pub fn count(&self) -> usize {
        self.sections().iter().map(|(.., found)| found.len()).sum()
    }

    /// Whether there are no obstacles.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns the versions of stored objects of our kinds that our CRDs do not have: the API server rejects the CRDs
    /// as long as there are any.
    async fn stored_versions(&mut self, client: &Client) -> Vec<String> {
        let definitions = crds();
        let installed =
            self.read(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "").await;
        let stored = |crd: &Value| {
            let name = name_of(crd);
            let ours = definitions.iter().find(|ours| ours.metadata.name.as_ref() == Some(&name))?;
            let foreign = foreign_versions(crd, ours);
            (!foreign.is_empty()).then(|| format!("{name}: {}", foreign.join(", ")))
        };
        installed.iter().filter_map(stored).collect()
    }

    /// Returns the fields of custom resources that our CRDs do not have, each with the first object that contains it.
    async fn fields(&mut self, client: &Client) -> Vec<String> {
        let definitions = crds();
        // For each field, the number of objects with it, and the first of them.
        let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for definition in &definitions {
            let spec = &definition.spec;
            let Some(version) = spec.versions.iter().find(|version| version.storage) else { continue };
            let path = format!("/apis/{}/{}/{}", spec.group, version.name, spec.names.plural);
            for object in self.read(client, &path, "").await {
                let nodes = tree::documents(&object.to_string()).unwrap_or_default();
                for field in nodes.iter().flat_map(|node| fields::unknown(node, &definitions)) {
                    let what = format!("{}: {}", field.kind, field.path);
                    found.entry(what).or_insert_with(|| (0, name_of(&object))).0 += 1;
                }
            }
        }
        let sentence = |(what, (count, first)): (String, (usize, String))| match count {
            1 => format!("{what} (in {first})"),
            count => format!("{what} (in {count} objects, the first is {first})"),
        };
        found.into_iter().map(sentence).collect()
    }

    /// Reads the objects of a list, as JSON. Returns no objects if the kind is not served.
    async fn read(&mut self, client: &Client, path: &str, query: &str) -> Vec<Value> {
        let mut objects = Vec::new();
        match each_listed(client, path, query, |object| objects.push(object)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => self.unread.push(format!("{path}: {}", with_sources(&error))),
            Ok(()) => {}
        }
        objects
    }
}

/// Returns a workload that runs an operator whose work an enabled loop does.
fn operator(kind: &str, object: &Value, is_enabled: &dyn Fn(&&str) -> bool) -> Option<String> {
    let pointer = if kind == "DaemonSet" { "/status/desiredNumberScheduled" } else { "/spec/replicas" };
    let replicas = object.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let containers = object.pointer("/spec/template/spec/containers")?.as_array()?;
    let images = containers.iter().filter_map(|container| container["image"].as_str());
    let (image, loops) = images.into_iter().find_map(|image| {
        let (_, loops) = OPERATORS.iter().find(|(name, _)| is_image(image, name))?;
        let enabled: Vec<&str> = loops.iter().filter(|name| is_enabled(name)).copied().collect();
        (!enabled.is_empty()).then_some((image, enabled))
    })?;
    let name = name_of(object);
    (replicas > 0)
        .then(|| format!("{kind} {name}, replicas: {replicas}, image {image}, for {}", loops.join(", ")))
}

/// Whether an image is `crownlabs/<name>` in any registry, with any tag or digest.
fn is_image(image: &str, name: &str) -> bool {
    let mut parts = image.rsplit('/');
    let last = parts.next().unwrap_or_default();
    let last = last.split(['@', ':']).next().unwrap_or_default();
    last == name && parts.next().is_some_and(|project| project.starts_with("crownlabs"))
}

/// Returns a webhook configuration for our kinds that does not call this Service of the daemon, such as a leftover of
/// another release.
fn webhook(kind: &str, object: &Value, (name, namespace): (&str, &str)) -> Option<String> {
    let webhooks = object["webhooks"].as_array()?;
    let is_about_us = |webhook: &&Value| {
        let rules = webhook["rules"].as_array().into_iter().flatten();
        rules.filter_map(|rule| rule["apiGroups"].as_array()).flatten().any(|group| *group == GROUP)
    };
    let other = webhooks.iter().filter(is_about_us).find_map(|webhook| {
        let service = &webhook["clientConfig"]["service"];
        (service["name"] != name || service["namespace"] != namespace).then_some(service)
    })?;
    let text = |member: &str| other[member].as_str().unwrap_or("an address").to_owned();
    let service = if other.is_null() { text("") } else { format!("{}/{}", text("namespace"), text("name")) };
    Some(format!("{kind} {}, served by {service}", name_of(object)))
}

/// Returns the interruption that a write causes for users.
fn interruption(write: &Write) -> Option<String> {
    let what = match (write.verb, write.kind.kind) {
        (Verb::Delete, _) => "is deleted",
        (Verb::Patch, "Deployment") if !write.body["spec"]["template"].is_null() => "its pods are replaced",
        _ => return None,
    };
    Some(format!("{} {}: {what}", write.kind.kind, write.key))
}

/// Returns the namespace and the name of an object.
fn name_of(object: &Value) -> String {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}
