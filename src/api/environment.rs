//! Environments: the virtual machines and containers that a Template describes.

use std::collections::BTreeMap;

use macro_rules_attribute::apply;

use super::quantity::RawQuantity;
use super::reference::GenericRef;
use super::wire::{self, Optional, resource_part, resource_part_without_default, wire_enum};

wire_enum!(
    /// The type of an environment.
    EnvironmentType, default "", {
        /// A virtual machine whose disk comes from a container image.
        VirtualMachine = "VirtualMachine",
        /// A container with a graphical application, shown by a VNC server beside it.
        Container = "Container",
        /// A virtual machine whose disk is downloaded from a URL.
        CloudVm = "CloudVM",
        /// A container that serves a web application.
        Standalone = "Standalone",
        /// A virtual machine whose disk is a clone of a `PersistentVolumeClaim`.
        LocalVm = "LocalVM",
    }
);

impl EnvironmentType {
    /// Whether the type is a virtual machine; false for an unknown type.
    pub const fn is_vm(&self) -> bool {
        matches!(self, Self::VirtualMachine | Self::CloudVm | Self::LocalVm)
    }
}

wire_enum!(
    /// The purpose of an environment.
    EnvironmentMode, default "Standard", {
        /// Everyday work of a course.
        Standard = "Standard",
        /// An exam: reached under `exam.<host>`, without the OAuth2 proxy.
        Exam = "Exam",
        /// A graded exercise: reached under `exercise.<host>`, without the OAuth2 proxy.
        Exercise = "Exercise",
    }
);

/// A virtual machine or container of each instance.
#[apply(resource_part_without_default)]
pub struct Environment {
    /// Name of the environment, unique in the template, for example `desktop`. It is part of the names of
    /// the objects that are created, unless the only environment of an instance has the classic layout.
    pub name: String,
    /// Image that the environment starts from. `VirtualMachine`, `Container` and `Standalone`: a container
    /// image, such as `registry.example.org/machines/ubuntu:24.04`. `CloudVM`: the URL of a disk image.
    /// `LocalVM`: a `PersistentVolumeClaim` to clone, as `namespace/name`.
    pub image: String,
    /// Type of the environment. `VirtualMachine`: a virtual machine from a container image. `CloudVM`: one
    /// from a disk image that is downloaded. `LocalVM`: one from a clone of a volume. `Container`: a
    /// graphical application in a container, shown through VNC. `Standalone`: a container that serves a
    /// web application on port 6080. `CloudVM` and `LocalVM` must be persistent.
    pub environment_type: EnvironmentType,
    /// Whether the environment has a web interface (desktop or web application) that users open in a
    /// browser. Defaults to true.
    #[schemars(default = "wire::on")]
    pub gui_enabled: bool,
    /// Whether the control bar of the desktop is hidden. Defaults to false. Only used by type `Container`.
    #[schemars(default)]
    pub disable_controls: bool,
    /// Whether the environment has a disk that is kept while the instance is stopped. Defaults to false.
    /// If true, `resources.disk` is required.
    #[schemars(default)]
    pub persistent: bool,
    /// Purpose of the environment. `Standard` (default): everyday work. `Exam` and `Exercise`: reached
    /// under the host names `exam.HOST` and `exercise.HOST`, without the login of the OAuth2 proxy.
    #[schemars(default)]
    pub mode: EnvironmentMode,
    /// Whether the path prefix of the instance is removed from the URL before a request reaches the web application.
    /// Defaults to false. Only used by type `Standalone`, and by type `Container` if the URL contains the name of the
    /// environment.
    #[serde(rename = "rewriteURL")]
    #[schemars(default)]
    pub rewrite_url: bool,
    /// Storage class of the disk of a persistent environment. Default: empty, the default class of the
    /// cluster.
    pub storage_class_name: Optional<String>,
    /// Whether the personal volume of the user (MyDrive) is mounted at `/media/mydrive`. Defaults to true.
    #[schemars(extend("default" = true))]
    pub mount_my_drive_volume: bool,
    /// Startup options of a container. Default: none. Only used by types `Container` and `Standalone`.
    pub container_startup_options: Option<ContainerStartupOptions>,
    /// Shared volumes to mount. Default: none.
    pub shared_volume_mounts: Optional<Vec<SharedVolumeMount>>,
    /// Labels of the nodes that the environment may run on, for example `{gpu: "true"}`. It replaces the node
    /// selector of the template. If it is present and empty, the node selector of the instance is used. Default:
    /// absent, the node selector of the template is used.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Processor cores, memory and disk of the environment. Required.
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

/// Startup options of a container.
#[apply(resource_part)]
pub struct ContainerStartupOptions {
    /// URL of an archive that is downloaded and unpacked before the application starts. Default: empty, no
    /// archive. An instance may name another one (`spec.contentUrls`).
    #[serde(rename = "sourceArchiveURL")]
    pub source_archive_url: Optional<String>,
    /// Path of the volume with the unpacked archive and the user's work in the container of the application. Default:
    /// `/media/data`.
    pub content_path: Optional<String>,
    /// Arguments of the container's entry point, for example `["--fullscreen"]`. Default: the arguments in the image.
    pub startup_args: Optional<Vec<String>>,
    /// Whether `contentPath` is also the working directory of the application. Defaults to false.
    #[schemars(default)]
    pub enforce_workdir: bool,
}

/// A shared volume that is mounted into an environment.
#[apply(resource_part)]
pub struct SharedVolumeMount {
    /// `SharedVolume` to mount, for example `{name: materials, namespace: workspace-netlab}`.
    pub shared_volume: GenericRef,
    /// Mount path of the volume, for example `/media/materials`.
    pub mount_path: String,
    /// Whether users can only read the volume. Managers of the workspace can always write to it.
    pub read_only: bool,
}

/// Resources of an environment.
#[apply(resource_part)]
pub struct EnvironmentResources {
    /// Number of processor cores, at least 1: the CPU limit, and the cores that a virtual machine sees.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 1))]
    pub cpu: i64,
    /// Share of the processor cores that is reserved (the CPU request), in percent from 1 to 100: 25 of 2
    /// cores reserves `500m`.
    #[serde(rename = "reservedCPUPercentage", deserialize_with = "wire::integer")]
    #[schemars(range(min = 1, max = 100))]
    pub reserved_cpu_percentage: i32,
    /// Memory that is reserved, which is also the limit, for example `2Gi`. A virtual machine gets `500M` more for
    /// its own overhead.
    pub memory: RawQuantity,
    /// Size of the disk, for example `10Gi`. Required if the environment is persistent, otherwise ignored.
    pub disk: Option<RawQuantity>,
    /// Extended resources by name, for example `{nvidia.com/gpu: "1"}`. Default: none.
    pub other_resources: Optional<BTreeMap<String, RawQuantity>>,
}
