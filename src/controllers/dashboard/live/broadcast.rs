//! The broadcast of changes to open pages. A page is notified that one of its topics has changed, and reads the change
//! with the token of its user.

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

use super::changes::Changes;
use crate::controllers::dashboard::paths;
use crate::runtime::{ObjectKey, clock};

/// The maximum number of topics whose last change is kept.
const MOST_CHANGED: usize = 20_000;
/// The maximum difference of the clocks of replicas.
const LATE: SignedDuration = SignedDuration::from_secs(2);

/// The topic of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The Instances of a namespace.
    Instances(String),
    /// An Instance, with its snapshots.
    Instance(ObjectKey),
    /// The Templates of a namespace.
    Templates(String),
    /// The shared volumes of a namespace.
    Volumes(String),
    /// A Tenant.
    Tenant(String),
    /// The Workspaces.
    Workspaces,
    /// The Announcements of a namespace.
    Announcements(String),
    /// The Announcements for everyone.
    ForEveryone,
    /// The class of a course: the Tenants with a role in it, and the Instances of its Templates.
    Class(String),
}

/// The form in the address of a stream.
impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instances(namespace) => write!(f, "instances {namespace}"),
            Self::Instance(key) => write!(f, "instance {}/{}", key.namespace, key.name),
            Self::Templates(namespace) => write!(f, "templates {namespace}"),
            Self::Volumes(namespace) => write!(f, "volumes {namespace}"),
            Self::Tenant(name) => write!(f, "tenant {name}"),
            Self::Workspaces => write!(f, "workspaces"),
            Self::Announcements(namespace) => write!(f, "announcements {namespace}"),
            Self::ForEveryone => write!(f, "everyone"),
            Self::Class(course) => write!(f, "class {course}"),
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
                paths::machine(namespace, name).map(Self::Instance).ok_or(())
            }
            "templates" => Ok(Self::Templates(name.to_owned())),
            "volumes" => Ok(Self::Volumes(name.to_owned())),
            "tenant" => Ok(Self::Tenant(name.to_owned())),
            "workspaces" if name.is_empty() => Ok(Self::Workspaces),
            "announcements" => Ok(Self::Announcements(name.to_owned())),
            "everyone" if name.is_empty() => Ok(Self::ForEveryone),
            "class" => Ok(Self::Class(name.to_owned())),
            _ => Err(()),
        }
    }
}

/// The open pages by topic.
pub struct Broadcast {
    pages: Mutex<Pages>,
    /// The maximum number of pages.
    limit: usize,
    /// The number of this replica, which identifies the pages that it has read.
    replica: u64,
    /// The start of the process.
    pub(super) epoch: Instant,
}

/// When a page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The time.
    pub at: Timestamp,
    /// The replica that read the page.
    pub replica: u64,
}

struct Pages {
    by_topic: HashMap<Topic, Vec<Arc<Notify>>>,
    open: usize,
    /// The last change of each topic. A page that was read before a change and listens after it is notified of that
    /// change.
    changed: LruCache<Topic, Timestamp>,
    /// The changed objects of classes.
    of_classes: Changes,
}

impl Broadcast {
    /// Creates a broadcast with a maximum number of open pages.
    pub fn new(limit: usize) -> Arc<Self> {
        let changed = LruCache::new(MOST_CHANGED);
        let pages = Pages { by_topic: HashMap::new(), open: 0, changed, of_classes: Changes::new() };
        // The keys of each process are random.
        let replica = RandomState::new().hash_one(());
        Arc::new(Self { pages: Mutex::new(pages), limit, replica, epoch: Instant::now() })
    }

    /// Returns the time of a page that this replica reads.
    pub fn since(&self, at: Timestamp) -> Since {
        Since { at, replica: self.replica }
    }

    /// Adds a page with its topics and the time when it was read. Returns `None` above the maximum number of pages.
    pub fn listen(self: &Arc<Self>, topics: Vec<Topic>, since: Since) -> Option<Listener> {
        let late = if since.replica == self.replica { SignedDuration::ZERO } else { LATE };
        let notify = Arc::new(Notify::new());
        let mut pages = self.pages.lock();
        if pages.open >= self.limit {
            return None;
        }
        pages.open += 1;
        for topic in &topics {
            pages.by_topic.entry(topic.clone()).or_default().push(Arc::clone(&notify));
            if pages.changed.peek(topic).is_some_and(|changed| *changed + late >= since.at) {
                notify.notify_one();
            }
        }
        drop(pages);
        Some(Listener { broadcast: Arc::clone(self), notify, topics })
    }

    /// Notifies the pages with a topic that it has changed.
    pub fn changed(&self, topic: Topic) {
        let mut pages = self.pages.lock();
        pages.notify(&topic);
        pages.changed.insert(topic, clock::now());
    }

    /// Notifies the pages of a class that one of its objects has changed.
    pub fn class_changed(&self, class: &str, key: ObjectKey) {
        let mut pages = self.pages.lock();
        let (topic, is_read) = (Topic::Class(class.to_owned()), pages.of_classes.add(class, key));
        pages.notify(&topic);
        // Users write labels, which name classes: only those with pages are remembered.
        if is_read {
            pages.changed.insert(topic, clock::now());
        }
    }

    /// Returns the number of the last change. A page calls this before it reads the class.
    pub fn position(&self, class: &str) -> u64 {
        self.pages.lock().of_classes.position(class)
    }

    /// Returns the objects of a class that have changed after a position; `None` if not all changes are known.
    pub fn changed_after(&self, class: &str, position: u64) -> Option<Vec<ObjectKey>> {
        self.pages.lock().of_classes.after(class, position)
    }

    /// Whether the maximum number of pages is open.
    pub fn is_full(&self) -> bool {
        self.open() >= self.limit
    }

    /// Returns the number of open pages.
    pub fn open(&self) -> usize {
        self.pages.lock().open
    }
}

impl Pages {
    /// Notifies the pages with a topic. A page that does not wait now is notified as soon as it waits.
    fn notify(&self, topic: &Topic) {
        self.by_topic.get(topic).into_iter().flatten().for_each(|notify| notify.notify_one());
    }
}

/// An open page, until it is dropped.
pub struct Listener {
    pub(super) broadcast: Arc<Broadcast>,
    notify: Arc<Notify>,
    topics: Vec<Topic>,
}

impl Listener {
    /// Completes when a topic of the page has changed since the last call.
    pub async fn changed(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut pages = self.broadcast.pages.lock();
        pages.open -= 1;
        for topic in &self.topics {
            if let Some(notifys) = pages.by_topic.get_mut(topic) {
                notifys.retain(|notify| !Arc::ptr_eq(notify, &self.notify));
                if notifys.is_empty() {
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
    fn a_page_is_notified_of_its_topics_only() {
        let broadcast = Broadcast::new(10);
        let [ada, bob] = ["tenant-ada", "tenant-bob"].map(|name| Topic::Instances(name.to_owned()));
        let page = broadcast
            .listen(vec![ada.clone(), Topic::Workspaces], broadcast.since(clock::now()))
            .expect("there is room");
        assert!(page.changed().now_or_never().is_none());
        broadcast.changed(bob);
        assert!(page.changed().now_or_never().is_none(), "the topic is of another namespace");
        broadcast.changed(ada);
        broadcast.changed(Topic::Workspaces);
        assert!(page.changed().now_or_never().is_some(), "changes before it waited count, too");
        assert!(page.changed().now_or_never().is_none(), "one notification for all changes");
    }

    #[test]
    fn a_change_between_the_read_and_the_stream_is_not_lost() {
        let broadcast = Broadcast::new(10);
        let begin = clock::now();
        broadcast.changed(Topic::Workspaces);
        let [soon, after] = [1, 3].map(|seconds| clock::now() + SignedDuration::from_secs(seconds));
        // The clock of another replica may be a little ahead or behind.
        let of_another = |at| Since { at, replica: broadcast.replica ^ 1 };
        for (topic, since, is_notified) in [
            (Topic::Workspaces, broadcast.since(begin), true),
            (Topic::Workspaces, broadcast.since(soon), false),
            (Topic::Workspaces, of_another(soon), true),
            (Topic::Workspaces, of_another(after), false),
            (Topic::Tenant("ada".to_owned()), broadcast.since(begin), false),
        ] {
            let page = broadcast.listen(vec![topic], since).expect("there is room");
            assert_eq!(page.changed().now_or_never().is_some(), is_notified, "{since:?}");
        }
    }

    #[test]
    fn a_page_of_a_class_is_notified_of_its_objects_also_between_the_read_and_the_stream() {
        let broadcast = Broadcast::new(10);
        let (begin, topic) = (broadcast.since(clock::now()), vec![Topic::Class("tea".to_owned())]);
        let key = ObjectKey::new("tenant-ada", "vm");
        broadcast.class_changed("tea", key.clone());
        let is_notified =
            |page: Option<Listener>| page.expect("there is room").changed().now_or_never().is_some();
        assert!(!is_notified(broadcast.listen(topic.clone(), begin)), "no page had read the class");
        let position = broadcast.position("tea");
        broadcast.class_changed("net", key.clone());
        broadcast.class_changed("tea", key.clone());
        assert!(is_notified(broadcast.listen(topic.clone(), begin)));
        assert_eq!(broadcast.changed_after("tea", position), Some(vec![key.clone()]));
        let page = broadcast.listen(topic, broadcast.since(clock::now() + SignedDuration::from_secs(9)));
        let page = page.expect("there is room");
        broadcast.class_changed("tea", key);
        assert!(page.changed().now_or_never().is_some());
    }

    #[test]
    fn a_closed_page_makes_room_for_another() {
        let broadcast = Broadcast::new(1);
        let page =
            broadcast.listen(vec![Topic::Workspaces], broadcast.since(clock::now())).expect("there is room");
        assert!(
            broadcast.is_full()
                && broadcast.listen(vec![Topic::Workspaces], broadcast.since(clock::now())).is_none()
        );
        drop(page);
        assert!(broadcast.pages.lock().by_topic.is_empty());
        assert!(broadcast.listen(vec![Topic::Workspaces], broadcast.since(clock::now())).is_some());
    }

    #[test]
    fn a_topic_is_parsed_as_it_is_displayed() {
        for topic in [
            Topic::Instances("tenant-ada".to_owned()),
            Topic::Instance(ObjectKey::new("tenant-ada", "vm.1")),
            Topic::Templates("workspace-tea".to_owned()),
            Topic::Volumes("workspace-tea".to_owned()),
            Topic::Tenant("ada".to_owned()),
            Topic::Workspaces,
            Topic::Announcements("workspace-tea".to_owned()),
            Topic::ForEveryone,
            Topic::Class("tea".to_owned()),
        ] {
            assert_eq!(topic.to_string().parse(), Ok(topic));
        }
        for text in ["", "nothing", "instance x", "instance a/../b", "workspaces x"] {
            assert_eq!(text.parse::<Topic>(), Err(()), "{text:?}");
        }
    }
}
