//! Conditions, as Kubernetes' API conventions describe them ("Typical status properties").

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use macro_rules_attribute::apply;

use super::text::{Text, word};
use super::wire::{self, resource_part_without_default};

word!(
    /// A type of condition: one of the constants of this module.
    ConditionType
);

/// Declares condition types. Each has a description, a constant, its text and the kinds that have it. The kinds are
/// compiled only for the reference (`docs/reference/reasons.md`).
macro_rules! condition_types {
    ($($(#[doc = $meaning:literal])+ $name:ident = $text:literal on [$($kind:ident),+];)+) => {
        $($(#[doc = $meaning])+ pub const $name: ConditionType = ConditionType($text);)+

        /// All condition types: type, kinds, meaning.
        #[cfg(test)]
        pub const TYPES: &[(ConditionType, &[&str], &str)] =
            &[$(($name, &[$(stringify!($kind)),+], concat!($($meaning),+))),+];
    };
}

condition_types! {
    /// Whether the object is in the state that its spec asks for: an Instance can be used or is off, a volume can be
    /// mounted, the image of a snapshot is in the registry, a Tenant or Workspace is set up, the environments of a
    /// Template can start on this cluster. An Instance that is off because its spec asks for it is ready.
    READY = "Ready" on [Instance, InstanceSnapshot, PodConfig, SharedVolume, Template, Tenant, Workspace];
    /// Whether Instances can be made from the Template on any cluster: its spec has no fault.
    VALID = "Valid" on [Template];
    /// Whether everything that the object specifies is applied.
    RECONCILED = "Reconciled" on [Instance, PodConfig, SharedVolume, Tenant, Workspace];
    /// Whether the object cannot become ready until a user edits it or fixes an object that it refers to, such as an
    /// image; absent otherwise. Clients that wait for the object, such as Flux, can stop waiting. A fault of the
    /// object itself sets the condition to `True` at once. A problem elsewhere, such as a Template that does not
    /// exist, sets it to `True` only after `controllers.instance.stalledAfter`, because the missing object may still
    /// be applied. Until then it is `False`.
    STALLED = "Stalled" on [Instance, InstanceSnapshot, PodConfig, SharedVolume, Template, Tenant, Workspace];
    /// Whether a name that the object needs is taken by an object of another owner; absent if none is taken.
    NAME_CONFLICT = "NameConflict" on [Instance, PodConfig, SharedVolume, Tenant, Workspace];
    /// Whether the Instance names a Tenant other than the owner of its namespace; absent if they are the same.
    TENANT_MISMATCH = "TenantMismatch" on [Instance];
    /// Whether the account in Keycloak with the name of the Tenant belongs to another user; absent otherwise.
    ACCOUNT_EXISTS = "AccountExists" on [Tenant];
    /// Whether the requested ports can be reached; absent if no ports are requested.
    PUBLIC_EXPOSURE_READY = "PublicExposureReady" on [Instance];
    /// Whether the last query of the status URL of an exam succeeded.
    STATUS_CHECKED = "StatusChecked" on [Instance];
    /// Whether the content of an exam was uploaded; `Unknown` while the upload is in progress.
    SUBMITTED = "Submitted" on [Instance];
    /// Whether a running Instance is about to be stopped, or was stopped, because it is not used.
    INACTIVE = "Inactive" on [Instance];
    /// Whether a stopped Instance is about to be deleted because it is not started.
    ABANDONED = "Abandoned" on [Instance];
    /// Whether an Instance is about to be deleted because of its age.
    EXPIRING = "Expiring" on [Instance];
    /// Whether the Tenant is enrolled in all Workspaces that its spec names.
    ENROLLED = "Enrolled" on [Tenant];
    /// Whether the Tenant has SSH keys that cannot be used; absent if all can be used. The rest of the Tenant is set
    /// up regardless.
    INVALID_PUBLIC_KEYS = "InvalidPublicKeys" on [Tenant];
    /// Whether the personal volume of the Tenant can be mounted: `False` with the cause while it cannot, absent
    /// otherwise.
    MY_DRIVE_READY = "MyDriveReady" on [Tenant];
    /// Whether the spec asks for something that the configuration disables; absent if it does not. The rest of the
    /// object is applied.
    SWITCHED_OFF = "SwitchedOff" on [Instance, Template, Tenant];
    /// Whether the list may be out of date because the registry cannot be read.
    STALE = "Stale" on [ImageList];
    /// Whether the object is being deleted while it is in use: a volume that is mounted, or interfaces that nodes
    /// have not removed yet; absent if nothing uses it.
    DELETION_BLOCKED = "DeletionBlocked" on [PodConfig, SharedVolume];
}

/// One aspect of the state of an object.
#[apply(resource_part_without_default)]
pub struct Condition {
    /// Type of the condition in `CamelCase`, for example `Ready`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: Text,
    /// Whether the condition holds: `True`, `False` or `Unknown`.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: Text,
    /// Reason for the status as one word in `CamelCase`, for example `TemplateNotFound`.
    pub reason: Text,
    /// Explanation of the status as a sentence.
    #[schemars(length(max = 32768))]
    pub message: Text,
    /// Time of the last change of the status.
    #[schemars(schema_with = "wire::date_time")]
    pub last_transition_time: Time,
    /// The `metadata.generation` that the condition describes.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

impl Default for Condition {
    /// A condition without a type. Its status is `Unknown` since 1970.
    fn default() -> Self {
        Self {
            type_: Text::default(),
            status: "Unknown".into(),
            reason: Text::default(),
            message: Text::default(),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            observed_generation: None,
        }
    }
}

/// The schema of a list of conditions. It has one entry for each type, so that server-side apply merges
/// lists by type.
pub(crate) fn list_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": generator.subschema_for::<Condition>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
