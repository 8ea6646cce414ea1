//! Network namespaces, and the thread that enters them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::thread;

use nix::sched::{CloneFlags, setns};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::socket::Socket;

/// The name of the threads, in at most 15 bytes.
const THREAD: &str = "pod-network";

/// A network namespace. It lives as long as this handle does, so a handle is kept no longer than it is used.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    id: (u64, u64),
}

impl Namespace {
    /// Opens a namespace by its path, such as `/proc/1/ns/net`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        Ok(Self { id: (metadata.dev(), metadata.ino()), file })
    }

    /// What two handles of the same namespace have in common (namespaces(7)): device and inode.
    pub fn id(&self) -> (u64, u64) {
        self.id
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A thread that may enter namespaces, because nothing else runs in it.
#[derive(Default)]
pub struct NamespaceThread {
    /// What waits for the sockets; `None` until there is one.
    runtime: Option<Rc<Runtime>>,
}

impl NamespaceThread {
    /// Enters a namespace. What the thread opens from now on belongs to it.
    #[expect(clippy::unused_self, reason = "who has it is in a thread that may do this")]
    pub fn enter(&mut self, namespace: &Namespace) -> io::Result<()> {
        Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?)
    }

    /// Enters a namespace, and opens a socket in it, which stays there.
    pub fn socket(&mut self, namespace: &Namespace) -> io::Result<Socket> {
        self.enter(namespace)?;
        Socket::open(self.runtime()?)
    }

    fn runtime(&mut self) -> io::Result<Rc<Runtime>> {
        if let Some(runtime) = &self.runtime {
            return Ok(Rc::clone(runtime));
        }
        let runtime = Rc::new(Builder::new_current_thread().enable_io().enable_time().build()?);
        Ok(Rc::clone(self.runtime.insert(runtime)))
    }
}

/// Does something in a thread of its own, which ends with it.
///
/// # Errors
/// When the thread cannot be started, or has panicked.
pub async fn in_thread<T: Send + 'static>(
    work: impl FnOnce(&mut NamespaceThread) -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
        // The receiver is gone if the process is about to end.
        let _ = sender.send(work(&mut NamespaceThread::default()));
    })?;
    receiver.await.map_err(|_| io::Error::other("the thread has panicked"))
}
