//! The parts of the demo that are off unless their variables are set.

use std::path::Path;

use anyhow::Result;

use crate::automation::Automation;
use crate::bastion::Bastion;
use crate::dashboard::Dashboard;
use crate::images::Images;
use crate::node::Node;
use crate::{exam, metrics, pods};
use cluster::Cluster;
use cluster::keycloak::KeycloakServer;

/// The servers of these parts.
pub struct Parts {
    /// Keycloak, which the always-on parts of the demo use as well.
    pub keycloak: Option<KeycloakServer>,
    /// The dashboard.
    pub dashboard: Option<Dashboard>,
    /// The automatic end of Instances.
    pub automation: Option<Automation>,
    bastion: Option<Bastion>,
    images: Option<Images>,
    exam: bool,
    pods: bool,
    metrics: bool,
    /// The node for these two. It needs root, which `run.sh` checks.
    node: Option<Node>,
}

impl Parts {
    /// Starts the servers of these parts, before the daemon. Keycloak and the dashboard were started before
    /// the control plane.
    pub fn start(
        folder: &Path,
        keycloak: Option<KeycloakServer>,
        dashboard: Option<Dashboard>,
    ) -> Result<Self> {
        let (pods, metrics) = (is_wanted("PODCONFIG"), is_wanted("METRICS"));
        Ok(Self {
            keycloak,
            dashboard,
            automation: Automation::start(folder)?,
            bastion: Bastion::start(folder)?,
            images: Images::start()?,
            exam: is_wanted("EXAM"),
            pods,
            metrics,
            node: if pods || metrics { Some(Node::start(folder)?) } else { None },
        })
    }

    /// The keys below `controllers`.
    pub fn controllers(&self) -> String {
        [
            self.automation.as_ref().map(|_| Automation::controllers()),
            self.bastion.as_ref().map(Bastion::controllers),
            self.images.as_ref().map(|_| Images::controllers()),
            self.exam.then(exam::controllers),
            self.pods.then(pods::controllers),
            self.dashboard.as_ref().map(Dashboard::controllers),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Runs the parts, one after the other.
    pub fn show(&mut self, cluster: &Cluster, root: &Path) -> Result<()> {
        if let Some(bastion) = &self.bastion {
            bastion.show(cluster)?;
        }
        if let Some(images) = &mut self.images {
            images.show(cluster)?;
        }
        if self.exam {
            exam::show(cluster, root)?;
        }
        if let Some(automation) = &self.automation {
            automation.show(cluster)?;
        }
        if let Some(node) = self.node.as_ref().filter(|_| self.pods) {
            pods::show(node, cluster, root)?;
        }
        if let Some(node) = self.node.as_ref().filter(|_| self.metrics) {
            metrics::show(node, cluster)?;
        }
        if let Some(dashboard) = &self.dashboard {
            dashboard.show(cluster, self.keycloak.as_ref())?;
        }
        Ok(())
    }
}

/// Whether the variable of a part is set.
pub fn is_wanted(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| !value.is_empty() && value != "0")
}
