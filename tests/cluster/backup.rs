//! Backups of etcd, and the steps of an administrator who restores one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::Cluster;

impl Cluster {
    /// Copies the data of etcd. The control plane is stopped during the copy.
    pub fn back_up(&self, name: &str) -> Result<PathBuf> {
        let backup = self.dir().join(name);
        self.while_stopped(|data| copy(data, &backup))?;
        Ok(backup)
    }

    /// Replaces the data of etcd with a backup: resource versions go backwards.
    pub fn restore(&self, backup: &Path) -> Result<()> {
        self.while_stopped(|data| {
            std::fs::remove_dir_all(data)?;
            copy(backup, data)
        })
    }

    /// Stops the API server, the controller manager and etcd, and starts them again.
    fn while_stopped(&self, action: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let manager = self.controller_manager.lock().take();
        let has_manager = manager.is_some();
        drop(manager);
        self.stop_apiserver();
        self.etcd.lock().take();
        action(&self.dir().join("etcd"))?;
        *self.etcd.lock() = Some(self.programs.etcd()?);
        self.start_apiserver()?;
        if has_manager {
            *self.controller_manager.lock() = Some(self.programs.kube_controller_manager()?);
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
