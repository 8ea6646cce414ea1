//! The keys of the tenant and workspace loops.

use std::collections::BTreeMap;

use macro_rules_attribute::apply;

use super::bound::POSITIVE;
use super::duration::ConfigDuration;
use super::formats;
use super::keys::{choice, keys};
use super::network::Network;
use crate::api::labels;
use crate::api::quantity::Quantity;

keys! {
    /// The tenant loop.
    pub struct TenantConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Tenants that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 8,
        /// Whether a Tenant gets only an account until their e-mail address is confirmed in Keycloak.
        pub wait_user_verification: bool = true,
        /// The time between two checks whether a Tenant has confirmed their e-mail address, at least `10s`.
        pub verification_poll: ConfigDuration where "10s".. = ConfigDuration::from_secs(300),
        /// How long a personal namespace without Instances and Templates is kept after the last login.
        pub keep_alive: ConfigDuration where POSITIVE = ConfigDuration::from_secs(24 * 3600),
        /// The Workspaces that every Tenant is enrolled in; they do not count for the label `no-workspaces`.
        pub base_workspaces: Vec<String> as [formats::OBJECT_NAME],
        /// The labels of every personal namespace, in addition to the labels that the loop sets.
        #[schemars(transform = formats::labels)]
        pub namespace_labels: BTreeMap<String, String> = BTreeMap::from([(labels::RESOURCES_REPLICATION.to_owned(), "true".to_owned())]),
        /// The personal volumes of Tenants (MyDrive).
        pub my_drive: MyDrive,
        /// The `ClusterRole` that a Tenant has in their sandbox namespace.
        pub sandbox_cluster_role: String as formats::OBJECT_NAME = "crownlabs-sandbox".to_owned(),
        /// The labels of every sandbox namespace, in addition to the labels that the loop sets. The default denies pods
        /// the privileges of a node (Pod Security Standards).
        #[schemars(transform = formats::labels)]
        pub sandbox_labels: BTreeMap<String, String> = BTreeMap::from([(labels::POD_SECURITY.to_owned(), "baseline".to_owned())]),
        /// The upper limits of a Tenant's quota, which is the sum over its Workspaces; 0 for no limit.
        pub quota_caps: QuotaCaps,
        /// The maximum number of objects of each kind in the namespaces of a Tenant.
        pub count_quotas: CountQuotas,
        /// Personal workspaces, where Tenants have their own Templates.
        pub personal_workspace: PersonalWorkspaceConfig,
        /// Where the managers of a Workspace may read and write Instances: in the whole cluster (`cluster`), or only in
        /// the personal namespaces of its Tenants (`course`); with `course`, the webhooks also compare the Template.
        pub managers: Managers,
        /// The `ClusterRole` that a Tenant has in their personal namespace, and with `managers: course` also the managers of
        /// their courses. The values of the chart set `crownlabs-own-instances`, which adds the consoles of machines.
        pub instances_cluster_role: String as formats::OBJECT_NAME = "crownlabs-manage-instances".to_owned(),
        /// Whether sandbox namespaces get the `NetworkPolicies` of personal namespaces. The values of the chart turn this
        /// on; the Go operators created none there.
        pub sandbox_network_policies: bool,
        /// The outgoing traffic of personal namespaces, and of sandbox namespaces with `sandboxNetworkPolicies`.
        pub egress: Egress,
    }

    /// The outgoing traffic of the namespaces of Tenants.
    pub struct Egress {
        /// Whether a `NetworkPolicy` restricts it to DNS, the same namespace, the NFS servers of volumes, `allow`, and
        /// all other addresses except `deny`.
        pub enabled: bool,
        /// The networks that pods may reach although `deny` contains them, such as the network of a registry.
        pub allow: Vec<Network>,
        /// The networks that pods must not reach: nodes, the control plane, pods, Services and internal networks. The
        /// metadata services of clouds, such as `169.254.0.0/16`, are always denied.
        pub deny: Vec<Network>,
    }

    /// The maximum number of objects of each kind in the namespaces of a Tenant, as limits `count/…` in its
    /// `ResourceQuota`s.
    pub struct CountQuotas {
        /// Whether these limits apply. The values of the chart turn them on; the Go operators had no such limits.
        pub enabled: bool,
        /// The limits in a sandbox, where a Tenant creates any objects that their role allows; 0 for no limit.
        pub sandbox: ObjectCounts = ObjectCounts {
            config_maps: 30,
            secrets: 30,
            services: 20,
            persistent_volume_claims: 10,
            instances: 10,
            instance_snapshots: 10,
            templates: 10,
        },
        /// The limits in a personal namespace, where objects that the daemon creates for Instances also count; 0 for no
        /// limit. The quota of the Tenant limits the number of Instances in any case.
        pub personal: ObjectCounts = ObjectCounts {
            config_maps: 100,
            secrets: 300,
            services: 300,
            persistent_volume_claims: 300,
            instances: 0,
            instance_snapshots: 100,
            templates: 100,
        },
    }

    /// The maximum number of objects of each kind in a namespace; 0 for no limit.
    pub struct ObjectCounts {
        /// The number of `ConfigMap`s; Kubernetes creates one in each namespace.
        pub config_maps: u32 as 0..=1_000_000,
        /// The number of Secrets.
        pub secrets: u32 as 0..=1_000_000,
        /// The number of Services.
        pub services: u32 as 0..=1_000_000,
        /// The number of persistent volume claims.
        pub persistent_volume_claims: u32 as 0..=1_000_000,
        /// The number of Instances.
        pub instances: u32 as 0..=1_000_000,
        /// The number of snapshots.
        pub instance_snapshots: u32 as 0..=1_000_000,
        /// The number of Templates.
        pub templates: u32 as 0..=1_000_000,
    }

    /// The personal volumes of Tenants (MyDrive).
    pub struct MyDrive {
        /// The namespace of the claims, which must exist.
        pub namespace: String as formats::DNS_LABEL = "mydrive-pvcs".to_owned(),
        /// The size of a volume; existing volumes are enlarged to it, but never shrunk.
        pub size: Quantity as formats::QUANTITY = formats::quantity("1Gi"),
        /// The storage class of new volumes, which must provide NFS.
        pub storage_class_name: String as formats::OBJECT_NAME = "rook-nfs".to_owned(),
        /// Whether the volume of a deleted Tenant is kept (`retain`) or deleted (`delete`); a new Tenant with the
        /// same name and e-mail address gets the kept volume.
        pub on_tenant_deletion: OnTenantDeletion,
        /// The image of the Job that sets the owner of a new volume; it must contain `chown`.
        pub provisioning_image: String as formats::IMAGE = "busybox".to_owned(),
    }

    /// The upper limits of a Tenant's quota; 0 for no limit.
    pub struct QuotaCaps {
        /// The number of processor cores; 0 for no limit.
        pub cpu: usize as 0..=1_000_000 = 25,
        /// The memory; 0 for no limit.
        pub memory: Quantity as formats::QUANTITY = formats::quantity("50G"),
        /// The number of Instances; 0 for no limit.
        pub instances: usize as 0..=1_000_000 = 10,
    }

    /// Personal workspaces, where Tenants have their own Templates.
    pub struct PersonalWorkspaceConfig {
        /// Whether a Tenant with `spec.personalWorkspace` may create Templates in its personal namespace.
        pub enabled: bool,
    }

    /// The workspace loop.
    pub struct WorkspaceConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Workspaces that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 4,
    }
}

/// Where the managers of a Workspace have rights on Instances.
#[apply(choice)]
pub enum Managers {
    /// In the whole cluster.
    #[default]
    Cluster,
    /// In the personal namespaces of the Tenants of the Workspace.
    Course,
}

/// The treatment of the volume of a deleted Tenant.
#[apply(choice)]
pub enum OnTenantDeletion {
    /// The volume is kept.
    #[default]
    Retain,
    /// The volume is deleted.
    Delete,
}

impl CountQuotas {
    /// The limits in the form of a `ResourceQuota`; empty if they are off.
    pub fn hard(&self, limits: &ObjectCounts) -> BTreeMap<String, Quantity> {
        let limits = [
            ("configmaps", limits.config_maps),
            ("secrets", limits.secrets),
            ("services", limits.services),
            ("persistentvolumeclaims", limits.persistent_volume_claims),
            ("instances.crownlabs.polito.it", limits.instances),
            ("instancesnapshots.crownlabs.polito.it", limits.instance_snapshots),
            ("templates.crownlabs.polito.it", limits.templates),
        ];
        let limits = limits.into_iter().filter(|(_, limit)| self.enabled && *limit > 0);
        limits.map(|(name, limit)| (format!("{COUNT}{name}"), Quantity::from_int(limit.into()))).collect()
    }
}

/// The prefix of a `ResourceQuota` entry that limits the number of objects of a kind.
pub const COUNT: &str = "count/";
