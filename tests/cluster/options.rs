//! The options of a cluster.

use std::path::PathBuf;
use std::time::Duration;

/// An issuer whose tokens the API server accepts, in addition to the issuer of the tests.
#[derive(Debug, Clone)]
pub struct TrustedIssuer {
    /// Its URL.
    pub url: String,
    /// The file with the certificate of its authority, in PEM.
    pub authority: PathBuf,
    /// The client of the tokens.
    pub client: String,
}

/// The options of a cluster. With `Options::default()` everything is on except the Gateway API, with one node.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder for logs, keys and data, kept afterwards; `None`: a temporary one.
    pub dir: Option<PathBuf>,
    /// YAML files with CRDs, installed before the controllers start, so that the garbage collector knows them
    /// from the beginning (it looks for new ones only every 30 s).
    pub crds: Vec<PathBuf>,
    /// Whether nodes, pods, storage and virtual machines are simulated; otherwise objects stay as they are written.
    pub simulate: bool,
    /// Whether volumes are simulated even if `simulate` is off, and addresses of Services if `load_balancer` is set.
    pub storage: bool,
    /// Whether pods run, on a [`Node`](crate::node::Node) that the test starts, with `simulate` off. The API server
    /// calls webhooks at the addresses of their pods, because Services are not routed here.
    pub node: bool,
    /// How many nodes are simulated; one holds 2,000 pods.
    pub nodes: usize,
    /// Whether the cluster has the usual additions of administrators: a default storage class, a storage class for
    /// MyDrive, a default Ingress class, nodes marked by KubeVirt, and the import Secret of CDI.
    pub furnished: bool,
    /// Whether the CRDs of `KubeVirt` and CDI are installed.
    pub kubevirt: bool,
    /// Whether these CRDs have the schemas of their projects, which Go generates. Without them, any field is accepted.
    pub schemas: bool,
    /// Whether the CRDs of the Gateway API are installed.
    pub gateway: bool,
    /// Whether Services of type `LoadBalancer` get the requested address.
    pub load_balancer: bool,
    /// Whether only users who may delete an object may name another object as its owner, so that the garbage collector
    /// deletes it with its owner (the admission plugin `OwnerReferencesPermissionEnforcement`, which many clusters do
    /// not have).
    pub owner_references_guarded: bool,
    /// Whether the API server keeps the data sources of claims in other namespaces (the feature gate
    /// `CrossNamespaceVolumeDataSource`, which is off by default).
    pub cross_namespace_volumes: bool,
    /// Whether the programs save processor time, which suits tests but not a bench. They collect garbage less often
    /// (the heap of an API server for one test is small, and would be collected all the time), and the controllers
    /// without objects here do not run.
    pub spare: bool,
    /// More issuers of user tokens. The claims with names and groups are the same as in the tests' own issuer.
    pub issuers: Vec<TrustedIssuer>,
    /// The interval between two checks of unchanged quotas, such as quotas that are older than the CRD of the resource
    /// that they count.
    pub quota_period: Duration,
    /// How long an import, a boot and a shut-down of a simulated virtual machine take, each.
    pub machine_delay: Duration,
    /// How long each program may take to become ready.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dir: None,
            crds: Vec::new(),
            simulate: true,
            storage: false,
            node: false,
            nodes: 1,
            furnished: true,
            kubevirt: true,
            schemas: true,
            gateway: false,
            load_balancer: true,
            owner_references_guarded: true,
            cross_namespace_volumes: false,
            spare: true,
            issuers: Vec::new(),
            // The default of Kubernetes.
            quota_period: Duration::from_mins(5),
            machine_delay: Duration::from_millis(300),
            timeout: Duration::from_mins(2),
        }
    }
}
