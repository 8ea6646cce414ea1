//! The table of the control loops: one line each.
//!
//! Each line has the purpose of the loop, its key in the configuration, the type of its configuration, and its
//! reconciler with its kind. The key is also the name of the loop's folder in `controllers`. A `leader` loop works in
//! the replica that holds the lease. A `replica` loop works in every replica, and a `node` loop is a replica loop for a
//! process on every node.
//!
//! The table determines the keys below `controllers`, the loops that `run` starts, the output of `plan`, readiness, the
//! labels of metrics, the list in the README, and the RBAC test.

/// Passes the table to another macro.
macro_rules! for_each_loop {
    ($with:ident) => {
        $with! {
            /// Workspaces: namespaces, RBAC and enrolment of courses.
            workspace: WorkspaceConfig => leader WorkspaceReconciler;
            /// Tenants: namespaces, quotas, RBAC, network policies, personal volumes and accounts of users.
            tenant: TenantConfig => leader TenantReconciler;
            /// Templates: conditions that say what is wrong with them, and why their environments cannot start now.
            template: TemplateConfig => leader TemplateReconciler;
            /// Instances: virtual machines and containers, their Services and Ingresses.
            instance: InstanceConfig => leader InstanceReconciler;
            /// Public exposure: ports of Instances on public IP addresses.
            public_exposure: PublicExposureConfig => leader PublicExposureReconciler;
            /// Shared volumes: NFS folders of courses.
            shared_volume: SharedVolumeConfig => leader SharedVolumeReconciler;
            /// Mirrored volumes: claims that have the volume of another namespace's claim.
            pvc_mirror: PvcMirrorConfig => leader PvcMirrorReconciler;
            /// Snapshots: container images made from the disks of stopped virtual machines.
            snapshot: SnapshotConfig => leader SnapshotReconciler;
            /// Inactivity: warns tenants, then stops or deletes unused Instances.
            inactivity: InactivityConfig => leader InactivityReconciler;
            /// Expiration: warns tenants, then deletes Instances that are older than their Template allows.
            expiration: ExpirationConfig => leader ExpirationReconciler;
            /// Exams, first part: stops Instances whose status URL reports that they are no longer needed.
            termination: TerminationConfig => leader TerminationReconciler;
            /// Exams, second part: uploads the content of Instances that were stopped.
            submission: SubmissionConfig => leader SubmissionReconciler;
            /// Image lists: what registries offer to Templates.
            image_list: ImageListConfig => leader ImageListReconciler;
            /// Pod networks, the leader's part: addresses and state of additional interfaces of pods.
            pod_config: PodConfigConfig => leader PodConfigReconciler;
            /// SSH bastion: the file of all Tenants' public keys, and the host keys of its SSH server.
            bastion: BastionConfig => replica BastionLoop;
            /// SSH tracker: counts the SSH connections that the bastion opens to Instances.
            ssh_tracker: SshTrackerConfig => replica SshTrackerLoop;
            /// Web SSH: terminals of machines in the browser.
            web_ssh: WebSshConfig => replica WebSshLoop;
            /// Exam agent: an HTTP API for exam servers to create, watch and delete Instances.
            exam_agent: ExamAgentConfig => replica ExamAgentLoop;
            /// Dashboard: web pages where users see, start and stop their Instances.
            dashboard: DashboardConfig => replica DashboardLoop;
            /// Login: lets users into machines at hosts of their own.
            login: LoginConfig => replica LoginLoop;
            /// Pod networks on a node: links between its pods and bridges, with the addresses of `podConfig`.
            pod_config_node: PodConfigNodeConfig => node PodConfigNodeLoop;
            /// Instance metrics: the resource usage of Instances in containers, from the runtime of each node.
            instance_metrics: InstanceMetricsConfig => node InstanceMetricsLoop;
        }
    };
}
pub(crate) use for_each_loop;

/// Whether a loop runs, and how many of its objects it reconciles concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toggle {
    /// `enabled`.
    pub enabled: bool,
    /// `concurrency`.
    pub concurrency: usize,
}
