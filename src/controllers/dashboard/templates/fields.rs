//! The table of the fields of a Template. The form, its texts, the places of error messages and the list of changes
//! derive from it, and a test compares it with the CRD: a new field of the CRD is one entry here, and its texts.

use crate::api::environment::{EnvironmentMode, EnvironmentType};
use crate::api::template::TemplateKind;
use crate::controllers::dashboard::texts::template::table_key;
use crate::runtime::plan::KindInfo;

/// The kind of Templates.
pub const TEMPLATES: KindInfo = KindInfo::of::<TemplateKind>();

/// A field of a Template, or of one of its environments.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name in the form, which is also the key of its texts.
    pub name: &'static str,
    /// The path in the spec, or in the environment.
    pub path: &'static [&'static str],
    /// The expected input.
    pub input: Input,
    /// The group of the form.
    pub group: Group,
    /// The machines that a change affects.
    pub reach: Reach,
    /// Whether the schema requires it.
    pub is_required: bool,
}

/// The input of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A line of text.
    Text,
    /// Several lines of text.
    Area,
    /// A whole number.
    Number,
    /// Whether it is so, with the value of an absent field.
    YesNo(bool),
    /// One of these values.
    OneOf(&'static [&'static str]),
    /// A duration, such as `30d`.
    Duration,
    /// A quantity, such as `4Gi`.
    Amount,
    /// An image.
    Image,
    /// A storage class.
    StorageClass,
    /// The name of another object.
    Reference,
    /// A text in each line.
    Lines,
    /// The labels of nodes.
    Labels,
    /// Extended resources, each with an amount.
    Resources,
    /// Shared volumes, each with its mount path.
    Mounts,
}

/// The machines that a change of a field affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Machines that exist, too.
    All,
    /// New machines. A virtual machine without a disk is created again by a restart, and all others stay as they are.
    New,
}

table_key! {
    /// A group of fields.
    pub enum Group {
        /// The texts that users see.
        Basics,
        /// When machines end.
        Cleanup,
        /// The access from outside.
        Access,
        /// The nodes of all environments.
        Placement,
        /// The course.
        Workspace,
        /// The deprecated fields with the same purpose as the cleanup.
        Older,
        /// The name, type and image of an environment.
        Machine,
        /// Its resources.
        Size,
        /// Its web interface.
        Web,
        /// Its volumes.
        Volumes,
        /// Its nodes.
        Nodes,
        /// The options of containers.
        Container,
    }
}

impl Group {
    /// The groups of the whole Template, in their order.
    pub const OF_TEMPLATE: [Self; 6] =
        [Self::Basics, Self::Cleanup, Self::Access, Self::Placement, Self::Workspace, Self::Older];
    /// The groups of an environment, in their order.
    pub const OF_ENVIRONMENT: [Self; 6] =
        [Self::Machine, Self::Size, Self::Web, Self::Volumes, Self::Nodes, Self::Container];

    /// Whether its fields are always visible, and not folded.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Basics | Self::Machine | Self::Size)
    }
}

const fn field(name: &'static str, path: &'static [&'static str], input: Input, group: Group) -> Field {
    Field { name, path, input, group, reach: Reach::New, is_required: false }
}

const fn of_all(name: &'static str, path: &'static [&'static str], input: Input, group: Group) -> Field {
    Field { reach: Reach::All, ..field(name, path, input, group) }
}

const fn required(field: Field) -> Field {
    Field { is_required: true, ..field }
}

/// The member of the spec with the environments.
pub const ENVIRONMENTS: &str = "environmentList";
/// The member of the spec with the course.
pub const WORKSPACE: &str = "workspace.crownlabs.polito.it/WorkspaceRef";

/// The fields of the spec, except the environments.
pub const SPEC: &[Field] = &[
    required(of_all("prettyName", &["prettyName"], Input::Text, Group::Basics)),
    required(of_all("description", &["description"], Input::Area, Group::Basics)),
    of_all("stopAfterInactivity", &["cleanup", "stopAfterInactivity"], Input::Duration, Group::Cleanup),
    of_all("deleteAfterInactivity", &["cleanup", "deleteAfterInactivity"], Input::Duration, Group::Cleanup),
    of_all("deleteAfterCreation", &["cleanup", "deleteAfterCreation"], Input::Duration, Group::Cleanup),
    of_all("allowPublicExposure", &["allowPublicExposure"], Input::YesNo(false), Group::Access),
    field("nodeSelector", &["nodeSelector"], Input::Labels, Group::Placement),
    of_all("workspace", &[WORKSPACE], Input::Reference, Group::Workspace),
    of_all("inactivityTimeout", &["inactivityTimeout"], Input::Duration, Group::Older),
    of_all("deleteAfter", &["deleteAfter"], Input::Duration, Group::Older),
];

/// The fields of an environment.
pub const ENVIRONMENT: &[Field] = &[
    required(field("name", &["name"], Input::Text, Group::Machine)),
    required(field(
        "environmentType",
        &["environmentType"],
        Input::OneOf(EnvironmentType::KNOWN),
        Group::Machine,
    )),
    required(field("image", &["image"], Input::Image, Group::Machine)),
    field("persistent", &["persistent"], Input::YesNo(false), Group::Machine),
    required(field("cpu", &["resources", "cpu"], Input::Number, Group::Size)),
    required(field(
        "reservedCPUPercentage",
        &["resources", "reservedCPUPercentage"],
        Input::Number,
        Group::Size,
    )),
    required(field("memory", &["resources", "memory"], Input::Amount, Group::Size)),
    field("disk", &["resources", "disk"], Input::Amount, Group::Size),
    field("storageClassName", &["storageClassName"], Input::StorageClass, Group::Size),
    field("otherResources", &["resources", "otherResources"], Input::Resources, Group::Size),
    field("guiEnabled", &["guiEnabled"], Input::YesNo(true), Group::Web),
    field("mode", &["mode"], Input::OneOf(EnvironmentMode::KNOWN), Group::Web),
    of_all("rewriteURL", &["rewriteURL"], Input::YesNo(false), Group::Web),
    field("disableControls", &["disableControls"], Input::YesNo(false), Group::Web),
    required(field("mountMyDriveVolume", &["mountMyDriveVolume"], Input::YesNo(true), Group::Volumes)),
    field("sharedVolumeMounts", &["sharedVolumeMounts"], Input::Mounts, Group::Volumes),
    field("nodes", &["nodeSelector"], Input::Labels, Group::Nodes),
    field(
        "sourceArchiveURL",
        &["containerStartupOptions", "sourceArchiveURL"],
        Input::Text,
        Group::Container,
    ),
    field("contentPath", &["containerStartupOptions", "contentPath"], Input::Text, Group::Container),
    field("startupArgs", &["containerStartupOptions", "startupArgs"], Input::Lines, Group::Container),
    field(
        "enforceWorkdir",
        &["containerStartupOptions", "enforceWorkdir"],
        Input::YesNo(false),
        Group::Container,
    ),
];
