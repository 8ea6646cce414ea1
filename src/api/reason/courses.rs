//! Reasons that several kinds have, those of Tenants, Workspaces and shared volumes, and those of the automation.

use super::{Reason, reasons};

reasons! { COURSES, COURSES_ROWS;
    /// The object is as its spec asks.
    READY = "Ready" on [Instance, SharedVolume, Template, Tenant, Workspace] in [Ready] by Nobody: "Nothing.";
    /// All objects are as they should be.
    RECONCILED = "Reconciled" on [Instance, PodConfig, SharedVolume, Tenant, Workspace] in [Reconciled] by Nobody: "Nothing.";
    /// The object is being set up.
    PENDING = "Pending" on [SharedVolume, Tenant, Workspace] in [Ready] by Nobody: "Wait.";
    /// An object of another owner has a name that is needed. It is left alone.
    NAME_CONFLICT = "NameConflict" on [PodConfig, SharedVolume, Tenant, Workspace] in [Ready, Reconciled, Stalled, NameConflict, Event]
        on [Instance] in [Reconciled, Stalled, NameConflict, PublicExposureReady, Submitted, Event] by Teacher, Administrator:
        "The message names the object and its owner. Delete one of the two, and make it again under another name.";
    /// The Instance names another Tenant than its namespace belongs to. Nothing is made, and what exists stays.
    TENANT_MISMATCH = "TenantMismatch" on [Instance]
        in [Reconciled, Stalled, TenantMismatch, Submitted, Event] by Student, Administrator:
        "Make the Instance in the namespace of its Tenant.";
    /// A write was refused.
    ENFORCEMENT_FAILED = "EnforcementFailed" on [PodConfig, SharedVolume, Tenant, Workspace]
        in [Ready, Reconciled, Stalled, Event] by Administrator:
        "The message is the API server's: a missing right, a rule of admission, or an object that it does not accept.";
    /// The spec cannot be read.
    INVALID_SPEC = "InvalidSpec" on [PodConfig, SharedVolume, Workspace] in [Ready, Reconciled, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "The message names the field. Correct it; an object that was stored before the CRD can be edited all the same.";
    /// The name is too long, or has characters that its namespace cannot have.
    INVALID_NAME = "InvalidName" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] by Student, Administrator:
        "Delete the object and make it again under a name that the message describes.";
    /// An amount cannot be read, or is too small.
    INVALID_QUANTITY = "InvalidQuantity" on [Tenant] in [Ready, Reconciled, Stalled, Event]
        on [Instance] in [Reconciled, Stalled, Event] on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "The message names the field: of the Template, the Workspace or the Tenant. Write an amount such as `500m` or `4Gi`.";
    /// A time in the Template cannot be read. The Instance is neither stopped nor deleted.
    INVALID_DURATION = "InvalidDuration" on [Instance] in [Inactive, Expiring] by Teacher:
        "Correct the time in the Template: a number with `m`, `h` or `d`, or `never`.";
    /// SSH keys cannot be used, and are left out. Everything else goes on.
    INVALID_PUBLIC_KEY = "InvalidPublicKey" on [Tenant] in [InvalidPublicKeys, Event]
        on [Instance] in [Reconciled, Event] by Student:
        "Correct `spec.publicKeys` of the Tenant: one key of OpenSSH an entry, without options before it.";
    /// The Template does not exist.
    TEMPLATE_NOT_FOUND = "TemplateNotFound" on [Instance] in [Reconciled, Submitted, Event] by Teacher:
        "Create the Template again, or delete the Instance.";
    /// The Tenant does not exist, or the namespace is not his.
    TENANT_NOT_FOUND = "TenantNotFound" on [Instance]
        in [Reconciled, Inactive, Abandoned, Expiring, Event] by Administrator:
        "Create the Tenant again, or delete the Instance.";
    /// The spec of the Template has no fault.
    VALID = "Valid" on [Template] in [Valid] by Nobody: "Nothing.";
    /// One Instance of the Template uses more than the quota of its Workspace gives to a Tenant, so nobody can start one.
    EXCEEDS_QUOTA = "ExceedsQuota" on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "Lower the resources in the Template, or raise the quota of the Workspace (`spec.quota`).";
    /// The storage class that the Template names does not exist.
    STORAGE_CLASS_NOT_FOUND = "StorageClassNotFound" on [Template] in [Ready, Event] by Teacher, Administrator:
        "Correct `storageClassName` in the Template, or create the class.";
    /// No node could run an environment of the Template, even if nothing else ran there.
    NO_NODE = "NoNode" on [Template] in [Ready, Event] by Teacher, Administrator:
        "The message says what is missing: correct the node selector or the resources in the Template, or add a node.";
    /// The Template cannot be read, has no environment, one twice, or one with a name or type that is not possible.
    INVALID_TEMPLATE = "InvalidTemplate" on [Instance] in [Reconciled, Stalled, Submitted, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "The message names the fault: correct the Template.";
    /// The Workspace cannot be read. Until it can, the quotas of its Tenants are not reduced.
    INVALID_WORKSPACE = "InvalidWorkspace" on [Tenant] in [Ready, Reconciled, Stalled, Event] by Teacher:
        "The message names the field: correct the Workspace.";
    /// The Tenant cannot be read. What there is stays as it is.
    INVALID_TENANT = "InvalidTenant" on [Tenant] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "The message names the field: correct the Tenant.";
    /// A part of the quota of the Workspace cannot be read, or names a resource that no `ResourceQuota` can limit. The rest of
    /// it applies.
    INVALID_QUOTA = "InvalidQuota" on [Tenant, Workspace] in [Ready, Reconciled, Stalled, Event] by Teacher, Administrator:
        "The message names the field: correct `spec.quota` of the Workspace, or `spec.personalWorkspace` of the Tenant.";
    /// `spec.autoEnroll` is not a known word. Candidates stay candidates.
    INVALID_AUTO_ENROLL = "InvalidAutoEnroll" on [Workspace] in [Ready, Reconciled, Stalled, Event] by Teacher:
        "Write `immediate`, `withApproval`, or leave it out.";
    /// A namespace of the object is being deleted. It is made again when it is gone.
    NAMESPACE_TERMINATING = "NamespaceTerminating" on [Tenant, Workspace] in [Ready, Reconciled, Event] by Administrator:
        "Wait. If it lasts, `kubectl describe namespace` says which objects keep it.";
    /// A Workspace does not exist, or does not take the Tenant in this role.
    WORKSPACE_NOT_FOUND = "WorkspaceNotFound" on [Tenant] in [Enrolled, Event] by Teacher, Administrator:
        "Create the Workspace, or remove it from `spec.workspaces` of the Tenant.";
    /// Every Workspace of the Tenant counts.
    ENROLLED = "Enrolled" on [Tenant] in [Enrolled] by Nobody: "Nothing.";
    /// The account exists; the rest follows when the e-mail address is confirmed.
    AWAITING_VERIFICATION = "AwaitingVerification" on [Tenant] in [Ready] by Student:
        "Follow the link in the mail of Keycloak.";
    /// The Tenant has not logged in for a while, so the personal namespace was removed. It is made at the next login.
    INACTIVE = "Inactive" on [Tenant] in [Ready] by Student: "Log in.";

    /// A claim, or the `PersistentVolume` that it is bound to, is not there.
    VOLUME_MISSING = "VolumeMissing" on [SharedVolume, Tenant] in [Ready, Reconciled, Event]
        on [Instance] in [Ready, Stalled, Event] by Administrator:
        "Wait a minute. If it lasts, the PersistentVolume was deleted: restore it, or delete the claim with its data.";
    /// The namespace for personal volumes does not exist.
    NAMESPACE_MISSING = "NamespaceMissing" on [Tenant] in [Ready, Reconciled, Event] by Administrator:
        "Create the namespace `controllers.tenant.myDrive.namespace`.";
    /// The personal volume is not on NFS.
    VOLUME_NOT_NFS = "VolumeNotNFS" on [Tenant] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Set `controllers.tenant.myDrive.storageClassName` to a class of NFS, and delete the claim.";
    /// The shared volume is not on NFS.
    MISSING_CSI = "MissingCSI" on [SharedVolume] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Set `controllers.sharedVolume.storageClass` to a class of NFS, and make the volume again.";
    /// The Job that gives the volume to the user of the machines has failed.
    PROVISIONING_FAILED = "ProvisioningFailed" on [SharedVolume, Tenant] in [Ready, Reconciled, Event] by Administrator:
        "Look at the log of the Job in the message, and delete the Job: it is made again.";
    /// The volume is being given to the user of the machines.
    PROVISIONING = "Provisioning" on [SharedVolume] in [Ready] by Nobody: "Wait.";
    /// The size cannot be read, is not above 0, or is less than before.
    INVALID_SIZE = "InvalidSize" on [SharedVolume] in [Ready, Reconciled, Stalled, Event] by Teacher:
        "Set `spec.size` to an amount such as `10Gi`, not below the one in the message.";
    /// The claim is being removed; the volume gets a new one after that.
    CLAIM_TERMINATING = "ClaimTerminating" on [SharedVolume] in [Ready, Reconciled, Event] by Administrator:
        "Wait. If it lasts, a pod still mounts the claim.";
    /// The volume is being deleted.
    DELETING = "Deleting" on [PodConfig, SharedVolume] in [Ready] by Nobody: "Wait, or see `DeletionBlocked`.";
    /// Templates or Instances use the volume.
    IN_USE = "InUse" on [SharedVolume] in [DeletionBlocked] by Teacher:
        "Remove the mount from the Templates in the message, and delete the Instances.";
    /// The volume cannot be deleted because it is in use.
    DELETION_BLOCKED = "DeletionBlocked" on [SharedVolume] in [Event] by Teacher:
        "Remove the mount from the Templates in the message, and delete the Instances.";

    /// Warnings were accepted by the mail server. The message has the next time.
    WARNED = "Warned" on [Instance] in [Inactive, Abandoned, Expiring] by Student:
        "Use the Instance, start it, or save its data before the deadline.";
    /// The Instance comes to its end after the mails that are due.
    OVERDUE = "Overdue" on [Instance] in [Inactive, Abandoned, Expiring] by Student:
        "Use the Instance, start it, or save its data.";
    /// The end of the Instance is not due yet.
    NOT_OVERDUE = "NotOverdue" on [Instance] in [Inactive, Abandoned, Expiring] by Nobody: "Nothing.";
    /// The Instance was stopped because nobody used it.
    STOPPED = "Stopped" on [Instance] in [Inactive] by Student: "Start it to go on.";
    /// The Tenant was warned that the Instance is going to be stopped, or deleted if it has no disk.
    INACTIVITY_WARNING = "InactivityWarning" on [Instance] in [Event] by Student: "Use the Instance before the deadline.";
    /// The Instance was stopped, or deleted if it has no disk, because nobody used it.
    INACTIVITY_STOPPED = "InactivityStopped" on [Instance] in [Event] by Student: "Start it to go on.";
    /// The Tenant was warned that the stopped Instance is going to be deleted.
    DESTRUCTION_WARNING = "DestructionWarning" on [Instance] in [Event] by Student: "Start the Instance before the deadline.";
    /// The stopped Instance was deleted because nobody started it.
    DESTROYED = "Destroyed" on [Instance] in [Event] by Student: "Make a new Instance; its disk is gone.";
    /// The Tenant was warned that the Instance is going to be deleted for its age.
    EXPIRATION_WARNING = "ExpirationWarning" on [Instance] in [Event] by Student: "Save the data before the deadline.";
    /// The Instance was deleted for its age.
    EXPIRED = "Expired" on [Instance] in [Event] by Student: "Make a new Instance; its disk is gone.";
    /// The annotation `crownlabs.polito.it/kept-at` of the Instance is no time. It was removed, and counts as no use.
    INVALID_KEPT_AT = "InvalidKeptAt" on [Instance] in [Event] by Student:
        "Set it to a time such as `2026-11-20T10:00:00Z`.";
    /// It is not known whether the Instance is used, because a source of metrics does not answer. It is left running.
    METRICS_UNAVAILABLE = "MetricsUnavailable" on [Instance] in [Inactive, Event] by Administrator:
        "The message names the query: correct `integrations.prometheus`, or what is to be scraped.";

    /// The last query of the status URL says that the Instance is needed.
    KEPT = "Kept" on [Instance] in [StatusChecked] by Nobody: "Nothing.";
    /// The status URL has answered 404 or 410, which ends no exam yet: it was the first such answer, or the machine was never
    /// ready.
    UNCONFIRMED = "Unconfirmed" on [Instance] in [StatusChecked] by Teacher:
        "Nothing if the exam is over: the URL is queried again. Else correct the server, or `spec.statusCheckUrl`.";
    /// The exam is over, and the Instance is about to be stopped; as an event: which waits for its Template.
    TERMINATING = "Terminating" on [Instance] in [StatusChecked, Event] by Teacher:
        "Nothing; if the message names the Template, correct that.";
    /// The exam is over, and the Instance was stopped.
    TERMINATED = "Terminated" on [Instance] in [StatusChecked, Event] by Nobody: "Nothing.";
    /// The status URL cannot be queried. It is tried again, and the Instance is kept.
    STATUS_CHECK_FAILED = "StatusCheckFailed" on [Instance] in [StatusChecked, Event] by Teacher, Administrator:
        "The message has the answer: correct `spec.statusCheckUrl`, the server, or `controllers.termination.caFile`.";
    /// The upload waits until the Instance is off.
    WAITING_FOR_OFF = "WaitingForOff" on [Instance] in [Submitted] by Nobody:
        "Wait: at most `controllers.submission.waitForOffTimeout`.";
    /// Jobs upload the content.
    UPLOADING = "Uploading" on [Instance] in [Submitted, Event] by Nobody: "Wait.";
    /// An upload has failed and is tried again.
    RETRYING = "Retrying" on [Instance] in [Submitted, Event] by Administrator:
        "The message says why: look at the log of the Job while it is there.";
    /// Everything was uploaded; the labels of the request are about to be set.
    UPLOADED = "Uploaded" on [Instance] in [Submitted] by Nobody: "Nothing.";
    /// Everything was uploaded.
    SUBMISSION_COMPLETED = "SubmissionCompleted" on [Instance] in [Submitted, Event] by Nobody: "Nothing.";
    /// An upload has failed as often as it may; the labels of the request are about to be set.
    GIVING_UP = "GivingUp" on [Instance] in [Submitted] by Teacher: "See `SubmissionFailed`.";
    /// An upload has failed as often as it may (`controllers.submission.maxAttempts`).
    SUBMISSION_FAILED = "SubmissionFailed" on [Instance] in [Submitted, Event] by Teacher, Administrator:
        "The message says why, and how to ask for the upload again. The disk is kept.";
    /// There is nothing to upload: no environment is persistent and has a destination.
    NOT_ELIGIBLE = "NotEligible" on [Instance] in [Submitted, Event] by Teacher:
        "If that is wrong, set `spec.contentUrls` of the Instance and `persistent` in the Template.";
    /// The request was withdrawn before the upload was complete.
    WITHDRAWN = "Withdrawn" on [Instance] in [Submitted, Event] by Nobody: "Nothing. A Job that runs is left alone.";
}
