//! kube-router, which enforces the network policies of a node with iptables and ipset. It is built once from its Go
//! module.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::Result;

use super::network::{Namespace, forward};
use super::processes::Process;
use super::{Cluster, assets};

/// A running kube-router. It is killed when it is dropped, and its rules disappear with its network namespace.
pub struct KubeRouter(Process);

impl KubeRouter {
    /// Starts only the network policy controller, in the network namespace of a node. It filters the traffic of the
    /// pods whose `hostIP` is the internal address of the Node object with this name.
    pub fn start(cluster: &Cluster, namespace: &Namespace, node: &str) -> Result<Self> {
        let program = assets::kube_router()?;
        // The address of the API server in the kubeconfig is valid in the namespace, too.
        let port = cluster.programs.ports.kube_apiserver.number();
        forward(namespace.run(|| TcpListener::bind((Ipv4Addr::LOCALHOST, port)))?, port);
        let kubeconfig = cluster.programs.kubeconfig("kube-router", Some("system:masters"))?;
        let arguments = [
            format!("--net={}", namespace.path().display()),
            "--".to_owned(),
            program.display().to_string(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--hostname-override={node}"),
            "--run-firewall=true".to_owned(),
            "--run-router=false".to_owned(),
            "--run-service-proxy=false".to_owned(),
            "--health-port=0".to_owned(),
        ];
        let log = cluster.dir().join("kube-router.log");
        Ok(Self(Process::start("kube-router", Path::new("nsenter"), &arguments, log)?))
    }

    /// Fails with the end of its log if it has ended.
    pub fn check(&mut self) -> Result<()> {
        self.0.check()
    }
}
