//! A course of a shared control plane for one test.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::daemon::{Daemon, Options};
use crate::lab::Lab;

/// The objects of [`Lab::create_fixtures`]. They are deleted when the course is dropped, also after a failure.
pub struct Course {
    lab: Arc<Lab>,
    name: String,
    kubeconfig: OnceLock<PathBuf>,
}

impl Lab {
    /// Creates a course with this name, and a student of the same name.
    pub fn course(self: &Arc<Self>, name: &str) -> Course {
        self.create_fixtures(name);
        Course { lab: Arc::clone(self), name: name.to_owned(), kubeconfig: OnceLock::new() }
    }
}

impl Course {
    /// The kubeconfig of the daemon's service account.
    pub fn kubeconfig(&self) -> &Path {
        self.kubeconfig.get_or_init(|| self.lab.service_account())
    }

    /// Starts a daemon that is responsible for the course, with its service account.
    pub fn daemon(&self, config: &str) -> Daemon {
        Daemon::start(&Options { kubeconfig: self.kubeconfig(), selector: &self.name, config })
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        self.lab.delete_fixtures(&self.name);
    }
}
