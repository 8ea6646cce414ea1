//! Reasons of Instances: their state, why they cannot be created, their public ports, and their snapshots.

use super::{Reason, reasons};

reasons! { INSTANCES, INSTANCES_ROWS;
    /// The disk is being filled from its image.
    IMPORTING = "Importing" on [Instance] in [Ready] by Nobody: "Wait: a disk of 20 GB takes a few minutes, once.";
    /// The workload is starting, or waits for something. For an upload: its Jobs are about to be created.
    STARTING = "Starting" on [Instance] in [Ready, Submitted] by Nobody:
        "Wait. If it takes longer than ten minutes, `crownlabs why` shows the cause.";
    /// The machine runs, but its readiness probe does not succeed yet.
    RUNNING = "Running" on [Instance] in [Ready] by Nobody: "Wait: the operating system starts.";
    /// The environment is shutting down.
    STOPPING = "Stopping" on [Instance] in [Ready] by Nobody: "Wait.";
    /// The environment is off, as the spec asks.
    OFF = "Off" on [Instance] in [Ready] by Student: "Start it (`spec.running: true`) to use it.";
    /// An environment has failed, and the Template has several environments, or an environment can never start.
    FAILED = "Failed" on [Instance] in [Ready, Stalled] by Teacher:
        "The condition `Reconciled` and the phases of the environments say which, and why.";
    /// The creation of a pod is rejected by Pod Security, a `LimitRange`, or an admission webhook.
    POD_REFUSED = "PodRefused" on [Instance] in [Ready, Stalled, Event] by Teacher, Administrator:
        "The message comes from the API server. The Template has the resources, and the namespace has the rules.";
    /// The pod was not ready within the deadline of its Deployment, and no other cause is known.
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded" on [Instance] in [Ready, Stalled, Event] by Teacher:
        "Read the log of the pod: usually the program does not listen on its port.";
    /// A volume cannot be attached to the node, or cannot be mounted on it.
    VOLUME_NOT_MOUNTED = "VolumeNotMounted" on [Instance] in [Ready, Stalled, Event] by Administrator:
        "The message comes from the node: check whether the server of the volume answers, and whether the volume is still attached to another node.";
    /// The autoscaler adds a node for the pod.
    WAITING_FOR_NODE = "WaitingForNode" on [Instance] in [Ready, Event] by Nobody:
        "Wait: a new node takes some minutes.";
    /// An image is being pulled.
    IMAGE_PULLING = "ImagePulling" on [Instance] in [Ready, Event] by Nobody: "Wait: a large image takes minutes on a new node.";
    /// The program runs but does not answer its probe.
    NOT_ANSWERING = "NotAnswering" on [Instance] in [Ready, Event] by Teacher:
        "Wait. If it lasts, read the log of the pod: usually the program does not listen on its port.";
    /// An event reports a problem of an object of the Instance that this version does not know.
    OBJECT_WARNING = "ObjectWarning" on [Instance] in [Ready, Event] by Administrator:
        "The message has the text of the event and the object.";
    /// An image cannot be pulled.
    IMAGE_PULL_FAILED = "ImagePullFailed" on [Instance] in [Ready, Stalled, Event] by Teacher:
        "Correct `image` in the Template and create the Instance again, or make the registry reachable.";
    /// A container waits for a reason that this version does not know.
    CONTAINER_WAITS = "ContainerWaits" on [Instance] in [Ready, Stalled, Event] by Administrator:
        "The message comes from the container runtime.";
    /// Another controller has set a scheduling gate on the pod.
    SCHEDULING_GATED = "SchedulingGated" on [Instance] in [Ready, Event] by Administrator:
        "Find the controller that has set `spec.schedulingGates` of the pod.";
    /// The pod has failed, for example because its node ran out of disk space. It is replaced by a new pod.
    POD_FAILED = "PodFailed" on [Instance] in [Ready, Event] by Administrator:
        "Wait for the new pod. If it fails, too, the message names the resource that the node lacks.";
    /// A volume is not bound: its storage class is missing or cannot provision it, or, for a volume on NFS, waits for
    /// its first consumer.
    VOLUME_UNBOUND = "VolumeUnbound" on [Instance] in [Ready, Stalled, Event]
        on [SharedVolume] in [Ready, Reconciled, Stalled, Event]
        on [Tenant] in [Reconciled, Stalled, MyDriveReady, Event] by Administrator:
        "Run `kubectl describe` on the claim that the message names, and check its storage class.";
    /// The virtual machine is paused until a user resumes it.
    MACHINE_PAUSED = "MachinePaused" on [Instance] in [Ready, Event] by Administrator:
        "Resume it (`virtctl unpause vm`). KubeVirt pauses a machine whose disk cannot be written.";
    /// The virtual machine ends and is restarted again and again.
    MACHINE_CRASHES = "MachineCrashes" on [Instance] in [Ready, Stalled, Event] by Teacher:
        "Usually its image is not a disk, or its memory is too small. The message comes from KubeVirt.";
    /// The virtual machine has ended, and has no disk to restart from.
    MACHINE_ENDED = "MachineEnded" on [Instance] in [Ready, Stalled, Event] by Student:
        "Delete the Instance and create it again.";
    /// The virtual machine is in a state that this version does not know.
    MACHINE_STATE = "MachineState" on [Instance] in [Ready, Event] by Administrator:
        "The message has the state that KubeVirt reports.";
    /// The disk cannot be filled from its image: the image is missing or larger than the disk, or its server does not
    /// answer.
    IMPORT_FAILED = "ImportFailed" on [Instance] in [Ready, Stalled, Event] by Teacher:
        "The message comes from the importer. Correct `image` or `resources.disk` in the Template, and create the Instance again.";
    /// The import of the disk has failed before and is running again.
    IMPORT_RESTARTED = "ImportRestarted" on [Instance] in [Ready, Event] by Nobody:
        "Wait. If it fails again, the message has the cause.";
    /// A Gateway rejects the route of the web interface, or cannot resolve its backend.
    ROUTE_REFUSED = "RouteRefused" on [Instance] in [Ready, Stalled, Event] by Administrator:
        "The message comes from the Gateway's controller. Check `controllers.instance.gatewayApi.parentRefs` and the listeners of the Gateway.";
    /// The Gateway has not accepted the route of the web interface together with the policy that guards it within
    /// `controllers.instance.stalledAfter`, so the route is removed. It is tried again after pauses of up to an hour.
    ROUTE_UNGUARDED = "RouteUnguarded" on [Instance] in [Ready, Stalled, Event] by Administrator:
        "The message comes from the Gateway's controller. Correct `controllers.instance.gatewayApi.policy`, and every route is tried again at once; or delete the policy of the Instance.";
    /// No controller has accepted the route or the Ingress of the web interface within
    /// `controllers.instance.stalledAfter`.
    ROUTE_IGNORED = "RouteIgnored" on [Instance] in [Ready, Stalled, Event] by Administrator:
        "Check whether the Gateway, or a default Ingress class, exists, and read the log of its controller.";
    /// An object of the Instance cannot be created.
    CREATION_LOOP_BACKOFF = "CreationLoopBackoff" on [Instance] in [Ready] by Teacher:
        "The condition `Reconciled` has the reason.";
    /// The state is not known yet.
    UNKNOWN = "Unknown" on [Instance] in [Ready] by Nobody: "Wait.";
    /// A `ResourceQuota` of the namespace does not allow the object now. The creation is retried within a minute.
    QUOTA_EXCEEDED = "ResourceQuotaExceeded" on [Instance] in [Ready, Reconciled, Submitted, Event]
        on [InstanceSnapshot] in [Ready, Event] on [SharedVolume] in [Ready, Reconciled, Event] by Student, Teacher:
        "Stop or delete another Instance. A teacher can raise the quota of the Workspace (`spec.quota`).";
    /// The API server rejected a write for an environment, for a reason other than a quota. As an event, it is
    /// published in addition to the event of the specific reason, because alerts may depend on it.
    ENVIRONMENT_ENFORCEMENT_FAILED = "EnvironmentEnforcementFailed" on [Instance]
        in [Reconciled, Stalled, Event] by Administrator:
        "The message comes from the API server: a missing permission, an admission rule, or an invalid object.";
    /// An environment of type `CloudVM` or `LocalVM` is not persistent, although its image is a disk.
    NOT_PERSISTENT = "NotPersistent" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "Set `persistent: true` in the Template, or use the type VirtualMachine.";
    /// The CRDs of KubeVirt are not installed.
    KUBEVIRT_MISSING = "KubeVirtMissing" on [Instance] in [Reconciled, Stalled, Event] on [Template] in [Ready, Stalled, Event]
        by Administrator:
        "Install KubeVirt. The machine starts once it is installed.";
    /// The CRDs of CDI, which fills the disks of persistent virtual machines, are not installed.
    CDI_MISSING = "CDIMissing" on [Instance] in [Reconciled, Stalled, Event] on [Template] in [Ready, Stalled, Event]
        by Administrator:
        "Install CDI. The machine starts once it is installed.";
    /// Environments of type `LocalVM` are disabled.
    LOCAL_VM_DISABLED = "LocalVMDisabled" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Administrator:
        "Set `controllers.instance.localVm.enabled`, or use another type in the Template.";
    /// The image of a `LocalVM` is not `NAMESPACE/CLAIM`.
    INVALID_IMAGE = "InvalidImage" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "Correct `image` in the Template.";
    /// The volume of a `LocalVM` is in a namespace that cloning is not allowed from.
    IMAGE_NOT_ALLOWED = "ImageNotAllowed" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher, Administrator:
        "Use a volume in the namespace of the Template, or add the namespace to `controllers.instance.localVm.namespaces`.";
    /// A persistent environment has no disk size.
    DISK_MISSING = "DiskMissing" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Valid, Ready, Stalled, Event] by Teacher:
        "Set `resources.disk` of the environment in the Template.";
    /// A shared volume that the Template mounts does not exist.
    SHARED_VOLUME_NOT_FOUND = "SharedVolumeNotFound" on [Instance] in [Reconciled, Stalled, Event]
        on [Template] in [Ready, Stalled, Event] by Teacher:
        "Create the SharedVolume, or correct the mount in the Template. The environment starts once the SharedVolume exists.";
    /// A shared volume that the Template mounts has no export yet.
    SHARED_VOLUME_NOT_READY = "SharedVolumeNotReady" on [Instance] in [Reconciled, Event] on [Template] in [Ready, Event] by Nobody:
        "Wait. If it lasts, the conditions of the SharedVolume say why.";
    /// The Secret with the location of the personal volume is missing, or contains no location.
    MY_DRIVE_NOT_FOUND = "MyDriveNotFound" on [Instance] in [Reconciled, Stalled, Event] by Administrator:
        "The conditions of the Tenant have the cause. Or set `mountMyDriveVolume: false` in the Template.";
    /// An environment of the Instance was removed from its Template. Its objects are left as they are.
    ENVIRONMENT_REMOVED = "EnvironmentRemoved" on [Instance] in [Reconciled, Event] by Student:
        "Delete the Instance when its data is no longer needed, and create it again.";
    /// The key of the host names of machines cannot be read. Existing addresses stay, and new machines have none.
    HOST_KEY_WAITS = "HostKeyWaits" on [Instance] in [Reconciled, Event] by Administrator:
        "The message names the Secret. If it is missing, the daemon creates it. If it is invalid, restore it.";
    /// The OAuth2 proxy of the Instance has no secret or no key yet. Until then, logging in is not possible.
    OAUTH2_PROXY_WAITS = "OAuth2ProxyWaits" on [Instance] in [Reconciled, Event] by Administrator:
        "The message names the missing part: usually the file `controllers.instance.access.oauth2Proxy.clientSecretFile`.";

    /// The Template does not allow public exposure. Exposed ports are closed.
    NOT_ALLOWED = "NotAllowed" on [Instance] in [PublicExposureReady, Event] by Student, Teacher:
        "Remove `spec.publicExposure`, or ask the teacher to set `allowPublicExposure` in the Template.";
    /// Instances with several environments cannot be exposed.
    SEVERAL_ENVIRONMENTS = "PublicExposureMultipleEnvironments" on [Instance] in [PublicExposureReady, Event] by Teacher:
        "Use a Template with one environment.";
    /// Some requested ports are invalid: a number is out of range, or a port or a name is used twice.
    INVALID_REQUEST = "InvalidRequest" on [Instance] in [PublicExposureReady, Event] by Student:
        "The message names the ports: correct them. The other ports are exposed.";
    /// No public addresses are configured.
    NO_ADDRESSES = "NoAddresses" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "Set `controllers.publicExposure.ipPool`.";
    /// No public address has all requested ports free. Ports that are free are exposed.
    NO_FREE_PORT = "NoFreePort" on [Instance] in [PublicExposureReady, Event] by Student, Administrator:
        "Request port 0, which means any free port, or enlarge `controllers.publicExposure.ipPool`.";
    /// The network policy of the exposure cannot be written.
    NETWORK_POLICY_FAILED = "NetworkPolicyFailed" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "The message comes from the API server: usually a missing permission or an admission rule.";
    /// The Service of the exposure cannot be written.
    SERVICE_FAILED = "ServiceFailed" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "The message comes from the API server: usually a missing permission, a quota for Services, or an admission rule.";
    /// The Service is being deleted. It will be created again with the same address and ports.
    SERVICE_LEAVING = "ServiceLeaving" on [Instance] in [PublicExposureReady, Event] by Administrator:
        "Wait. If it lasts, the message names the finalizers that hold the Service.";
    /// The ports can be reached at the address in the message.
    EXPOSURE_ASSIGNED = "PublicExposureAssigned" on [Instance] in [PublicExposureReady, Event] by Nobody: "Nothing.";
    /// The load balancer has assigned a different address from the requested one.
    OTHER_ADDRESS = "OtherAddress" on [Instance] in [Ready, Stalled, PublicExposureReady, Event] by Administrator:
        "Set `ipPool` and `loadBalancerIpsKey` of `controllers.publicExposure` as the load balancer requires.";
    /// The load balancer has not assigned the address yet.
    WAITING_FOR_ADDRESS = "WaitingForAddress" on [Instance] in [PublicExposureReady, Event] by Nobody:
        "Wait a minute.";
    /// The load balancer rejects the Service of the exposure.
    LOAD_BALANCER_REFUSED = "LoadBalancerRefused" on [Instance] in [Ready, Stalled, PublicExposureReady, Event]
        by Administrator:
        "The message comes from the load balancer: usually none of its pools has the address.";
    /// No load balancer has assigned an address to the Service of the exposure within
    /// `controllers.instance.stalledAfter`.
    LOAD_BALANCER_IGNORED = "LoadBalancerIgnored" on [Instance] in [Ready, Stalled, PublicExposureReady, Event]
        by Administrator:
        "The message has the event about the Service, if there is one. Check the log of the load balancer: usually no load balancer runs, or none of its pools has the address.";

    /// The request for a snapshot is new and is being checked.
    VALIDATING = "Validating" on [InstanceSnapshot] in [Event] by Nobody: "Nothing.";
    /// Another snapshot of the same Instance is being made.
    ANOTHER_SNAPSHOT = "AnotherSnapshot" on [InstanceSnapshot] in [Ready, Event] by Nobody: "Wait: this snapshot is next.";
    /// The API server rejects the Job, for example because of an admission rule. The creation is retried until
    /// `startDeadline`.
    JOB_REFUSED = "JobRefused" on [InstanceSnapshot] in [Ready, Event] by Administrator:
        "The message comes from the API server. If a rule forbids root, use `controllers.snapshot.pusher: buildah`.";
    /// The Job of a deleted snapshot of this name is still being removed.
    PREDECESSOR_LEAVING = "PredecessorLeaving" on [InstanceSnapshot] in [Ready, Event] by Nobody: "Wait.";
    /// The virtual machine has not shut down yet.
    MACHINE_STOPPING = "MachineStopping" on [InstanceSnapshot] in [Ready, Event] by Student:
        "Wait, or shut down the operating system in the machine.";
    /// The disk is still being filled.
    DISK_NOT_READY = "DiskNotReady" on [InstanceSnapshot] in [Ready, Event] by Nobody: "Wait.";
    /// The Job that makes the image is about to be created.
    CREATING = "Creating" on [InstanceSnapshot] in [Ready] by Nobody: "Wait.";
    /// The Job that makes the image has begun.
    CREATION = "Creation" on [InstanceSnapshot] in [Event] by Nobody: "Nothing.";
    /// The Job makes the image.
    JOB_RUNNING = "JobRunning" on [InstanceSnapshot] in [Ready, Event] by Nobody:
        "Wait: a large disk takes tens of minutes.";
    /// A container has failed and is restarted. `OOMKilled`: it exceeded its memory limit.
    CONTAINER_FAILED = "ContainerFailed" on [InstanceSnapshot] in [Ready, Event] on [Instance] in [Ready, Stalled, Event]
        by Teacher, Administrator:
        "Read the log of the pod (`kubectl logs --previous`): usually too little memory (in the Template, or `pusherMemoryLimit` of snapshots), or a rejected login.";
    /// A container cannot be created: a Secret is missing, the image does not contain the program, or, for a
    /// snapshot, the image cannot be pulled.
    CONTAINER_NOT_STARTED = "ContainerNotStarted" on [InstanceSnapshot] in [Ready, Event]
        on [Instance] in [Ready, Stalled, Event] by Teacher, Administrator:
        "The message comes from the container runtime: correct the image in the Template, or the images in `controllers.snapshot`.";
    /// No node can run the pod now. It starts as soon as a node can.
    POD_UNSCHEDULABLE = "PodUnschedulable" on [InstanceSnapshot] in [Ready, Event] on [Instance] in [Ready, Stalled, Event]
        by Teacher, Administrator:
        "The message comes from the scheduler: stop other machines, add nodes, or lower the resources in the Template (for snapshots, `pusherMemoryRequest`).";
    /// The Job has no pod.
    WAITING_FOR_POD = "WaitingForPod" on [InstanceSnapshot] in [Ready, Event] by Administrator:
        "Check the events of the Job: usually a ResourceQuota does not allow `pusherMemoryLimit`.";
    /// The Secret with the login to the registry is missing in the namespace.
    SECRET_MISSING = "SecretMissing" on [InstanceSnapshot] in [Ready, Event] by Administrator:
        "Copy the Secret `controllers.snapshot.vmRegistrySecret` into the namespace.";
    /// The pod of the Job has not started for a minute; or no container of the Instance, or of its upload, has
    /// started in time.
    POD_NOT_STARTED = "PodNotStarted" on [InstanceSnapshot] in [Ready, Event]
        on [Instance] in [Ready, Stalled, Submitted, Event] by Administrator:
        "Check the events of the pod, for example about a volume that cannot be mounted.";
    /// The image is in the registry.
    COMPLETED = "Completed" on [InstanceSnapshot] in [Ready] by Nobody: "Nothing. The message has the name of the image.";
    /// The image was made and pushed.
    CREATED = "Created" on [InstanceSnapshot] in [Event] by Nobody: "Nothing.";
    /// The request cannot be fulfilled: the Instance is running, is not a persistent virtual machine, or does not
    /// exist.
    VALIDATION_ERROR = "ValidationError" on [InstanceSnapshot] in [Ready, Stalled, Event] by Student:
        "The message has the cause. Correct the spec, or delete the snapshot and create another one.";
    /// The Job that makes an image or uploads content has failed or cannot be created.
    CREATION_FAILED = "CreationFailed" on [InstanceSnapshot] in [Ready, Stalled, Event]
        on [Instance] in [Submitted, Event] by Student, Administrator:
        "The message has the cause. Create another snapshot once it is corrected. An upload is retried automatically.";
}
