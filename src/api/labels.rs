//! Keys of labels, annotations and finalizers, and their values where these are fixed (01 §7).

use std::collections::BTreeMap;

/// What all our keys begin with.
pub const PREFIX: &str = "crownlabs.polito.it/";

// Labels (01 §7.1).

/// Which loop made an object.
pub const MANAGED_BY: &str = "crownlabs.polito.it/managed-by";
/// [`MANAGED_BY`]: the loops of instances, snapshots and shared volumes.
pub const MANAGED_BY_INSTANCE: &str = "instance";
/// [`MANAGED_BY`]: the tenant loop.
pub const MANAGED_BY_TENANT: &str = "tenant";
/// [`MANAGED_BY`]: the workspace loop.
pub const MANAGED_BY_WORKSPACE: &str = "workspace";
/// [`MANAGED_BY`]: shared volumes of newer clusters; never written, accepted on read.
pub const MANAGED_BY_SHARED_VOLUME: &str = "sharedvolume";
/// The Instance that an object belongs to: its name with the dots.
pub const INSTANCE: &str = "crownlabs.polito.it/instance";
/// The Template of an Instance and of its objects: a name without namespace.
pub const TEMPLATE: &str = "crownlabs.polito.it/template";
/// The Tenant of an object.
pub const TENANT: &str = "crownlabs.polito.it/tenant";
/// The Workspace of an Instance.
pub const WORKSPACE: &str = "crownlabs.polito.it/workspace";
/// The environment of an object, where an Instance has several.
pub const ENVIRONMENT: &str = "crownlabs.polito.it/environment";
/// The environment whose content was last asked for, on an Instance.
pub const ENVIRONMENT_NAME: &str = "crownlabs.polito.it/environment-name";
/// Whether any environment of an Instance is persistent: `true` or `false`.
pub const PERSISTENT: &str = "crownlabs.polito.it/persistent";
/// Whether any environment of an Instance runs on chosen nodes only: `true` or `false`.
pub const HAS_NODE_SELECTOR: &str = "crownlabs.polito.it/has-node-selector";
/// The part of an Instance that an object is.
pub const COMPONENT: &str = "crownlabs.polito.it/component";
/// [`COMPONENT`]: the Service on a public address.
pub const COMPONENT_PUBLIC_EXPOSURE: &str = "pe";
/// [`COMPONENT`]: the Job that sends the content.
pub const COMPONENT_SUBMITTER: &str = "submitter";
/// On the Service of a `Container` environment: `true`, read by monitoring.
pub const METRICS_ENABLED: &str = "crownlabs.polito.it/metrics-enabled";
/// What a namespace is for.
pub const TYPE: &str = "crownlabs.polito.it/type";
/// [`TYPE`]: the namespace of a tenant.
pub const TYPE_TENANT: &str = "tenant";
/// [`TYPE`]: the namespace of a workspace.
pub const TYPE_WORKSPACE: &str = "workspace";
/// [`TYPE`]: the namespace in which a tenant tries Kubernetes.
pub const TYPE_SANDBOX: &str = "sandbox";
/// On a tenant's namespace: the Tenant's name with the dots.
pub const NAME: &str = "crownlabs.polito.it/name";
/// On a tenant's namespace: `true`, read by the replicator of Secrets.
pub const RESOURCES_REPLICATION: &str = "crownlabs.polito.it/instance-resources-replication";
/// On namespaces whose pods may reach instances: `true`, set by administrators.
pub const ALLOW_INSTANCE_ACCESS: &str = "crownlabs.polito.it/allow-instance-access";
/// What a claim on storage is for.
pub const VOLUME_TYPE: &str = "crownlabs.polito.it/volume-type";
/// [`VOLUME_TYPE`]: a shared volume.
pub const VOLUME_TYPE_SHARED_VOLUME: &str = "sharedvolume";
/// [`VOLUME_TYPE`]: a copy of a claim in another namespace.
pub const VOLUME_TYPE_MIRROR: &str = "mirror";
/// Whether the Job that prepares a claim is done.
pub const VOLUME_PROVISIONING: &str = "crownlabs.polito.it/volume-provisioning";
/// [`VOLUME_PROVISIONING`]: not yet.
pub const PROVISIONING_PENDING: &str = "pending";
/// [`VOLUME_PROVISIONING`]: it is.
pub const PROVISIONING_COMPLETED: &str = "completed";
/// Followed by a Workspace's name: the role of a Tenant in it, see [`workspace_role`].
pub const WORKSPACE_PREFIX: &str = "crownlabs.polito.it/workspace-";
/// On a Tenant without any Workspace: `true`.
pub const NO_WORKSPACES: &str = "crownlabs.polito.it/no-workspaces";
/// The first name of a Tenant, in the characters that labels allow.
pub const FIRST_NAME: &str = "crownlabs.polito.it/first-name";
/// The last name of a Tenant, in the characters that labels allow.
pub const LAST_NAME: &str = "crownlabs.polito.it/last-name";
/// On a Workspace: `immediate`, `withApproval` or `disabled`.
pub const AUTO_ENROLL: &str = "crownlabs.polito.it/autoenroll";
/// On an Instance: `true` while its status check is to be asked, then `false`.
pub const WATCH_FOR_TERMINATION: &str = "crownlabs.polito.it/watch-for-instance-termination";
/// On an Instance: `true` while its content is to be sent, then `false`.
pub const SUBMISSION_REQUESTED: &str = "crownlabs.polito.it/instance-submission-requested";
/// On an Instance: `true` once its content was sent.
pub const SUBMISSION_COMPLETED: &str = "crownlabs.polito.it/instance-submission-completed";
/// On a namespace: `true` if its Instances may be idle for ever.
pub const INACTIVITY_IGNORE: &str = "crownlabs.polito.it/instance-inactivity-ignore";
/// On a namespace: `true` if its Instances live for ever.
pub const EXPIRATION_IGNORE: &str = "crownlabs.polito.it/expiration-ignore";
/// On a copied volume: its own name.
pub const MIRRORED_PV: &str = "crownlabs.polito.it/mirrored-pv";
/// On a copied volume: the name of the original claim.
pub const MIRRORED_PVC_NAME: &str = "crownlabs.polito.it/mirrored-pvc-name";
/// On a copied volume: the namespace of the original claim.
pub const MIRRORED_PVC_NAMESPACE: &str = "crownlabs.polito.it/mirrored-pvc-namespace";

/// The key of the label that holds a Tenant's role in a Workspace. The value of the label is the
/// role; keys of which the part after the slash is longer than 63 characters are refused by
/// Kubernetes (01 §8.4), so the result is `None` for those.
#[must_use]
pub fn workspace_role(workspace: &str) -> Option<String> {
    let key = format!("{WORKSPACE_PREFIX}{workspace}");
    super::names::LabelValue::new(key.strip_prefix(PREFIX)?).is_ok().then_some(key)
}

// Annotations (01 §7.2).

/// On an Instance: how many warnings about its idleness were sent.
pub const ALERTS_SENT: &str = "crownlabs.polito.it/number-alerts-sent";
/// On a Template: how many warnings its Instances get, instead of the configured number.
pub const CUSTOM_NUMBER_ALERTS: &str = "crownlabs.polito.it/custom-number-alerts";
/// On an Instance: when it was last used.
pub const LAST_ACTIVITY: &str = "crownlabs.polito.it/last-activity";
/// On an Instance: when its use was last looked at.
pub const LAST_ACTIVITY_CHECK: &str = "crownlabs.polito.it/last-activity-check-timestamp";
/// On an Instance: when the last warning about its idleness was sent.
pub const LAST_NOTIFICATION: &str = "crownlabs.polito.it/last-notification-timestamp";
/// On an Instance: whether it ran at the last look.
pub const LAST_RUNNING: &str = "crownlabs.polito.it/last-running";
/// On an Instance: when it was last stopped.
pub const LAST_POWERED_OFF: &str = "crownlabs.polito.it/last-powered-off-timestamp";
/// On an Instance: `true` once the user was warned of its expiry (older form).
pub const EXPIRY_WARNED: &str = "crownlabs.polito.it/sent-expiring-warning-notification";
/// On an Instance: when the user was warned of its expiry.
pub const EXPIRY_WARNED_AT: &str = "crownlabs.polito.it/expiring-warning-notification-timestamp";
/// On a stopped Instance: when the last warning of its deletion was sent.
pub const LAST_DESTRUCTION_NOTIFICATION: &str = "crownlabs.polito.it/last-destruction-notification-timestamp";
/// On a stopped Instance: how many warnings of its deletion were sent.
pub const DESTRUCTION_ALERTS_SENT: &str = "crownlabs.polito.it/destruction-alerts-sent";
/// On an Instance: how long it may stay stopped.
pub const DELETE_AFTER_INACTIVITY: &str = "crownlabs.polito.it/delete-after-inactivity";
/// On the workloads and cloud-init Secrets of Instances: the shared volumes that they mount, as
/// `namespace/name,…`.
pub const SHARED_VOLUMES: &str = "crownlabs.polito.it/shared-volumes";
/// On a snapshot that failed: the generation for which it did.
pub const SNAPSHOT_OBSERVED_GENERATION: &str = "crownlabs.polito.it/snapshot-observed-generation";
/// On a claim on storage: the labels of the namespaces that may have a copy of it.
pub const MIRROR_TARGET_LABELS: &str = "pmp.crownlabs.polito.it/required-target-ns-labels";

/// On Tenants and Workspaces: the selector of the daemon that has put [`TENANT_FINALIZER`] on them, and
/// will take it off, whatever labels they carry by then.
pub const FINALIZED_BY: &str = "crownlabs.polito.it/finalized-by";

// Finalizers (01 §7.3).

/// On Tenants and Workspaces.
pub const TENANT_FINALIZER: &str = "crownlabs.polito.it/tenant-operator";
/// On a `SharedVolume` once it is provisioned.
pub const SHARED_VOLUME_FINALIZER: &str = "crownlabs.polito.it/shvolctrl-volume-protection";

/// Labels as a label selector: `key=value,key=value`.
pub fn selector_string(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_role_fits_kubernetes_or_is_none() {
        let longest = "a".repeat(53);
        assert_eq!(workspace_role("tea").as_deref(), Some("crownlabs.polito.it/workspace-tea"));
        assert_eq!(workspace_role("tea.v2").as_deref(), Some("crownlabs.polito.it/workspace-tea.v2"));
        assert_eq!(workspace_role(&longest), Some(format!("{WORKSPACE_PREFIX}{longest}")));
        assert_eq!(workspace_role(&"a".repeat(54)), None);
    }
}
