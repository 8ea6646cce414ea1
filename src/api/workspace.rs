//! Workspaces: courses, each with a namespace for its material and a share of resources.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{AGE, Column, CustomResource};
use super::object::{Kind, Object};
use super::quantity::RawQuantity;
use super::wire::{self, wire_enum};

/// The kind of [`Workspace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceKind;

/// A course.
pub type Workspace = Object<WorkspaceKind>;

impl Kind for WorkspaceKind {
    const GROUP: &'static str = super::GROUP;
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "Workspace";
    const PLURAL: &'static str = "workspaces";
    const NAMESPACED: bool = false;
    type Spec = WorkspaceSpec;
    type Status = WorkspaceStatus;
}

impl CustomResource for WorkspaceKind {
    const COLUMNS: &'static [Column] = &[
        Column::text("Pretty Name", ".spec.prettyName"),
        Column::text("Namespace", ".status.namespace.name"),
        Column::text("Ready", ".status.ready"),
        AGE,
    ];
    const DESCRIPTION: &'static str = "A course: its users, its templates and its share of resources.";
}

wire_enum!(
    /// Whether users may enrol themselves in a workspace.
    AutoEnroll, default "", {
        /// They may not.
        Disabled = "",
        /// They may ask, and a manager approves.
        WithApproval = "withApproval",
        /// They may.
        Immediate = "immediate",
    }
);

wire_enum!(
    /// The state of a subscription to an external service.
    SubscriptionStatus, default "", {
        /// It succeeded.
        Ok = "Ok",
        /// It failed.
        Failed = "Failed",
    }
);

/// What a workspace is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct WorkspaceSpec {
    /// The name that users see.
    pub pretty_name: String,
    /// Whether users may enrol themselves: with approval, at once, or not at all if empty.
    #[serde(skip_serializing_if = "AutoEnroll::is_empty")]
    #[schemars(default)]
    pub auto_enroll: AutoEnroll,
    /// What this workspace adds to the quota of each enrolled tenant.
    pub quota: WorkspaceQuota,
}

/// A share of resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct WorkspaceQuota {
    /// Processor time.
    pub cpu: RawQuantity,
    /// Memory.
    pub memory: RawQuantity,
    /// Instances that may exist at the same time.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 1))]
    pub instances: i64,
    /// Storage that may be requested in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub disk: Option<RawQuantity>,
    /// Extended resources, such as graphics cards, as they appear in a resource quota.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub other_resources: BTreeMap<String, RawQuantity>,
}

/// What was made of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct WorkspaceStatus {
    /// The namespace of the workspace.
    #[schemars(default, skip_serializing_if = "wire::no_default")]
    pub namespace: NameCreated,
    /// The state of each subscription to an external service, such as keycloak.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub subscription: BTreeMap<String, SubscriptionStatus>,
    /// Whether everything that belongs to the workspace is in place.
    #[serde(skip_serializing_if = "wire::is_off")]
    #[schemars(default)]
    pub ready: bool,
    /// The state of the workspace in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

/// Something that has a name once it was created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct NameCreated {
    /// Whether it was created.
    pub created: bool,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub name: String,
}
