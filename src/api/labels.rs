//! Keys of labels, annotations and finalizers, and their constant values.

use std::collections::BTreeMap;

use super::instance::Instance;
use super::names::label_sized;

/// The prefix of our keys.
pub const PREFIX: &str = "crownlabs.polito.it/";

// Labels.

/// On Tenants, Workspaces and namespaces: the default key of the daemon's selector.
pub const OPERATOR_SELECTOR: &str = "crownlabs.polito.it/operator-selector";
/// On every object that we create: the control loop that manages it.
pub const MANAGED_BY: &str = "crownlabs.polito.it/managed-by";
/// Value of [`MANAGED_BY`]: the loops of instances, snapshots and shared volumes.
pub const MANAGED_BY_INSTANCE: &str = "instance";
/// Value of [`MANAGED_BY`]: the tenant loop.
pub const MANAGED_BY_TENANT: &str = "tenant";
/// Value of [`MANAGED_BY`]: the workspace loop.
pub const MANAGED_BY_WORKSPACE: &str = "workspace";
/// On the children of an Instance: the name of the Instance, not canonical.
pub const INSTANCE: &str = "crownlabs.polito.it/instance";
/// On an Instance and its children: the name of the Template, without its namespace.
pub const TEMPLATE: &str = "crownlabs.polito.it/template";
/// On the children of an Instance and the objects of a sandbox: the name of the Tenant.
pub const TENANT: &str = "crownlabs.polito.it/tenant";
/// On an Instance: the name of the Workspace of its Template.
pub const WORKSPACE: &str = "crownlabs.polito.it/workspace";
/// On the children of an Instance with several environments: the name of the environment.
pub const ENVIRONMENT: &str = "crownlabs.polito.it/environment";
/// On an Instance: the environment whose content was last uploaded.
pub const ENVIRONMENT_NAME: &str = "crownlabs.polito.it/environment-name";
/// On an Instance: whether any of its environments is persistent, `true` or `false`.
pub const PERSISTENT: &str = "crownlabs.polito.it/persistent";
/// On an Instance: whether any of its environments has a node selector that is not empty, `true` or `false`.
pub const HAS_NODE_SELECTOR: &str = "crownlabs.polito.it/has-node-selector";
/// On some children of an Instance: their purpose.
pub const COMPONENT: &str = "crownlabs.polito.it/component";
/// Value of [`COMPONENT`]: the Service of a public exposure.
pub const COMPONENT_PUBLIC_EXPOSURE: &str = "pe";
/// Value of [`COMPONENT`]: the Job that uploads the content.
pub const COMPONENT_SUBMITTER: &str = "submitter";
/// Value of [`COMPONENT`]: the OAuth2 proxy of the Instance.
pub const COMPONENT_OAUTH2_PROXY: &str = "oauth2-proxy";
/// On the pods of the OAuth2 proxy of an Instance: the name of the Instance. They do not have [`INSTANCE`], which the
/// pods of its environments have.
pub const OAUTH2_PROXY: &str = "crownlabs.polito.it/oauth2-proxy";
/// On the pods of an exam whose network is restricted: `true`. The policies of the personal namespace do not select them.
pub const EXAM: &str = "crownlabs.polito.it/exam";
/// On the Service of a `Container` environment: `true`, for the selector of a `ServiceMonitor`.
pub const METRICS_ENABLED: &str = "crownlabs.polito.it/metrics-enabled";
/// On a namespace and the objects of a sandbox: the purpose of the namespace.
pub const TYPE: &str = "crownlabs.polito.it/type";
/// Value of [`TYPE`]: the personal namespace of a Tenant.
pub const TYPE_TENANT: &str = "tenant";
/// Value of [`TYPE`]: the namespace of a Workspace.
pub const TYPE_WORKSPACE: &str = "workspace";
/// Value of [`TYPE`]: the sandbox namespace of a Tenant.
pub const TYPE_SANDBOX: &str = "sandbox";
/// On a namespace: the Pod Security Standard that is enforced for its pods.
pub const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";
/// On a personal namespace: the name of the Tenant, not canonical.
pub const NAME: &str = "crownlabs.polito.it/name";
/// On a personal namespace: `true`, for the external replicator of Secrets.
pub const RESOURCES_REPLICATION: &str = "crownlabs.polito.it/instance-resources-replication";
/// On namespaces whose pods may connect to Instances: `true`, set by administrators.
pub const ALLOW_INSTANCE_ACCESS: &str = "crownlabs.polito.it/allow-instance-access";
/// On a `PersistentVolumeClaim`: its purpose.
pub const VOLUME_TYPE: &str = "crownlabs.polito.it/volume-type";
/// Value of [`VOLUME_TYPE`]: a shared volume.
pub const VOLUME_TYPE_SHARED_VOLUME: &str = "sharedvolume";
/// Value of [`VOLUME_TYPE`]: a mirror of a claim in another namespace.
pub const VOLUME_TYPE_MIRROR: &str = "mirror";
/// On the `PersistentVolume` of a mirror: the volume of the origin.
pub const MIRRORED_VOLUME: &str = "crownlabs.polito.it/mirrored-pv";
/// On the `PersistentVolume` of a mirror: the name of the claim of the origin.
pub const MIRRORED_CLAIM: &str = "crownlabs.polito.it/mirrored-pvc-name";
/// On the `PersistentVolume` of a mirror: the namespace of the claim of the origin.
pub const MIRRORED_NAMESPACE: &str = "crownlabs.polito.it/mirrored-pvc-namespace";
/// On the claim of a personal or shared volume: whether the Job that prepares its folder is complete.
pub const VOLUME_PROVISIONING: &str = "crownlabs.polito.it/volume-provisioning";
/// Value of [`VOLUME_PROVISIONING`]: the Job is not complete.
pub const PROVISIONING_PENDING: &str = "pending";
/// Value of [`VOLUME_PROVISIONING`]: the Job is complete.
pub const PROVISIONING_COMPLETED: &str = "completed";
/// On a Tenant: the prefix of the keys that hold its roles in Workspaces, see [`workspace_role`].
pub const WORKSPACE_PREFIX: &str = "crownlabs.polito.it/workspace-";
/// On a Tenant that is in no Workspace except the base Workspaces: `true`.
pub const NO_WORKSPACES: &str = "crownlabs.polito.it/no-workspaces";
/// On a Tenant: its first name, without the characters that labels do not allow.
pub const FIRST_NAME: &str = "crownlabs.polito.it/first-name";
/// On a Tenant: its last name, without the characters that labels do not allow.
pub const LAST_NAME: &str = "crownlabs.polito.it/last-name";
/// On a Workspace: `immediate`, `withApproval` or `disabled`.
pub const AUTO_ENROLL: &str = "crownlabs.polito.it/autoenroll";
/// On an Instance: `true` while its status check is queried, `false` once it is terminated.
pub const WATCH_FOR_TERMINATION: &str = "crownlabs.polito.it/watch-for-instance-termination";
/// On an Instance: `true` while its content has to be uploaded, then `false`.
pub const SUBMISSION_REQUESTED: &str = "crownlabs.polito.it/instance-submission-requested";
/// On an Instance: `true` once its content has been uploaded.
pub const SUBMISSION_COMPLETED: &str = "crownlabs.polito.it/instance-submission-completed";
/// On a namespace: `true` if its Instances are never stopped for inactivity; set by administrators.
pub const INACTIVITY_IGNORE: &str = "crownlabs.polito.it/instance-inactivity-ignore";
/// On a namespace: `true` if its Instances are never deleted for their age; set by administrators.
pub const EXPIRATION_IGNORE: &str = "crownlabs.polito.it/expiration-ignore";

/// The key of the label on a Tenant that has its role in a Workspace as the value. `None` if the key would be
/// invalid: Kubernetes allows 63 characters after the slash, so the name has at most 53 characters.
pub fn workspace_role(workspace: &str) -> Option<String> {
    let key = format!("{WORKSPACE_PREFIX}{workspace}");
    super::names::check_label_value(key.strip_prefix(PREFIX)?).is_ok().then_some(key)
}

/// The labels of the objects of an Instance. They select its pods.
pub fn of_instance(instance: &Instance) -> BTreeMap<String, String> {
    let spec = &instance.spec;
    let names =
        [(INSTANCE, instance.name()), (TEMPLATE, &spec.template_ref.name), (TENANT, &spec.tenant_ref.name)];
    names.map(|(key, name)| (key.to_owned(), label_sized(name, ""))).into()
}

// Annotations. Times are in RFC 3339.

/// On an Instance: the number of warnings about its inactivity that were sent.
pub const ALERTS_SENT: &str = "crownlabs.polito.it/number-alerts-sent";
/// On a Template: the number of warnings that its Instances get, instead of the configured one.
pub const CUSTOM_NUMBER_ALERTS: &str = "crownlabs.polito.it/custom-number-alerts";
/// On an Instance: the time of its last use.
pub const LAST_ACTIVITY: &str = "crownlabs.polito.it/last-activity";
/// On an Instance: the time of the last request to keep it, which counts as a use.
pub const KEPT_AT: &str = "crownlabs.polito.it/kept-at";
/// On an Instance: the time of the last request to restart it. On the pods of its Deployment: the time of their restart.
pub const RESTARTED_AT: &str = "crownlabs.polito.it/restarted-at";
/// On an Instance: the action on a class that last created, started, stopped or collected it. The action does not change
/// it again, and neither does an older one.
pub const CLASS_ACTION: &str = "crownlabs.polito.it/class-action";
/// On an Instance: the people with whom its owner shares it, see [`super::sharing`].
pub const SHARED_WITH: &str = "crownlabs.polito.it/shared-with";
/// On an Instance: the time of the last warning about its inactivity.
pub const LAST_NOTIFICATION: &str = "crownlabs.polito.it/last-notification-timestamp";
/// On an Instance: whether it was running when it was last checked.
pub const LAST_RUNNING: &str = "crownlabs.polito.it/last-running";
/// On a stopped Instance: when it was stopped.
pub const LAST_POWERED_OFF: &str = "crownlabs.polito.it/last-powered-off-timestamp";
/// On an Instance: `true` once the user was warned that it expires; the older form of [`EXPIRY_WARNED_AT`].
pub const EXPIRY_WARNED: &str = "crownlabs.polito.it/sent-expiring-warning-notification";
/// On an Instance: when the user was warned that it expires.
pub const EXPIRY_WARNED_AT: &str = "crownlabs.polito.it/expiring-warning-notification-timestamp";
/// On an Instance: the prefix of the keys for the time when the last mail of a kind was accepted. The webhook allows
/// only this daemon and administrators to write them.
pub const MAILED_PREFIX: &str = "crownlabs.polito.it/mailed-";
/// On an Instance: the time of the upload whose receipts were sent by mail. It has this prefix.
pub const MAILED_RECEIPT: &str = "crownlabs.polito.it/mailed-submission-receipt";
/// On a Tenant: `true` if the account in Keycloak with the name of the Tenant belongs to the Tenant although the
/// e-mail address differs; set by administrators.
pub const ADOPT_ACCOUNT: &str = "crownlabs.polito.it/adopt-account";
/// On a Tenant: the prefix of the keys that hold when a session of the dashboard was ended by a logout. The rest of a
/// key is a digest of the session.
pub const ENDED_SESSION_PREFIX: &str = "crownlabs.polito.it/ended-session-";
/// On the Deployments and cloud-init Secrets of Instances: the shared volumes that they mount, as `namespace/name,…`.
/// These volumes are not deleted while they are listed.
pub const SHARED_VOLUMES: &str = "crownlabs.polito.it/shared-volumes";
/// On a `VirtualMachine` that is stopped: the run strategy that it is started with again.
pub const RUN_STRATEGY: &str = "crownlabs.polito.it/run-strategy";
/// On the Deployment of an OAuth2 proxy: the digest of the last pod template that was applied.
pub const POD_TEMPLATE: &str = "crownlabs.polito.it/pod-template";
/// On the Ingress or `HTTPRoute` of an environment with a host name of its own: that host name.
pub const MACHINE_HOST: &str = "crownlabs.polito.it/machine-host";
/// On the Ingress of an environment: `true` if this daemon has set its annotations for uploads of any size.
pub const LARGE_UPLOADS: &str = "crownlabs.polito.it/large-uploads";
/// On the policy of an `HTTPRoute`: the digest of the spec that was last written.
pub const POLICY_DIGEST: &str = "crownlabs.polito.it/policy-digest";
/// On the policy of an `HTTPRoute` that the Gateway has not accepted: whether the route exists, and since when.
pub const ROUTE_STATE: &str = "crownlabs.polito.it/route-state";
/// On a snapshot that has failed: the `metadata.generation` that failed.
pub const SNAPSHOT_OBSERVED_GENERATION: &str = "crownlabs.polito.it/snapshot-observed-generation";
/// On the Job that uploads the content of an Instance: the number of the attempt, counted from 1.
pub const SUBMISSION_ATTEMPT: &str = "crownlabs.polito.it/submission-attempt";

/// On Tenants, Workspaces and `SharedVolume`s: the selector of the daemon that added the finalizer and will remove
/// it, even if the labels of the object change; and the Lease of that daemon, if it takes part in an election.
pub const FINALIZED_BY: &str = "crownlabs.polito.it/finalized-by";

/// On the Lease of the leader election: the selector of the daemon that holds it. On the webhook
/// configurations: the selector of the daemon that answers them.
pub const LEASE_SELECTOR: &str = "crownlabs.polito.it/selector";

// Finalizers.

/// On Tenants and Workspaces: kept until their objects, and their accounts or roles in Keycloak, are removed.
pub const TENANT_FINALIZER: &str = "crownlabs.polito.it/tenant-operator";
/// On a `SharedVolume` that was provisioned: kept until nothing mounts it.
pub const SHARED_VOLUME_FINALIZER: &str = "crownlabs.polito.it/shvolctrl-volume-protection";

/// Formats labels as a label selector: `key=value,key=value`.
pub fn selector_string(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// Parses the labels from a text that [`selector_string`] wrote; `None` if the text is not such a selector.
pub fn selector_labels(text: &str) -> Option<BTreeMap<String, String>> {
    let pairs = text.split(',').map(|pair| pair.split_once('='));
    let owned = |pair: Option<(&str, &str)>| pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pairs.map(owned).collect::<Option<BTreeMap<_, _>>>().filter(|labels| !labels.contains_key(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_read_as_it_is_written() {
        let labels = BTreeMap::from([("a.org/b", "c"), ("d", "")]);
        let labels: BTreeMap<_, _> =
            labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let text = selector_string(&labels);
        assert_eq!((text.as_str(), selector_labels(&text)), ("a.org/b=c,d=", Some(labels)));
        for text in ["", "a", "=b", "a=b,", "a=b,c"] {
            assert_eq!(selector_labels(text), None, "{text}");
        }
    }

    #[test]
    fn a_role_key_that_is_too_long_for_kubernetes_is_not_used() {
        let longest = "a".repeat(53);
        assert_eq!(workspace_role("tea").as_deref(), Some("crownlabs.polito.it/workspace-tea"));
        assert_eq!(workspace_role("tea.v2").as_deref(), Some("crownlabs.polito.it/workspace-tea.v2"));
        assert_eq!(workspace_role(&longest), Some(format!("{WORKSPACE_PREFIX}{longest}")));
        assert_eq!(workspace_role(&"a".repeat(54)), None);
    }
}
