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

/// Declares types of conditions: what each says, its constant and text, and the kinds that have it. The kinds are for the
/// reference (`docs/reference/reasons.md`) and not in the program.
macro_rules! condition_types {
    ($($(#[doc = $meaning:literal])+ $name:ident = $text:literal on [$($kind:ident),+];)+) => {
        $($(#[doc = $meaning])+ pub const $name: ConditionType = ConditionType($text);)+

        /// All of them: type, kinds, meaning.
        #[cfg(test)]
        pub const TYPES: &[(ConditionType, &[&str], &str)] =
            &[$(($name, &[$(stringify!($kind)),+], concat!($($meaning),+))),+];
    };
}

condition_types! {
    /// Whether the object is as its spec asks: an Instance usable, or off; a volume mountable; the image of a snapshot in
    /// the registry; a Tenant or Workspace set up; a Template one whose environments can start on this cluster. So who waits for
    /// an Instance does not wait for one that is to be off.
    READY = "Ready" on [Instance, InstanceSnapshot, PodConfig, SharedVolume, Template, Tenant, Workspace];
    /// Whether Instances can be made of the Template, on any cluster: its spec has no fault.
    VALID = "Valid" on [Template];
    /// Whether everything that the object specifies is enforced.
    RECONCILED = "Reconciled" on [Instance, PodConfig, SharedVolume, Tenant, Workspace];
    /// Whether the object will not become ready without somebody who edits it, or mends what it names, such as an image;
    /// absent when that is not so. Who waits for the object, as Flux does, need not wait any longer. `False` on an Instance
    /// whose cause has not lasted for `controllers.instance.stalledAfter` yet.
    STALLED = "Stalled" on [Instance, InstanceSnapshot, PodConfig, SharedVolume, Template, Tenant, Workspace];
    /// Whether an object of another owner has a name that is needed; absent when there is none.
    NAME_CONFLICT = "NameConflict" on [Instance, PodConfig, SharedVolume, Tenant, Workspace];
    /// Whether an Instance names another Tenant than its namespace belongs to; absent when it does not.
    TENANT_MISMATCH = "TenantMismatch" on [Instance];
    /// Whether Keycloak has an account of the Tenant's name that is somebody else's; absent when it has none.
    ACCOUNT_EXISTS = "AccountExists" on [Tenant];
    /// Whether the requested ports can be reached; absent where none are requested.
    PUBLIC_EXPOSURE_READY = "PublicExposureReady" on [Instance];
    /// Whether the last query of the status URL of an exam has succeeded.
    STATUS_CHECKED = "StatusChecked" on [Instance];
    /// Whether the content of an exam was uploaded; `Unknown` while that is under way.
    SUBMITTED = "Submitted" on [Instance];
    /// Whether a running Instance is about to be stopped because nobody uses it, or was.
    INACTIVE = "Inactive" on [Instance];
    /// Whether a stopped Instance is about to be deleted because nobody starts it.
    ABANDONED = "Abandoned" on [Instance];
    /// Whether an Instance is about to be deleted for its age.
    EXPIRING = "Expiring" on [Instance];
    /// Whether the Tenant is enrolled in all Workspaces that its spec names.
    ENROLLED = "Enrolled" on [Tenant];
    /// Whether the Tenant has SSH keys that cannot be used; absent if it has none. Everything else is made all the same.
    INVALID_PUBLIC_KEYS = "InvalidPublicKeys" on [Tenant];
    /// Whether the list may differ from what its registry offers now, because that cannot be read.
    STALE = "Stale" on [ImageList];
    /// Whether something uses what is being deleted: a volume that is mounted, interfaces that nodes still remove; absent
    /// where nothing does.
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
    /// Time at which the status last changed.
    #[schemars(schema_with = "wire::date_time")]
    pub last_transition_time: Time,
    /// Value of `metadata.generation` for which the condition was set.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

impl Default for Condition {
    /// A condition without type, whose status is `Unknown` since 1970.
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
