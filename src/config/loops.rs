//! The table of the control loops: one line each.
//!
//! A line has what the loop is for, its key in the configuration (which is also the name of its folder in
//! `controllers`), the type of its configuration, and the type of its reconciler. From it derive the keys
//! below `controllers`, what `run` starts, what `plan` prints, readiness, the labels of metrics, the list in
//! the README, and the test of the RBAC.

/// Hands the table to another macro.
macro_rules! for_each_loop {
    ($with:ident) => {
        $with! {
            /// Workspaces: namespaces, RBAC and enrolment of courses.
            workspace: WorkspaceConfig => WorkspaceReconciler;
            /// Tenants: namespaces, quotas, RBAC, network policies, personal volumes and accounts of users.
            tenant: TenantConfig => TenantReconciler;
            /// Instances: virtual machines and containers, their Services and Ingresses.
            instance: InstanceConfig => InstanceReconciler;
            /// Public exposure: ports of Instances on public IP addresses.
            public_exposure: PublicExposureConfig => PublicExposureReconciler;
            /// Shared volumes: NFS folders of courses.
            shared_volume: SharedVolumeConfig => SharedVolumeReconciler;
            /// Snapshots: container images made from the disks of stopped virtual machines.
            snapshot: SnapshotConfig => SnapshotReconciler;
            /// Inactivity: warns tenants, then stops or deletes Instances that nobody uses.
            inactivity: InactivityConfig => InactivityReconciler;
            /// Expiration: warns tenants, then deletes Instances that are older than their Template allows.
            expiration: ExpirationConfig => ExpirationReconciler;
            /// Exams, first part: stops Instances whose status URL says that they are not needed any more.
            termination: TerminationConfig => TerminationReconciler;
            /// Exams, second part: uploads the content of Instances that were stopped.
            submission: SubmissionConfig => SubmissionReconciler;
        }
    };
}
pub(crate) use for_each_loop;

/// Whether a loop runs, and how many of its objects it works on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toggle {
    /// `enabled`.
    pub enabled: bool,
    /// `concurrency`.
    pub concurrency: usize,
}
