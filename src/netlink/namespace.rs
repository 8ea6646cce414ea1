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

/// A network namespace. It exists as long as this handle does, so keep a handle no longer than necessary.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    /// The identity of the namespace (namespaces(7)), device and inode: equal for two handles of the same namespace.
    pub id: (u64, u64),
}

impl Namespace {
    /// Opens a namespace by its path, such as `/proc/1/ns/net`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        Ok(Self { id: (metadata.dev(), metadata.ino()), file })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A thread that may enter namespaces, because no other code runs in it.
#[derive(Default)]
pub struct NamespaceThread {
    /// The runtime that polls the sockets; `None` until the first socket is opened.
    runtime: Option<Rc<Runtime>>,
}

impl NamespaceThread {
    /// Enters a namespace. Sockets that the thread opens afterwards belong to it.
    #[expect(
        clippy::unused_self,
        reason = "`self` proves that the caller runs in a thread that may enter namespaces"
    )]
    pub fn enter(&mut self, namespace: &Namespace) -> io::Result<()> {
        Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?)
    }

    /// Enters a namespace and opens a socket in it. The socket stays in that namespace.
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

/// Runs `work` in a new thread, which ends afterwards.
///
/// # Errors
/// When the thread cannot be started, or panics.
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
