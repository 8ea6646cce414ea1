//! Workspaces: courses, each with a namespace for its Templates and a quota for its users.

use std::collections::BTreeMap;

use macro_rules_attribute::apply;

use super::condition::Condition;
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON};
use super::names::is_label_key;
use super::object::kind;
use super::quantity::RawQuantity;
use super::wire::{self, Optional, resource_part, wire_enum};

kind!(
    /// A Workspace as it is stored in the API server.
    WorkspaceKind, Workspace, super::GROUP, "v1alpha1", "Workspace", "workspaces", namespaced: false,
    WorkspaceSpec, WorkspaceStatus
);

impl CustomResource for WorkspaceKind {
    const SHORT_NAMES: &'static [&'static str] = &["ws"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Pretty Name", ".spec.prettyName"),
        Column::text("Namespace", ".status.namespace.name"),
        Column::text("Ready", ".status.ready"),
        REASON,
        MESSAGE,
        AGE,
    ];
    const DESCRIPTION: &'static str = "A course: a namespace for its templates, and a quota for its users.";
}

wire_enum!(
    /// Whether users can enrol themselves in a Workspace.
    AutoEnroll, default "", {
        /// Users cannot enrol themselves.
        Disabled = "",
        /// Users ask to be enrolled, and a manager approves.
        WithApproval = "withApproval",
        /// Users are enrolled as soon as they ask.
        Immediate = "immediate",
    }
);

wire_enum!(
    /// The state of a subscription to an external service.
    SubscriptionStatus, default "", {
        /// The subscription is in place.
        Ok = "Ok",
        /// The subscription failed, or the service is not configured.
        Failed = "Failed",
    }
);

/// Desired state of the workspace.
#[apply(resource_part)]
pub struct WorkspaceSpec {
    /// Name shown to users, for example `Network laboratory`. Required.
    pub pretty_name: String,
    /// Whether users can enrol themselves. `withApproval`: they ask, and a manager approves. `immediate`: they are
    /// enrolled as soon as they ask. Default: empty, they cannot enrol themselves.
    pub auto_enroll: Optional<AutoEnroll>,
    /// Resources that this workspace adds to the quota of each enrolled tenant. Required.
    pub quota: WorkspaceQuota,
}

/// Resources that a workspace adds to the quota of each enrolled tenant, or that a personal workspace adds to the
/// quota of its tenant.
#[apply(resource_part)]
pub struct WorkspaceQuota {
    /// Processor cores, for example `8` or `500m`.
    pub cpu: RawQuantity,
    /// Memory, for example `16Gi`.
    pub memory: RawQuantity,
    /// Number of instances, running or stopped, at least 1.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 1))]
    pub instances: i64,
    /// Total storage that claims may request, for example `100Gi`. Default: absent, not limited.
    pub disk: Option<RawQuantity>,
    /// Extended resources by name, for example `{nvidia.com/gpu: "1"}`. Default: none.
    pub other_resources: Optional<BTreeMap<String, RawQuantity>>,
}

impl WorkspaceQuota {
    /// The parts of a quota at `path` that have no effect: amounts that cannot be parsed, and names of resources that
    /// a `ResourceQuota` cannot have.
    pub fn faults(&self, path: &str) -> Vec<String> {
        let fixed = [("cpu", Some(&self.cpu)), ("memory", Some(&self.memory)), ("disk", self.disk.as_ref())];
        let fixed = fixed.into_iter().filter_map(|(name, raw)| Some((name.to_owned(), raw?)));
        let others = self.other_resources.iter().map(|(name, raw)| (format!("otherResources.{name}"), raw));
        let unreadable = fixed.chain(others).filter_map(|(name, raw)| {
            let is_amount = raw.parse().is_ok_and(|amount| !amount.is_negative());
            let text = raw.as_str();
            let message =
                || format!("{path}.{name} is {text:?}, but an amount such as 500m or 4Gi is expected");
            (!is_amount).then(message)
        });
        unreadable.chain(self.unknown_resources(path)).collect()
    }

    /// The names of resources in a quota at `path` that a `ResourceQuota` cannot have.
    pub fn unknown_resources(&self, path: &str) -> impl Iterator<Item = String> {
        let unknown = self.other_resources.keys().filter(|name| limit_name(name).is_none());
        unknown.map(move |name| {
            format!(
                "{path}.otherResources.{name}: a ResourceQuota cannot limit it; a name such as nvidia.com/gpu or \
                 hugepages-2Mi is expected, and it is left out"
            )
        })
    }
}

/// The prefix that the name of a requested resource has in a `ResourceQuota`.
pub const REQUESTS: &str = "requests.";

/// The name of a resource in a `ResourceQuota`; `None` if a `ResourceQuota` cannot limit it, by the rules of
/// Kubernetes.
pub fn limit_name(resource: &str) -> Option<String> {
    const PLAIN: [&str; 4] = ["cpu", "memory", "storage", "ephemeral-storage"];
    let plain = resource.strip_prefix(REQUESTS).unwrap_or(resource);
    let is_known = plain.contains('/') || plain.starts_with("hugepages-") || PLAIN.contains(&plain);
    let name = format!("{REQUESTS}{plain}");
    (is_known && is_label_key(&name)).then_some(name)
}

/// Observed state of the workspace.
#[apply(resource_part)]
pub struct WorkspaceStatus {
    /// Generation of the spec that the status describes. If it is less than `metadata.generation`, the last change
    /// has not been processed yet.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Namespace of the workspace, which holds its templates and shared volumes.
    #[schemars(default, skip_serializing_if = "wire::no_default")]
    pub namespace: NameCreated,
    /// State of the subscriptions to external services, by the name of the service, for example
    /// `{keycloak: Ok}`. `Failed` also if the service is not configured.
    pub subscription: Optional<BTreeMap<String, SubscriptionStatus>>,
    /// Whether all objects of the workspace are up to date; if not, the condition `Reconciled` contains the reason.
    pub ready: Optional<bool>,
    /// Conditions of the workspace: `Ready` and `Reconciled`.
    pub conditions: Optional<Vec<Condition>>,
}

/// An object whose name is known once it is created.
#[apply(resource_part)]
pub struct NameCreated {
    /// Whether it exists.
    pub created: bool,
    /// Name of the object; absent if it does not exist.
    pub name: Optional<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_quota_can_limit_are_accepted() {
        for (name, limit) in [
            ("nvidia.com/gpu", "requests.nvidia.com/gpu"),
            ("requests.nvidia.com/gpu", "requests.nvidia.com/gpu"),
            ("hugepages-2Mi", "requests.hugepages-2Mi"),
            ("ephemeral-storage", "requests.ephemeral-storage"),
        ] {
            assert_eq!(limit_name(name).as_deref(), Some(limit));
        }
        for name in ["gpu", "", "a b/c", "nvidia.com/", "/gpu", "requests.gpu", "NVIDIA.com/gpu", "pods"] {
            assert_eq!(limit_name(name), None, "{name}");
        }
    }

    #[test]
    fn ignored_parts_of_a_quota_are_reported_with_their_path() {
        let quota = serde_json::json!({
            "cpu": "some", "memory": "4Gi", "disk": "-1Gi", "instances": 1,
            "otherResources": {"gpu": "1", "nvidia.com/gpu": "x", "amd.com/gpu": "2"},
        });
        let quota: WorkspaceQuota = serde_json::from_value(quota).expect("a quota");
        let faults = quota.faults("spec.quota");
        let places: Vec<&str> = faults.iter().filter_map(|fault| fault.split([' ', ':']).next()).collect();
        let expected = ["cpu", "disk", "otherResources.nvidia.com/gpu", "otherResources.gpu"];
        assert_eq!(places, expected.map(|place| format!("spec.quota.{place}")));
    }
}
