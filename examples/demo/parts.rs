//! The parts of the demo that are off unless their variables are set.

use std::path::Path;

use anyhow::Result;

use crate::automation::Automation;
use crate::bastion::Bastion;
use crate::cluster::Cluster;
use crate::cluster::keycloak::KeycloakServer;
use crate::images::Images;
use crate::pods::PodNetworks;
use crate::{exam, people};

/// What has been started for them.
pub struct Parts {
    /// Accounts, which are shown by the parts of the demo that are always on.
    pub keycloak: Option<KeycloakServer>,
    /// How Instances end.
    pub automation: Option<Automation>,
    bastion: Option<Bastion>,
    images: Option<Images>,
    exam: bool,
    pods: Option<PodNetworks>,
}

impl Parts {
    /// Starts the servers that they need, before the daemon.
    pub fn start(folder: &Path) -> Result<Self> {
        Ok(Self {
            keycloak: people::keycloak()?,
            automation: Automation::start(folder)?,
            bastion: Bastion::start(folder)?,
            images: Images::start()?,
            exam: exam::is_wanted(),
            pods: PodNetworks::start(folder)?,
        })
    }

    /// The keys below `controllers`.
    pub fn controllers(&self) -> String {
        [
            self.automation.as_ref().map(|_| Automation::controllers()),
            self.bastion.as_ref().map(Bastion::controllers),
            self.images.as_ref().map(|_| Images::controllers()),
            self.exam.then(exam::controllers),
            self.pods.as_ref().map(|_| PodNetworks::controllers()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Shows them, one after the other.
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
        self.pods.as_ref().map_or(Ok(()), |pods| pods.show(cluster, root))
    }
}
