//! Which open pages a change concerns. A page learns that something has changed, never what: it reads that with its user's token.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;
use std::sync::Arc;

use hashlink::LruCache;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::controllers::dashboard::route::key;
use crate::runtime::{ObjectKey, clock};

/// Of how many things it is known when they have changed last. All of a cluster change together at most when a course begins.
const MOST_CHANGED: usize = 20_000;
/// By how much the clocks of replicas may differ.
const LATE: SignedDuration = SignedDuration::from_secs(2);

/// Something that a page shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The Instances of a namespace.
    Instances(String),
    /// An Instance, with its snapshots.
    Instance(ObjectKey),
    /// The Templates of a namespace.
    Templates(String),
    /// A Tenant.
    Tenant(String),
    /// The Workspaces.
    Workspaces,
}

/// As it is written into the address of a stream.
impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instances(namespace) => write!(f, "instances {namespace}"),
            Self::Instance(key) => write!(f, "instance {}/{}", key.namespace, key.name),
            Self::Templates(namespace) => write!(f, "templates {namespace}"),
            Self::Tenant(name) => write!(f, "tenant {name}"),
            Self::Workspaces => write!(f, "workspaces"),
        }
    }
}

impl FromStr for Topic {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, name) = text.split_once(' ').unwrap_or((text, ""));
        match kind {
            "instances" => Ok(Self::Instances(name.to_owned())),
            "instance" => {
                let (namespace, name) = name.split_once('/').ok_or(())?;
                key(namespace, name).map(Self::Instance).ok_or(())
            }
            "templates" => Ok(Self::Templates(name.to_owned())),
            "tenant" => Ok(Self::Tenant(name.to_owned())),
            "workspaces" if name.is_empty() => Ok(Self::Workspaces),
            _ => Err(()),
        }
    }
}

/// The open pages by what they show.
pub struct Hub {
    pages: Mutex<Pages>,
    /// The most pages.
    limit: usize,
    /// By which a replica knows the pages that it has read itself.
    replica: u64,
    /// When it began.
    epoch: Instant,
}

/// When a page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The time, …
    pub at: Timestamp,
    /// … by the clock of this replica.
    pub replica: u64,
}

struct Pages {
    by_topic: HashMap<Topic, Vec<Arc<Notify>>>,
    open: usize,
    /// When something has changed last, of what has changed not long ago: a page that was read before it, and begins to listen after
    /// it, hears of it.
    changed: LruCache<Topic, Timestamp>,
}

impl Hub {
    /// For so many open pages.
    pub fn new(limit: usize) -> Arc<Self> {
        let pages = Pages { by_topic: HashMap::new(), open: 0, changed: LruCache::new(MOST_CHANGED) };
        // Each process has other ones.
        let replica = RandomState::new().hash_one(());
        Arc::new(Self { pages: Mutex::new(pages), limit, replica, epoch: Instant::now() })
    }

    /// A page that is read at a time.
    pub fn since(&self, at: Timestamp) -> Since {
        Since { at, replica: self.replica }
    }

    /// A page that shows something, as it was then, begins to listen; `None` if there are too many already.
    pub fn listen(self: &Arc<Self>, topics: Vec<Topic>, since: Since) -> Option<Listener> {
        let late = if since.replica == self.replica { SignedDuration::ZERO } else { LATE };
        let bell = Arc::new(Notify::new());
        let mut pages = self.pages.lock();
        if pages.open >= self.limit {
            return None;
        }
        pages.open += 1;
        for topic in &topics {
            pages.by_topic.entry(topic.clone()).or_default().push(Arc::clone(&bell));
            if pages.changed.peek(topic).is_some_and(|changed| *changed + late >= since.at) {
                bell.notify_one();
            }
        }
        drop(pages);
        Some(Listener { hub: Arc::clone(self), bell, topics })
    }

    /// Something has changed.
    pub fn changed(&self, topic: Topic) {
        let mut pages = self.pages.lock();
        // One that does not wait now is told when it does.
        pages.by_topic.get(&topic).into_iter().flatten().for_each(|bell| bell.notify_one());
        pages.changed.insert(topic, clock::now());
    }

    /// Whether no further page can listen.
    pub fn is_full(&self) -> bool {
        self.open() >= self.limit
    }

    /// How many pages are open.
    pub fn open(&self) -> usize {
        self.pages.lock().open
    }
}

/// An open page, until it is dropped.
pub struct Listener {
    hub: Arc<Hub>,
    bell: Arc<Notify>,
    topics: Vec<Topic>,
}

impl Listener {
    /// Completes once something of what the page shows has changed since the last time.
    pub async fn changed(&self) {
        self.bell.notified().await;
    }

    /// A time that is the same for all pages, and in the past.
    pub fn epoch(&self) -> Instant {
        self.hub.epoch
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut pages = self.hub.pages.lock();
        pages.open -= 1;
        for topic in &self.topics {
            if let Some(bells) = pages.by_topic.get_mut(topic) {
                bells.retain(|bell| !Arc::ptr_eq(bell, &self.bell));
                if bells.is_empty() {
                    pages.by_topic.remove(topic);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_page_hears_of_what_it_shows_and_of_nothing_else() {
        let hub = Hub::new(10);
        let [ada, bob] = ["tenant-ada", "tenant-bob"].map(|name| Topic::Instances(name.to_owned()));
        let page =
            hub.listen(vec![ada.clone(), Topic::Workspaces], hub.since(clock::now())).expect("there is room");
        assert!(page.changed().now_or_never().is_none());
        hub.changed(bob);
        assert!(page.changed().now_or_never().is_none(), "of another namespace");
        hub.changed(ada);
        hub.changed(Topic::Workspaces);
        assert!(page.changed().now_or_never().is_some(), "also what happened before it waited");
        assert!(page.changed().now_or_never().is_none(), "once for all of it");
    }

    #[test]
    fn what_changes_between_the_read_and_the_first_word_is_heard_of() {
        let hub = Hub::new(10);
        let begin = clock::now();
        hub.changed(Topic::Workspaces);
        let [soon, after] = [1, 3].map(|seconds| clock::now() + SignedDuration::from_secs(seconds));
        // The clock of another replica may be a little before or behind.
        let of_another = |at| Since { at, replica: hub.replica ^ 1 };
        for (topic, since, is_told) in [
            (Topic::Workspaces, hub.since(begin), true),
            (Topic::Workspaces, hub.since(soon), false),
            (Topic::Workspaces, of_another(soon), true),
            (Topic::Workspaces, of_another(after), false),
            (Topic::Tenant("ada".to_owned()), hub.since(begin), false),
        ] {
            let page = hub.listen(vec![topic], since).expect("there is room");
            assert_eq!(page.changed().now_or_never().is_some(), is_told, "{since:?}");
        }
    }

    #[test]
    fn a_page_that_was_closed_leaves_nothing_and_its_place() {
        let hub = Hub::new(1);
        let page = hub.listen(vec![Topic::Workspaces], hub.since(clock::now())).expect("there is room");
        assert!(hub.is_full() && hub.listen(vec![Topic::Workspaces], hub.since(clock::now())).is_none());
        drop(page);
        assert!(hub.pages.lock().by_topic.is_empty());
        assert!(hub.listen(vec![Topic::Workspaces], hub.since(clock::now())).is_some());
    }

    #[test]
    fn a_topic_is_read_as_it_is_written() {
        for topic in [
            Topic::Instances("tenant-ada".to_owned()),
            Topic::Instance(ObjectKey::new("tenant-ada", "vm.1")),
            Topic::Templates("workspace-tea".to_owned()),
            Topic::Tenant("ada".to_owned()),
            Topic::Workspaces,
        ] {
            assert_eq!(topic.to_string().parse(), Ok(topic));
        }
        for text in ["", "nothing", "instance x", "instance a/../b", "workspaces x"] {
            assert_eq!(text.parse::<Topic>(), Err(()), "{text:?}");
        }
    }
}
