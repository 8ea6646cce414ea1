//! Backups of etcd, and what an administrator does to restore one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Cluster, locked};

impl Cluster {
    /// Copies the data of etcd. The control plane is away meanwhile.
    pub fn back_up(&self, name: &str) -> Result<PathBuf> {
        let backup = self.dir().join(name);
        self.while_stopped(|data| copy(data, &backup))?;
        Ok(backup)
    }

    /// Replaces the data of etcd by a backup: resource versions go backwards.
    pub fn restore(&self, backup: &Path) -> Result<()> {
        self.while_stopped(|data| {
            std::fs::remove_dir_all(data)?;
            copy(backup, data)
        })
    }

    /// Stops the API server, the controller manager and etcd, and starts them again.
    fn while_stopped(&self, action: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let manager = locked(&self.controller_manager).take();
        let has_manager = manager.is_some();
        drop(manager);
        self.stop_apiserver();
        locked(&self.etcd).take();
        action(&self.dir().join("etcd"))?;
        *locked(&self.etcd) = Some(self.programs.etcd()?);
        self.start_apiserver()?;
        if has_manager {
            *locked(&self.controller_manager) = Some(self.programs.kube_controller_manager()?);
        }
        Ok(())
    }
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "cp: {status}");
    Ok(())
}
