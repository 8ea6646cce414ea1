//! How a cluster is started.

use std::path::PathBuf;
use std::time::Duration;

/// An issuer whose tokens the API server accepts, beside that of the tests.
#[derive(Debug, Clone)]
pub struct TrustedIssuer {
    /// Its URL.
    pub url: String,
    /// The file with the certificate of its authority, in PEM.
    pub authority: PathBuf,
    /// The client for which the tokens are.
    pub client: String,
}

/// How a cluster is started. With `Options::default()` everything is on except the Gateway API, with one node.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder for logs, keys and data, kept afterwards; `None`: a temporary one.
    pub dir: Option<PathBuf>,
    /// YAML files with CRDs, installed before the controllers start, so that the garbage collector knows them
    /// from the beginning (it looks for new ones only every 30 s).
    pub crds: Vec<PathBuf>,
    /// Whether nodes, pods, storage and virtual machines are simulated; otherwise objects stay as they are written.
    pub simulate: bool,
    /// Whether volumes, and addresses of Services where `load_balancer` is set, are simulated even if `simulate` is not.
    pub storage: bool,
    /// Whether pods are to run, on a [`Node`](crate::node::Node) that the test starts, with `simulate` off: the API server calls
    /// webhooks at the addresses of their pods, as nothing here leads to a Service.
    pub node: bool,
    /// How many nodes are simulated; one holds 2,000 pods.
    pub nodes: usize,
    /// Whether the CRDs of `KubeVirt` and CDI are installed.
    pub kubevirt: bool,
    /// Whether these CRDs have the schemas of their projects, which Go generates. Without them, any field is accepted.
    pub schemas: bool,
    /// Whether the CRDs of the Gateway API are installed.
    pub gateway: bool,
    /// Whether Services of type `LoadBalancer` get the address that they ask for.
    pub load_balancer: bool,
    /// Whether only who may delete an object may name another one as its owner, so that the garbage collector deletes it
    /// with that one (the admission plugin `OwnerReferencesPermissionEnforcement`, which many clusters have not).
    pub owner_references_guarded: bool,
    /// Whether the programs save processor time, as tests want it and a bench does not: they collect garbage less often
    /// (the heap of an API server that serves one of them is small, and would be collected all the time), and the
    /// controllers of which nothing here has objects do not run.
    pub spare: bool,
    /// More issuers of the tokens of people: the claims of their names and groups are those of the tests' own.
    pub issuers: Vec<TrustedIssuer>,
    /// How often quotas are looked at again that nothing has changed, such as those that were made before the CRD of what
    /// they count was known.
    pub quota_period: Duration,
    /// How long an import, a boot and a shut-down of a simulated virtual machine take, each.
    pub machine_delay: Duration,
    /// How long each program has to become ready.
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
            kubevirt: true,
            schemas: true,
            gateway: false,
            load_balancer: true,
            owner_references_guarded: true,
            spare: true,
            issuers: Vec::new(),
            // As by default.
            quota_period: Duration::from_mins(5),
            machine_delay: Duration::from_millis(300),
            timeout: Duration::from_mins(2),
        }
    }
}
