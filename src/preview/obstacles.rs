//! Obstacles to the daemon in a cluster that the Go operators run.

use std::collections::BTreeMap;

use kube::Client;
use serde_json::Value;

use super::layout::mismatch;
use crate::api::GROUP;
use crate::api::crd::crds;
use crate::api::labels;
use crate::config::Config;
use crate::config::tree;
use crate::loops::LOOPS;
use crate::offline::fields;
use crate::runtime::apply::{Verb, Write};
use crate::runtime::client::each_listed;
use crate::runtime::definitions::foreign_versions;
use crate::runtime::error::with_sources;
use crate::runtime::preview::Previewed;

/// The images of the Go operators, by the last part of their names, and the loops that do the same work.
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
/// The kinds of workloads in which they run.
const WORKLOADS: [(&str, &str); 3] =
    [("Deployment", "deployments"), ("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets")];
/// The kinds of webhook configurations.
const WEBHOOKS: [(&str, &str); 2] = [
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
];
/// The Service of the daemon's own webhooks, in any namespace.
const OWN_SERVICE: &str = "crownlabs-webhook";

/// The obstacles, a sentence each.
#[derive(Debug, Default)]
pub struct Obstacles {
    /// Operators that run and do what an enabled loop does.
    operators: Vec<String>,
    /// Webhooks for our kinds that are not the daemon's.
    webhooks: Vec<String>,
    /// Versions in which objects are stored and that our CRDs do not have.
    stored: Vec<String>,
    /// Fields of custom resources that our CRDs do not have.
    dropped: Vec<String>,
    /// That Instances are named otherwise than new ones would be.
    layout: Vec<String>,
    /// Writes that end something that users have.
    interruptions: Vec<String>,
    /// Lists that could not be read: no obstacle, but not known to be none.
    pub unread: Vec<String>,
}

impl Obstacles {
    /// Looks for all of them.
    pub async fn find(client: &Client, config: &Config, previews: &[Previewed]) -> Self {
        let writes = previews.iter().flat_map(|preview| &preview.writes);
        let interruptions = writes.filter_map(interruption).collect();
        let mut found = Self { interruptions, ..Self::default() };
        let is_enabled = |name: &&str| {
            LOOPS.iter().any(|entry| entry.name == *name && (entry.toggle)(&config.controllers).enabled)
        };
        for (kind, plural) in WORKLOADS {
            let workloads = found.read(client, &format!("/apis/apps/v1/{plural}"), "").await;
            found.operators.extend(workloads.iter().filter_map(|object| operator(kind, object, &is_enabled)));
        }
        for (kind, plural) in WEBHOOKS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
            let configurations = found.read(client, &path, "").await;
            found.webhooks.extend(configurations.iter().filter_map(|object| webhook(kind, object)));
        }
        let managed = format!("&labelSelector={}%3D{}", labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let services = found.read(client, "/api/v1/services", &managed).await;
        found.layout = mismatch(&services, config.controllers.instance.layout).into_iter().collect();
        found.stored = found.stored_versions(client).await;
        found.dropped = found.fields(client).await;
        found
    }

    /// The obstacles, with a name and a heading for each sort.
    pub fn sections(&self) -> [(&'static str, &'static str, &[String]); 6] {
        [
            (
                "operators",
                "These run and do the same work; stop them before the daemon starts:",
                &self.operators,
            ),
            (
                "webhooks",
                "These webhooks are answered by others; delete them when those are stopped, since the API server refuses \
                 every write that it cannot ask them about:",
                &self.webhooks,
            ),
            (
                "fields",
                "These fields are in no CRD of the daemon, so the next write of their object drops them:",
                &self.dropped,
            ),
            (
                "storedVersions",
                "Objects of these CRDs were stored in versions that the daemon's CRDs do not have, which the API server \
                 therefore refuses; write the objects anew, then take the version out of status.storedVersions:",
                &self.stored,
            ),
            ("layout", "New Instances would be named otherwise than those that are there:", &self.layout),
            ("interruptions", "These writes interrupt somebody or delete something:", &self.interruptions),
        ]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sections().iter().map(|(.., found)| found.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The versions in which objects of our kinds are stored and that our CRDs do not have: the API server refuses the CRDs
    /// as long as that is so.
    async fn stored_versions(&mut self, client: &Client) -> Vec<String> {
        let definitions = crds();
        let installed =
            self.read(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "").await;
        let mut found = Vec::new();
        for crd in installed {
            let name = name_of(&crd);
            let Some(ours) = definitions.iter().find(|ours| ours.metadata.name.as_ref() == Some(&name))
            else {
                continue;
            };
            let foreign = foreign_versions(&crd, ours);
            if !foreign.is_empty() {
                found.push(format!("{name}: {}", foreign.join(", ")));
            }
        }
        found
    }

    /// The fields of custom resources that our CRDs do not have, each with the first object that has it.
    async fn fields(&mut self, client: &Client) -> Vec<String> {
        let definitions = crds();
        // Of each field, how many objects have it, and the first of them.
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

    /// The objects of a list, as JSON; none where the kind is not served.
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

/// A workload that runs an operator whose work an enabled loop does.
fn operator(kind: &str, object: &Value, is_enabled: &dyn Fn(&&str) -> bool) -> Option<String> {
    let replicas = match kind {
        "DaemonSet" => object.pointer("/status/desiredNumberScheduled"),
        _ => object.pointer("/spec/replicas"),
    };
    let replicas = replicas.and_then(Value::as_u64).unwrap_or_default();
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

/// A webhook configuration about our kinds that does not ask the daemon.
fn webhook(kind: &str, object: &Value) -> Option<String> {
    let webhooks = object["webhooks"].as_array()?;
    let is_about_us = |webhook: &&Value| {
        let rules = webhook["rules"].as_array().into_iter().flatten();
        rules.filter_map(|rule| rule["apiGroups"].as_array()).flatten().any(|group| *group == GROUP)
    };
    let other = webhooks.iter().filter(is_about_us).find_map(|webhook| {
        let service = &webhook["clientConfig"]["service"];
        (service["name"] != OWN_SERVICE).then_some(service)
    })?;
    let text = |member: &str| other[member].as_str().unwrap_or("an address").to_owned();
    let service = if other.is_null() { text("") } else { format!("{}/{}", text("namespace"), text("name")) };
    Some(format!("{kind} {}, answered by {service}", name_of(object)))
}

/// The interruption that a write causes for its users.
fn interruption(write: &Write) -> Option<String> {
    let what = match (write.verb, write.kind.kind) {
        (Verb::Delete, _) => "is deleted",
        (Verb::Patch, "Deployment") if !write.body["spec"]["template"].is_null() => "its pods are replaced",
        _ => return None,
    };
    Some(format!("{} {}: {what}", write.kind.kind, write.key))
}

/// Namespace and name of an object.
fn name_of(object: &Value) -> String {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}
