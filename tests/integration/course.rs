//! A course of a shared control plane for one test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::daemon::{Daemon, Options};
use crate::lab::Lab;

/// The names of the courses that exist, each with the address of its control plane in memory.
static NAMES: Mutex<BTreeSet<(usize, String)>> = Mutex::new(BTreeSet::new());

/// The objects of [`Lab::create_fixtures`]. They are deleted when the course is dropped, also after a failure.
pub struct Course {
    lab: Arc<Lab>,
    name: String,
    kubeconfig: OnceLock<PathBuf>,
}

impl Lab {
    /// Creates a course with this name, and a student of the same name. Panics if another test uses the name,
    /// because each of the two would change the objects of the other.
    pub fn course(self: &Arc<Self>, name: &str) -> Course {
        let is_new = NAMES.lock().insert((Arc::as_ptr(self).addr(), name.to_owned()));
        assert!(is_new, "another test uses the course {name}");
        let course = Course { lab: Arc::clone(self), name: name.to_owned(), kubeconfig: OnceLock::new() };
        self.create_fixtures(name);
        course
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
        NAMES.lock().remove(&(Arc::as_ptr(&self.lab).addr(), self.name.clone()));
    }
}

#[test]
#[should_panic(expected = "another test uses the course twice")]
fn a_course_name_in_use_is_rejected() {
    let lab = Lab::shared_unsimulated();
    let _first = lab.course("twice");
    lab.course("twice");
}
