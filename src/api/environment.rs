//! Environments: the machines and containers that a template describes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::quantity::RawQuantity;
use super::reference::GenericRef;
use super::wire::{self, wire_enum};

wire_enum!(
    /// What an environment is.
    EnvironmentType, default "", {
        /// A virtual machine whose disk is a container image.
        VirtualMachine = "VirtualMachine",
        /// A container with a graphical desktop beside it.
        Container = "Container",
        /// A virtual machine whose disk is a cloud image from the network.
        CloudVm = "CloudVM",
        /// A container that is its own web application.
        Standalone = "Standalone",
        /// A virtual machine whose disk is cloned from a volume of the cluster.
        LocalVm = "LocalVM",
    }
);

impl EnvironmentType {
    /// Whether it is a virtual machine.
    #[must_use]
    pub const fn is_vm(&self) -> bool {
        matches!(self, Self::VirtualMachine | Self::CloudVm | Self::LocalVm)
    }

    /// Whether it is a container.
    #[must_use]
    pub const fn is_container(&self) -> bool {
        matches!(self, Self::Container | Self::Standalone)
    }
}

wire_enum!(
    /// What an environment is used for.
    EnvironmentMode, default "Standard", {
        /// Ordinary work.
        Standard = "Standard",
        /// An exam.
        Exam = "Exam",
        /// A graded exercise.
        Exercise = "Exercise",
    }
);

/// A machine or container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Environment {
    /// Its name, unique in the template.
    pub name: String,
    /// What it starts from: a container image, the URL of a disk image, or namespace/name of a
    /// volume, depending on its type.
    pub image: String,
    /// What it is.
    pub environment_type: EnvironmentType,
    /// Whether it has a graphical desktop.
    #[schemars(default = "wire::on")]
    pub gui_enabled: bool,
    /// Whether the control bar of the desktop is hidden.
    #[schemars(default)]
    pub disable_controls: bool,
    /// Whether its disk outlives a stop.
    #[schemars(default)]
    pub persistent: bool,
    /// What it is used for.
    #[schemars(default)]
    pub mode: EnvironmentMode,
    /// Whether its path is removed from the URL before the request reaches it.
    #[serde(rename = "rewriteURL")]
    #[schemars(default)]
    pub rewrite_url: bool,
    /// The storage class of its disk; empty for the cluster's default.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub storage_class_name: String,
    /// Whether the user's personal volume is mounted.
    #[schemars(extend("default" = true))]
    pub mount_my_drive_volume: bool,
    /// How the container starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub container_startup_options: Option<ContainerStartupOptions>,
    /// The volumes of the course that are mounted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub shared_volume_mounts: Vec<SharedVolumeMount>,
    /// The labels of the nodes that it runs on; counts instead of the template's. If it is present
    /// but empty, each instance may choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// What it may use.
    pub resources: EnvironmentResources,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            name: String::new(),
            image: String::new(),
            environment_type: EnvironmentType::default(),
            gui_enabled: true,
            disable_controls: false,
            persistent: false,
            mode: EnvironmentMode::Standard,
            rewrite_url: false,
            storage_class_name: String::new(),
            mount_my_drive_volume: true,
            container_startup_options: None,
            shared_volume_mounts: Vec::new(),
            node_selector: None,
            resources: EnvironmentResources::default(),
        }
    }
}

/// How a container starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ContainerStartupOptions {
    /// The URL of an archive that is unpacked before the start.
    #[serde(rename = "sourceArchiveURL", skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub source_archive_url: String,
    /// Where the archive is unpacked, and the storage is mounted.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub content_path: String,
    /// Arguments of the application.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub startup_args: Vec<String>,
    /// Whether the application starts in the path of the content.
    #[schemars(default)]
    pub enforce_workdir: bool,
}

/// A volume of the course that is mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct SharedVolumeMount {
    /// The volume.
    pub shared_volume: GenericRef,
    /// Where it is mounted.
    pub mount_path: String,
    /// Whether users cannot write to it.
    pub read_only: bool,
}

/// What an environment may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct EnvironmentResources {
    /// Processor cores.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 1))]
    pub cpu: i64,
    /// How much of the processor cores is reserved, in percent.
    #[serde(rename = "reservedCPUPercentage", deserialize_with = "wire::integer")]
    #[schemars(range(min = 1, max = 100))]
    pub reserved_cpu_percentage: i32,
    /// Memory.
    pub memory: RawQuantity,
    /// Disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub disk: Option<RawQuantity>,
    /// Extended resources, such as graphics cards.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub other_resources: BTreeMap<String, RawQuantity>,
}
