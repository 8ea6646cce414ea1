//! Reasons that several kinds share, and the reasons of Tenants, Workspaces, shared volumes and the automation.

use super::{Reason, reasons};

reasons! { COURSES, COURSES_ROWS;
    /// The object is in the state that its spec asks for.
    READY = "Ready" on [Instance, SharedVolume, Template, Tenant, Workspace] in [Ready] by Nobody: "Nothing.";
    /// All objects are up to date.
    RECONCILED = "Reconciled" on [Instance, PodConfig, SharedVolume, Tenant, Workspace] in [Reconciled] by Nobody: "Nothing.";
    /// The object is being set up.
    PENDING = "Pending" on [SharedVolume, Tenant, Workspace] in [Ready] by Nobody: "Wait.";
    /// A name that the object needs is taken by an object of another owner. That object is not changed.
    NAME_CONFLICT = "NameConflict" on [PodConfig, SharedVolume, Workspace] in [Ready, Reconciled, Stalled, NameConflict, Event]
        on [Tenant] in [Ready, Reconciled, Stalled, NameConflict, MyDriveReady, Event]
        on [Instance] in [Reconciled, Stalled, NameConflict, PublicExposureReady, Submitted, Event] by Teacher, Administrator:
        "The message names the object and its owner. Delete one of the two, and create it again with another name.";
    /// The Instance names a Tenant other than the owner of its namespace. No objects are created for it, and existing
    /// objects stay.
    TENANT_MISMATCH = "TenantMismatch" on [Instance]
        in [Reconciled, Stalled, TenantMismatch, Submitted, Event] by Student, Administrator:
        "Create the Instance in the namespace of its Tenant.";
    /// The API server rejected a write.
    ENFORCEMENT_FAILED = "EnforcementFailed" on [PodConfig, SharedVolume, Workspace]
        in [Ready, Reconciled, Stalled, Event] on [Tenant] in [Ready, Reconciled, Stalled, MyDriveReady, Event] by Administrator:
        "The message comes from the API server: a missing permission, an admission rule, or an invalid object.";
    /// The spec cannot be read.
    INVALID_SPEC = "InvalidSpec" on [PodConfig, SharedVolume, Workspace] in [Ready, Reconciled, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "The message names the field. Correct it. Objects that were stored before the CRD can be edited, too.";
    /// The name is too long, or has characters that are not allowed in the name of its namespace.
    INVALID_NAME = "InvalidName" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] by Student, Administrator:
        "Delete the object and create it again with a name that the message allows.";
    /// An amount cannot be parsed, or is too small.
    INVALID_QUANTITY = "InvalidQuantity" on [Tenant] in [Ready, Reconciled, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "The message names the field of the Template, the Workspace or the Tenant. Write an amount such as `500m` or `4Gi`.";
    /// A duration in the Template is invalid. The Instance is not stopped or deleted automatically.
    INVALID_DURATION = "InvalidDuration" on [Instance] in [Inactive, Expiring] by Teacher:
        "Correct the duration in the Template: a number with `m`, `h` or `d`, or `never`.";
    /// Some SSH keys are invalid and are left out. The rest of the Tenant is set up.
    INVALID_PUBLIC_KEY = "InvalidPublicKey" on [Tenant] in [InvalidPublicKeys, Event]
        on [Instance] in [Reconciled, Event] by Student:
        "Correct `spec.publicKeys` of the Tenant: one OpenSSH key in each entry, without options before it.";
    /// The spec asks for something that the configuration disables.
    SWITCHED_OFF = "SwitchedOff" on [Instance, Template, Tenant] in [SwitchedOff] by Administrator:
        "The message names the field and the key of the configuration: set the key to `true`, or remove the field.";
    /// The Template does not exist.
    TEMPLATE_NOT_FOUND = "TemplateNotFound" on [Instance] in [Reconciled, Stalled, Submitted, Event] by Teacher:
        "Create the Template again, or delete the Instance.";
    /// The Tenant does not exist, or the namespace belongs to another Tenant.
    TENANT_NOT_FOUND = "TenantNotFound" on [Instance]
        in [Reconciled, Stalled, Inactive, Abandoned, Expiring, Event] by Administrator:
        "Create the Tenant again, or delete the Instance.";
    /// The spec of the Template has no fault.
    VALID = "Valid" on [Template] in [Valid] by Nobody: "Nothing.";
    /// One Instance of the Template needs more than the quota that its Workspace gives to a Tenant, so no user can
    /// start one.
    EXCEEDS_QUOTA = "ExceedsQuota" on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "Lower the resources in the Template, or raise the quota of the Workspace (`spec.quota`).";
    /// A storage class does not exist: the class that the Template or the configuration names, or the default class
    /// if they name none.
    STORAGE_CLASS_NOT_FOUND = "StorageClassNotFound" on [Template] in [Ready, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] on [SharedVolume] in [Ready, Reconciled, Stalled, Event]
        on [Tenant] in [Reconciled, Stalled, MyDriveReady, Event] by Teacher, Administrator:
        "Create the class, or mark one as the default. Or correct `storageClassName` in the Template or, for volumes on NFS, the class \
         in the configuration, and delete the claim.";
    /// No node can run an environment of the Template, even without other workloads.
    NO_NODE = "NoNode" on [Template] in [Ready, Stalled, Event] on [Instance] in [Reconciled, Stalled, Event]
        by Teacher, Administrator:
        "The message says what is missing: correct the node selector or the resources in the Template, add a node, or name the \
         pool that an autoscaler enlarges in `controllers.template.nodePools`.";
    /// No existing node can run an environment of the Template, but a pool of `controllers.template.nodePools` can.
    /// The environment starts after the autoscaler has added a node.
    NODE_ON_DEMAND = "NodeOnDemand" on [Template] in [Ready, Event] on [Instance] in [Reconciled, Event] by Nobody:
        "Start the machine, and wait.";
    /// The cluster has no Ingress class, so the web interfaces of Instances cannot be reached.
    INGRESS_CLASS_MISSING = "IngressClassMissing" on [Template] in [Ready, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] by Administrator:
        "Install an Ingress controller, or use the Gateway API (`controllers.instance.gatewayApi`).";
    /// A Gateway of `controllers.instance.gatewayApi.parentRefs` does not exist, so the web interfaces of Instances
    /// cannot be reached.
    GATEWAY_MISSING = "GatewayMissing" on [Template] in [Ready, Stalled, Event] on [Instance] in [Reconciled, Stalled, Event]
        by Administrator: "Create the Gateway, or correct `parentRefs`.";
    /// The import Secret of CDI is missing: in the namespace of the Instance, or, for a Template, in every namespace.
    IMPORT_SECRET_MISSING = "ImportSecretMissing" on [Template] in [Ready, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] by Administrator:
        "Create the Secret `registry-credentials-cdi` in each personal namespace: see docs/installing.md.";
    /// The Template cannot be read, has no environment, has two environments with the same name, or has an
    /// environment with an invalid name or type.
    INVALID_TEMPLATE = "InvalidTemplate" on [Instance] in [Reconciled, Stalled, Submitted, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "The message names the fault: correct the Template.";
    /// The Workspace cannot be read. The quotas of its Tenants are not reduced until it can be read.
    INVALID_WORKSPACE = "InvalidWorkspace" on [Tenant] in [Ready, Reconciled, Stalled, Event] by Teacher:
        "The message names the field: correct the Workspace.";
    /// The Tenant cannot be read. Existing objects stay as they are.
    INVALID_TENANT = "InvalidTenant" on [Tenant] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "The message names the field: correct the Tenant.";
    /// A part of the quota of the Workspace cannot be parsed, or names a resource that a `ResourceQuota` cannot
    /// limit. The rest of the quota applies.
    INVALID_QUOTA = "InvalidQuota" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Teacher, Administrator:
        "The message names the field: correct `spec.quota` of the Workspace, or `spec.personalWorkspace` of the Tenant.";
    /// `spec.autoEnroll` has an unknown value. Candidates stay candidates.
    INVALID_AUTO_ENROLL = "InvalidAutoEnroll" on [Workspace] in [Ready, Reconciled, Stalled, Event] by Teacher:
        "Write `immediate`, `withApproval`, or leave it out.";
    /// A namespace of the object is being deleted. It is created again afterwards.
    NAMESPACE_TERMINATING = "NamespaceTerminating" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Wait. If it lasts, `kubectl describe namespace` lists the objects that block the deletion.";
    /// A child of the object, or of a deleted object of the same name, has been in deletion for more than a minute. It
    /// is created again afterwards.
    OBJECT_TERMINATING = "ObjectTerminating" on [PodConfig, SharedVolume, Workspace] in [Ready, Reconciled, Stalled, Event]
        on [Tenant] in [Ready, Reconciled, Stalled, MyDriveReady, Event]
        on [Instance] in [Reconciled, Stalled, Event] by Administrator:
        "The message names the object and its finalizers: check whether the controllers that remove them are running.";
    /// A Workspace does not exist, or does not accept the Tenant in this role. The rest of the Tenant is set up.
    WORKSPACE_NOT_FOUND = "WorkspaceNotFound" on [Tenant] in [Ready, Reconciled, Stalled, Enrolled, Event]
        on [Template] in [Ready, Stalled, Event] by Teacher, Administrator:
        "Create the Workspace, or remove it from `spec.workspaces` of the Tenant, or correct it in the Template.";
    /// The Tenant is enrolled in all its Workspaces.
    ENROLLED = "Enrolled" on [Tenant] in [Enrolled] by Nobody: "Nothing.";
    /// The account exists. The rest is set up after the user has confirmed the e-mail address.
    AWAITING_VERIFICATION = "AwaitingVerification" on [Tenant] in [Ready] by Student:
        "Follow the link in the mail from Keycloak.";
    /// The Tenant has not logged in for a long time, so the personal namespace was removed. It is created again at
    /// the next login.
    INACTIVE = "Inactive" on [Tenant] in [Ready] by Student: "Log in.";

    /// A claim, or the `PersistentVolume` that it is bound to, does not exist.
    VOLUME_MISSING = "VolumeMissing" on [SharedVolume] in [Ready, Reconciled, Stalled, Event]
        on [Tenant] in [Ready, Reconciled, Stalled, MyDriveReady, Event]
        on [Instance] in [Ready, Stalled, Event] by Administrator:
        "Wait a minute. If it lasts, the PersistentVolume was deleted: restore it, or delete the claim with its data.";
    /// The namespace for personal volumes does not exist.
    NAMESPACE_MISSING = "NamespaceMissing" on [Tenant] in [Ready, Reconciled, Stalled, MyDriveReady, Event] by Administrator:
        "Create the namespace `controllers.tenant.myDrive.namespace`.";
    /// The personal volume is not on NFS.
    VOLUME_NOT_NFS = "VolumeNotNFS" on [Tenant] in [Ready, Reconciled, Stalled, MyDriveReady, Event] by Administrator:
        "Set `controllers.tenant.myDrive.storageClassName` to an NFS class, and delete the claim.";
    /// The shared volume is not on NFS.
    MISSING_CSI = "MissingCSI" on [SharedVolume] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Set `controllers.sharedVolume.storageClass` to an NFS class, and create the volume again.";
    /// The Job that prepares the folder of the volume has failed.
    PROVISIONING_FAILED = "ProvisioningFailed" on [SharedVolume] in [Ready, Reconciled, Stalled, Event]
        on [Tenant] in [Ready, Reconciled, Stalled, MyDriveReady, Event] by Administrator:
        "Read the log of the Job in the message, and delete the Job. It is created again.";
    /// A mirror claim gets no volume: its origin does not exist, does not permit its namespace, or cannot be mirrored.
    MIRROR_REFUSED = "MirrorRefused" on [PersistentVolumeClaim] in [Event] by Administrator:
        "The message names the condition that is not met.";
    /// A mirror claim got the volume of its origin.
    MIRROR_PROVISIONED = "MirrorProvisioned" on [PersistentVolumeClaim] in [Event] by Nobody: "Nothing.";
    /// A mirror claim mirrors another claim, or none: the API server has dropped its data source.
    MIRROR_UNUSABLE = "MirrorUnusable" on [Instance] in [Reconciled, Stalled, Event]
        on [Tenant] in [Ready, Reconciled, Stalled, MyDriveReady, Event] by Administrator:
        "Enable the feature gate in the message, and delete the claim. It is created again.";
    /// A Job prepares the folder of the volume.
    PROVISIONING = "Provisioning" on [SharedVolume] in [Ready, Reconciled, Event]
        on [Tenant] in [Reconciled, MyDriveReady, Event] by Administrator:
        "Wait. If it lasts, the message contains the event about the Job or its pod.";
    /// The size cannot be parsed, is not above 0, or is smaller than before.
    INVALID_SIZE = "InvalidSize" on [SharedVolume] in [Ready, Reconciled, Stalled, Event] by Teacher:
        "Set `spec.size` to an amount such as `10Gi`, not below the amount in the message.";
    /// The claim is being removed. The volume gets a new one afterwards.
    CLAIM_TERMINATING = "ClaimTerminating" on [SharedVolume] in [Ready, Reconciled, Event] by Administrator:
        "Wait. If it lasts, the message names the finalizers: usually a pod still mounts the claim.";
    /// The object is being deleted.
    DELETING = "Deleting" on [PodConfig, SharedVolume] in [Ready] by Nobody: "Wait, or see `DeletionBlocked`.";
    /// Templates or Instances use the volume.
    IN_USE = "InUse" on [SharedVolume] in [DeletionBlocked] by Teacher:
        "Remove the mount from the Templates in the message, and delete the Instances.";
    /// The volume cannot be deleted because it is in use.
    DELETION_BLOCKED = "DeletionBlocked" on [SharedVolume] in [Event] by Teacher:
        "Remove the mount from the Templates in the message, and delete the Instances.";

    /// The mail server has accepted warnings. The message has the time of the next step.
    WARNED = "Warned" on [Instance] in [Inactive, Abandoned, Expiring] by Student:
        "Use the Instance, start it, or save its data before the deadline.";
    /// The next warning, or the deadline, is due. The Instance will be stopped or deleted after the remaining mails.
    OVERDUE = "Overdue" on [Instance] in [Inactive, Abandoned, Expiring] by Student:
        "Use the Instance, start it, or save its data.";
    /// The Instance is not due to be stopped or deleted yet.
    NOT_OVERDUE = "NotOverdue" on [Instance] in [Inactive, Abandoned, Expiring] by Nobody: "Nothing.";
    /// The Instance was stopped because it was not used.
    STOPPED = "Stopped" on [Instance] in [Inactive] by Student: "Start it to continue.";
    /// The Tenant was warned that the Instance will be stopped, or deleted if it has no disk.
    INACTIVITY_WARNING = "InactivityWarning" on [Instance] in [Event] by Student: "Use the Instance before the deadline.";
    /// The Instance was stopped, or deleted if it has no disk, because it was not used.
    INACTIVITY_STOPPED = "InactivityStopped" on [Instance] in [Event] by Student: "Start it to continue.";
    /// The Tenant was warned that the stopped Instance will be deleted.
    DESTRUCTION_WARNING = "DestructionWarning" on [Instance] in [Event] by Student: "Start the Instance before the deadline.";
    /// The stopped Instance was deleted because it was not started.
    DESTROYED = "Destroyed" on [Instance] in [Event] by Student: "Create a new Instance. The disk was deleted, too.";
    /// The Tenant was warned that the Instance will be deleted because of its age.
    EXPIRATION_WARNING = "ExpirationWarning" on [Instance] in [Event] by Student: "Save the data before the deadline.";
    /// The Instance was deleted because of its age.
    EXPIRED = "Expired" on [Instance] in [Event] by Student: "Create a new Instance. The disk was deleted, too.";
    /// The value of the annotation `crownlabs.polito.it/kept-at` of the Instance is not a time. The annotation was
    /// removed and does not count as a use.
    INVALID_KEPT_AT = "InvalidKeptAt" on [Instance] in [Event] by Student:
        "Set it to a time such as `2026-11-20T10:00:00Z`.";
    /// A source of metrics does not answer, so it is not known whether the Instance is used. It is left running.
    METRICS_UNAVAILABLE = "MetricsUnavailable" on [Instance] in [Inactive, Event] by Administrator:
        "The message names the query: correct `integrations.prometheus`, or the scrape targets of Prometheus.";

    /// The last query of the status URL says that the Instance is needed.
    KEPT = "Kept" on [Instance] in [StatusChecked] by Nobody: "Nothing.";
    /// The status URL has answered 404 or 410, but this does not end the exam yet: it was the first such answer, or
    /// the machine was never ready.
    UNCONFIRMED = "Unconfirmed" on [Instance] in [StatusChecked] by Teacher:
        "Nothing if the exam is over: the URL is queried again. Otherwise correct the server or `spec.statusCheckUrl`.";
    /// The exam is over, and the Instance is about to be stopped. As an event: the stop waits for the Template.
    TERMINATING = "Terminating" on [Instance] in [StatusChecked, Event] by Teacher:
        "Nothing. If the message names the Template, correct it.";
    /// The exam is over, and the Instance was stopped.
    TERMINATED = "Terminated" on [Instance] in [StatusChecked, Event] by Nobody: "Nothing.";
    /// The status URL cannot be queried. The query is retried, and the Instance is kept.
    STATUS_CHECK_FAILED = "StatusCheckFailed" on [Instance] in [StatusChecked, Event] by Teacher, Administrator:
        "The message contains the answer: correct `spec.statusCheckUrl`, the server, or `controllers.termination.caFile`.";
    /// The upload waits until the Instance is off.
    WAITING_FOR_OFF = "WaitingForOff" on [Instance] in [Submitted] by Nobody:
        "Wait: at most `controllers.submission.waitForOffTimeout`.";
    /// Jobs upload the content.
    UPLOADING = "Uploading" on [Instance] in [Submitted, Event] by Nobody: "Wait.";
    /// An upload has failed and is retried.
    RETRYING = "Retrying" on [Instance] in [Submitted, Event] by Administrator:
        "The message has the cause. Read the log of the Job while the Job exists.";
    /// All content was uploaded. The labels that record this are about to be set.
    UPLOADED = "Uploaded" on [Instance] in [Submitted] by Nobody: "Nothing.";
    /// All content was uploaded.
    SUBMISSION_COMPLETED = "SubmissionCompleted" on [Instance] in [Submitted, Event] by Nobody: "Nothing.";
    /// An upload has failed for the last allowed time. The labels that record this are about to be set.
    GIVING_UP = "GivingUp" on [Instance] in [Submitted] by Teacher: "See `SubmissionFailed`.";
    /// An upload has failed for the last allowed time (`controllers.submission.maxAttempts`).
    SUBMISSION_FAILED = "SubmissionFailed" on [Instance] in [Submitted, Event] by Teacher, Administrator:
        "The message has the cause, and how to request the upload again. The disk is kept.";
    /// There is nothing to upload: no environment is persistent and has a destination.
    NOT_ELIGIBLE = "NotEligible" on [Instance] in [Submitted, Event] by Teacher:
        "If content should be uploaded, set `spec.contentUrls` of the Instance and `persistent` in the Template.";
    /// The request was withdrawn before the upload was complete.
    WITHDRAWN = "Withdrawn" on [Instance] in [Submitted, Event] by Nobody: "Nothing. A running Job is not stopped.";
}
