//! Reasons of Instances: their state, why they cannot be made, their public ports, and their snapshots.

use super::{Reason, reasons};

reasons! { INSTANCES, INSTANCES_ROWS;
    /// The disk is being filled from its image.
    IMPORTING = "Importing" on [Instance] in [Ready] by Nobody: "Wait: a disk of 20 GB takes a few minutes, once.";
    /// The workload is starting, or waits for something. Of an upload: its Jobs are about to be created.
    STARTING = "Starting" on [Instance] in [Ready, Submitted] by Nobody:
        "Wait. If it takes longer than ten minutes, `crownlabs why` says what it waits for.";
    /// The machine runs, and its readiness probe does not succeed yet.
    RUNNING = "Running" on [Instance] in [Ready] by Nobody: "Wait: the operating system starts.";
    /// The environment is shutting down.
    STOPPING = "Stopping" on [Instance] in [Ready] by Nobody: "Wait.";
    /// The environment is off, as the spec asks.
    OFF = "Off" on [Instance] in [Ready] by Student: "Start it (`spec.running: true`) to use it.";
    /// An environment has failed, and the Template has several, or one that can never start.
    FAILED = "Failed" on [Instance] in [Ready, Stalled] by Teacher:
        "The condition `Reconciled` and the phases of the environments say which, and why.";
    /// A pod may not be made: by a rule of Pod Security, a `LimitRange`, or an admission webhook.
    POD_REFUSED = "PodRefused" on [Instance] in [Ready, Stalled, Event] by Teacher, Administrator:
        "The message is the API server's. Resources are in the Template; rules are those of the namespace.";
    /// The pod was not ready within the time of its Deployment, and nothing else says why.
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded" on [Instance] in [Ready, Stalled, Event] by Teacher:
        "See the log of the pod: mostly the program does not listen on its port.";
    /// An image cannot be pulled.
    IMAGE_PULL_FAILED = "ImagePullFailed" on [Instance] in [Ready, Stalled, Event] by Teacher:
        "Correct `image` in the Template and make the Instance again; or make the registry reachable.";
    /// A container waits for something that this version does not know.
    CONTAINER_WAITS = "ContainerWaits" on [Instance] in [Ready, Stalled, Event] by Administrator:
        "The message is that of the container runtime.";
    /// A gate of another controller holds the pod back from being scheduled.
    SCHEDULING_GATED = "SchedulingGated" on [Instance] in [Ready, Event] by Administrator:
        "See which controller has set `spec.schedulingGates` of the pod.";
    /// The pod has failed, for example because its node ran out of disk. A new one is made.
    POD_FAILED = "PodFailed" on [Instance] in [Ready, Event] by Administrator:
        "Wait for the new pod. If that fails, too, the message says what the node lacks.";
    /// A volume is not bound: its storage class is missing, or cannot provision it.
    VOLUME_UNBOUND = "VolumeUnbound" on [Instance] in [Ready, Stalled, Event] by Administrator:
        "See `kubectl describe` of the claim that the message names, and whether its storage class exists.";
    /// The virtual machine was paused. It goes on when somebody resumes it.
    MACHINE_PAUSED = "MachinePaused" on [Instance] in [Ready, Event] by Administrator:
        "Resume it (`virtctl unpause vm`). KubeVirt pauses a machine whose disk cannot be written.";
    /// The virtual machine ends, and is started again and again.
    MACHINE_CRASHES = "MachineCrashes" on [Instance] in [Ready, Stalled, Event] by Teacher:
        "Mostly its image is no disk, or its memory is too small. The message has the words of KubeVirt.";
    /// The virtual machine has ended, and has no disk from which it could go on.
    MACHINE_ENDED = "MachineEnded" on [Instance] in [Ready, Stalled, Event] by Student:
        "Delete the Instance and make it anew.";
    /// The virtual machine is in a state that this version does not know.
    MACHINE_STATE = "MachineState" on [Instance] in [Ready, Event] by Administrator:
        "The message has the word of KubeVirt.";
    /// The disk cannot be filled from its image: the image is missing, is larger than the disk, or its server does not answer.
    IMPORT_FAILED = "ImportFailed" on [Instance] in [Ready, Stalled, Event] by Teacher:
        "The message is that of the importer. Correct `image` or `resources.disk` in the Template, and make the Instance again.";
    /// The import of the disk has failed before, and runs again.
    IMPORT_RESTARTED = "ImportRestarted" on [Instance] in [Ready, Event] by Nobody:
        "Wait. If it fails again, the message says why.";
    /// An object of the Instance cannot be created.
    CREATION_LOOP_BACKOFF = "CreationLoopBackoff" on [Instance] in [Ready] by Teacher:
        "The condition `Reconciled` has the reason.";
    /// The state is not known yet.
    UNKNOWN = "Unknown" on [Instance] in [Ready] by Nobody: "Wait.";
    /// A `ResourceQuota` of the namespace does not allow the object now. It is tried again within a minute.
    QUOTA_EXCEEDED = "ResourceQuotaExceeded" on [Instance] in [Ready, Reconciled, Submitted, Event]
        on [InstanceSnapshot] in [Ready, Event] on [SharedVolume] in [Ready, Reconciled, Event] by Student, Teacher:
        "Stop or delete another Instance. A teacher can raise the quota of the Workspace (`spec.quota`).";
    /// A write for an environment was refused, for another reason than a quota. As an event, it is published beside that
    /// with the reason itself, because alerts may wait for it.
    ENVIRONMENT_ENFORCEMENT_FAILED = "EnvironmentEnforcementFailed" on [Instance]
        in [Reconciled, Stalled, Event] by Administrator:
        "The message is the API server's: a missing right, a rule of admission, or an object that it does not accept.";
    /// An environment of type `CloudVM` or `LocalVM` is not persistent, but its image is a disk.
    NOT_PERSISTENT = "NotPersistent" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "Set `persistent: true` in the Template, or use the type VirtualMachine.";
    /// The CRDs of KubeVirt are not installed.
    KUBEVIRT_MISSING = "KubeVirtMissing" on [Instance] in [Reconciled, Event] by Administrator:
        "Install KubeVirt. The machine starts when it is there.";
    /// Environments of type `LocalVM` are switched off.
    LOCAL_VM_DISABLED = "LocalVMDisabled" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Administrator:
        "Set `controllers.instance.localVm.enabled`, or have the Template use another type.";
    /// The image of a `LocalVM` is not `NAMESPACE/CLAIM`.
    INVALID_IMAGE = "InvalidImage" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "Correct `image` in the Template.";
    /// The volume of a `LocalVM` is in a namespace from which nobody may clone.
    IMAGE_NOT_ALLOWED = "ImageNotAllowed" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher, Administrator:
        "Use a volume in the namespace of the Template, or add the namespace to `controllers.instance.localVm.namespaces`.";
    /// A persistent environment has no size of its disk.
    DISK_MISSING = "DiskMissing" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "Set `resources.disk` of the environment in the Template.";
    /// A shared volume that the Template mounts does not exist.
    SHARED_VOLUME_NOT_FOUND = "SharedVolumeNotFound" on [Instance] in [Reconciled, Event]
        on [Template] in [Ready, Event] by Teacher:
        "Create the SharedVolume, or correct the mount in the Template. The environment starts when it exists.";
    /// A shared volume that the Template mounts is not exported yet.
    SHARED_VOLUME_NOT_READY = "SharedVolumeNotReady" on [Instance] in [Reconciled, Event] by Nobody:
        "Wait. If it lasts, the conditions of the SharedVolume say why.";
    /// The Secret with the location of the personal volume is missing, or has no location.
    MY_DRIVE_NOT_FOUND = "MyDriveNotFound" on [Instance] in [Reconciled, Event] by Administrator:
        "The conditions of the Tenant say why its volume is not there. Or set `mountMyDriveVolume: false` in the Template.";
    /// An environment that the Instance has is no longer in its Template. Its objects are left as they are.
    ENVIRONMENT_REMOVED = "EnvironmentRemoved" on [Instance] in [Reconciled, Event] by Student:
        "Delete the Instance when its data is not needed any more, and make it again.";
    /// The OAuth2 proxy of the Instance lacks its secret or its key. Until it has them, nobody can log in.
    OAUTH2_PROXY_WAITS = "OAuth2ProxyWaits" on [Instance] in [Reconciled, Event] by Administrator:
        "The message says what is missing: mostly the file `controllers.instance.access.oauth2Proxy.clientSecretFile`.";

    /// The Template does not allow public exposure. Ports that were exposed are closed.
    NOT_ALLOWED = "NotAllowed" on [Instance] in [PublicExposureReady, Event] by Student, Teacher:
        "Remove `spec.publicExposure`; or the teacher sets `allowPublicExposure` in the Template.";
    /// Instances with several environments cannot be exposed.
    SEVERAL_ENVIRONMENTS = "PublicExposureMultipleEnvironments" on [Instance] in [PublicExposureReady, Event] by Teacher:
        "Use a Template with one environment.";
    /// The requested ports are not valid: a number out of range, or a port or name twice.
    INVALID_REQUEST = "InvalidRequest" on [Instance] in [PublicExposureReady, Event] by Student:
        "The message names the port. What was exposed before stays until the request is corrected.";
    /// There are no public addresses to give.
    NO_ADDRESSES = "NoAddresses" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "Set `controllers.publicExposure.ipPool`.";
    /// No public address has room for all requested ports.
    NO_FREE_PORT = "NoFreePort" on [Instance] in [PublicExposureReady, Event] by Student, Administrator:
        "Ask for port 0, which means any that is free; or enlarge `controllers.publicExposure.ipPool`.";
    /// The network policy of the exposure cannot be written.
    NETWORK_POLICY_FAILED = "NetworkPolicyFailed" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "The message is the API server's: mostly a missing right or a rule of admission.";
    /// The Service of the exposure cannot be written.
    SERVICE_FAILED = "ServiceFailed" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "The message is the API server's: mostly a missing right, a quota for Services, or a rule of admission.";
    /// The Service is being deleted, and is made again with the same address and ports.
    SERVICE_LEAVING = "ServiceLeaving" on [Instance] in [PublicExposureReady, Event] by Nobody: "Wait.";
    /// The ports can be reached at the address in the message.
    EXPOSURE_ASSIGNED = "PublicExposureAssigned" on [Instance] in [PublicExposureReady, Event] by Nobody: "Nothing.";
    /// The load balancer has assigned another address than the one that was asked for.
    OTHER_ADDRESS = "OtherAddress" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "Make `ipPool` and `loadBalancerIpsKey` of `controllers.publicExposure` those of the load balancer.";
    /// The load balancer has not assigned the address yet.
    WAITING_FOR_ADDRESS = "WaitingForAddress" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "Wait a minute. If it lasts, look at the events of the Service and the log of the load balancer.";

    /// The request for a snapshot is new and is being checked.
    VALIDATING = "Validating" on [InstanceSnapshot] in [Event] by Nobody: "Nothing.";
    /// Another snapshot of the same Instance is being made.
    ANOTHER_SNAPSHOT = "AnotherSnapshot" on [InstanceSnapshot] in [Ready, Event] by Nobody: "Wait: it is the next one.";
    /// The API server refuses the Job, for example by a rule of admission. It is tried again until `startDeadline`.
    JOB_REFUSED = "JobRefused" on [InstanceSnapshot] in [Ready, Event] by Administrator:
        "The message is the API server's. With a rule against root, use `controllers.snapshot.pusher: buildah`.";
    /// The Job of a deleted snapshot of this name is still being removed.
    PREDECESSOR_LEAVING = "PredecessorLeaving" on [InstanceSnapshot] in [Ready, Event] by Nobody: "Wait.";
    /// The virtual machine has not shut down yet.
    MACHINE_STOPPING = "MachineStopping" on [InstanceSnapshot] in [Ready, Event] by Student:
        "Wait, or shut it down from inside.";
    /// The disk is still being filled.
    DISK_NOT_READY = "DiskNotReady" on [InstanceSnapshot] in [Ready, Event] by Nobody: "Wait.";
    /// The Job that makes the image is about to be created.
    CREATING = "Creating" on [InstanceSnapshot] in [Ready] by Nobody: "Wait.";
    /// The Job that makes the image has begun.
    CREATION = "Creation" on [InstanceSnapshot] in [Event] by Nobody: "Nothing.";
    /// The Job makes the image.
    JOB_RUNNING = "JobRunning" on [InstanceSnapshot] in [Ready, Event] by Nobody:
        "Wait: a large disk takes tens of minutes.";
    /// A container has failed, and is started again. `OOMKilled`: it needed more memory than it may have.
    CONTAINER_FAILED = "ContainerFailed" on [InstanceSnapshot] in [Ready, Event] on [Instance] in [Ready, Stalled, Event]
        by Teacher, Administrator:
        "See the log of the pod (`kubectl logs --previous`): mostly too little memory (in the Template, or `pusherMemoryLimit` of snapshots), or a login that is not accepted.";
    /// A container cannot be made: a Secret is missing, the image has no such program, or, of a snapshot, cannot be pulled.
    CONTAINER_NOT_STARTED = "ContainerNotStarted" on [InstanceSnapshot] in [Ready, Event]
        on [Instance] in [Ready, Stalled, Event] by Teacher, Administrator:
        "The message is that of the container runtime: correct the image in the Template, or those in `controllers.snapshot`.";
    /// No node can take the pod. It starts as soon as one can.
    POD_UNSCHEDULABLE = "PodUnschedulable" on [InstanceSnapshot] in [Ready, Event] on [Instance] in [Ready, Stalled, Event]
        by Teacher, Administrator:
        "The message is the scheduler's: stop other machines, add nodes, or lower the resources in the Template, or of snapshots `pusherMemoryRequest`.";
    /// The Job has no pod.
    WAITING_FOR_POD = "WaitingForPod" on [InstanceSnapshot] in [Ready, Event] by Administrator:
        "Look at the events of the Job: mostly a ResourceQuota leaves no room for `pusherMemoryLimit`.";
    /// The Secret with the login to the registry is not in the namespace.
    SECRET_MISSING = "SecretMissing" on [InstanceSnapshot] in [Ready, Event] by Administrator:
        "Copy the Secret `controllers.snapshot.vmRegistrySecret` into the namespace.";
    /// The pod of the Job has not started for a minute.
    POD_NOT_STARTED = "PodNotStarted" on [InstanceSnapshot] in [Ready, Event] by Administrator:
        "Look at the events of the pod, for example about a volume that cannot be mounted.";
    /// The image is in the registry.
    COMPLETED = "Completed" on [InstanceSnapshot] in [Ready] by Nobody: "Nothing. The message has the name of the image.";
    /// The image was made and pushed.
    CREATED = "Created" on [InstanceSnapshot] in [Event] by Nobody: "Nothing.";
    /// The request cannot be fulfilled: the Instance runs, is not a persistent virtual machine, or does not exist.
    VALIDATION_ERROR = "ValidationError" on [InstanceSnapshot] in [Ready, Stalled, Event] by Student:
        "The message says which. Correct the spec, or delete the snapshot and make another one.";
    /// The Job that makes an image, or that uploads content, has failed or cannot be created.
    CREATION_FAILED = "CreationFailed" on [InstanceSnapshot] in [Ready, Stalled, Event]
        on [Instance] in [Submitted, Event] by Student, Administrator:
        "The message says why. Make another snapshot when that is corrected; an upload is tried again by itself.";
}
