//! Causes that only events show, such as a volume that cannot be mounted.
//!
//! Events are not watched, because they have no watch cache and their number is unbounded. A plan asks for the events
//! about the objects that its object waits for ([`About`]). The list runs outside the workers every two minutes,
//! answers all questions about its namespace, and stores one text for each of them ([`Told`]), which the loop then
//! observes. A failed list changes nothing.

mod event;
mod lists;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

pub use self::event::Told;
use self::event::{Event, Involved, Newest};
use self::lists::{Deliver, Question};
pub use self::lists::{EventLists, LONGEST_WAIT};
use super::ObjectKey;
use super::plan::KindInfo;
use super::queue::Priority;
use super::store_set::StoreSet;
use crate::api::text::Text;

/// Events, in the form that every version of Kubernetes lists.
pub const EVENTS: KindInfo = KindInfo { group: "", version: "v1", kind: "Event", plural: "events" };

/// The objects in one namespace that something waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The namespace.
    pub namespace: String,
    /// The uids of the objects.
    pub uids: BTreeSet<String>,
    /// The claims that are known by name only, because other controllers create them. Events before the time are about
    /// others of the same name.
    pub claims: BTreeMap<String, Timestamp>,
    /// The Jobs whose pods are known by the name of the Job only, with the times of creation.
    pub jobs: BTreeMap<String, Timestamp>,
    /// Whether the status has no cause of an earlier event: then a list without an event is no news.
    pub is_unexplained: bool,
}

impl About {
    /// Whether the events about this object count.
    pub fn means(&self, told: &Told) -> bool {
        let is_claim = *told.kind == *"PersistentVolumeClaim" && self.claims.contains_key(&*told.name);
        self.uids.contains(&*told.uid) || is_claim
    }
}

/// The events about the objects of a wait, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Events {
    /// This process has not listed them.
    #[default]
    Unknown,
    /// The events that explain the wait, from the best explanation on.
    Read(Vec<Told>),
}

impl Events {
    /// The event that explains the wait best: of each object the newest one, and of these the newest.
    pub fn told(&self) -> Option<&Told> {
        match self {
            Self::Unknown => None,
            Self::Read(told) => told.first(),
        }
    }
}

/// The last events about each waiting object of one loop.
#[derive(Clone)]
pub struct ObjectEvents {
    lists: EventLists,
    loop_name: &'static str,
    waits: Waits,
    /// Takes the events about an object whose status has the cause of an earlier event.
    explained: Deliver,
    /// Takes the events about another object.
    unexplained: Deliver,
}

/// The waiting objects of a loop.
type Waits = Arc<Mutex<HashMap<ObjectKey, Asked>>>;

/// A waiting object.
struct Asked {
    /// The namespace of its events.
    namespace: Text,
    /// The last ones.
    events: Events,
}

impl ObjectEvents {
    /// The events of a loop, initially unknown. A result that changes them adds its object to the queue.
    pub fn declare(lists: &EventLists, set: &mut StoreSet<'_>) -> Self {
        set.lists(EVENTS);
        let waits = Waits::default();
        let [explained, unexplained] = [false, true].map(|is_unexplained| -> Deliver {
            let (waits, queue) = (Arc::clone(&waits), Arc::clone(set.queue()));
            Arc::new(move |key: &ObjectKey, told: Vec<Told>| {
                let mut waits = waits.lock();
                // An object that no longer waits needs no answer.
                let Some(asked) = waits.get_mut(key) else { return };
                let before = std::mem::replace(&mut asked.events, Events::Read(told));
                let is_first = is_unexplained && before == Events::Unknown && asked.events.told().is_none();
                if before != asked.events && !is_first {
                    queue.add(key.clone(), Priority::Change);
                }
            })
        });
        Self { lists: lists.clone(), loop_name: set.name(), waits, explained, unexplained }
    }

    /// The known events for an object.
    pub fn of(&self, key: &ObjectKey) -> Events {
        self.waits.lock().get(key).map(|asked| asked.events.clone()).unwrap_or_default()
    }

    /// Asks for the events about the objects that an object waits for; `None` if it no longer waits.
    pub fn settle(&self, key: &ObjectKey, about: Option<&About>) {
        match about {
            Some(about) => self.ask(key.clone(), about),
            None => self.forget(key),
        }
    }

    /// Asks for the events about the objects that an object waits for: the lists of the namespace answer until the
    /// object is [forgotten](Self::forget).
    fn ask(&self, key: ObjectKey, about: &About) {
        let is_own = *key.namespace == *about.namespace;
        let namespace = if is_own { key.namespace.clone() } else { about.namespace.as_str().into() };
        self.waits.lock().entry(key.clone()).or_insert(Asked { namespace, events: Events::Unknown });
        let deliver = if about.is_unexplained { &self.unexplained } else { &self.explained };
        self.lists.ask(&about.namespace, (self.loop_name, key), Question::new(about, deliver));
    }

    /// Drops the events of an object that no longer waits.
    pub fn forget(&self, key: &ObjectKey) {
        let asked = self.waits.lock().remove(key);
        if let Some(Asked { namespace, .. }) = asked {
            self.lists.withdraw(&namespace, &(self.loop_name, key.clone()));
        }
    }
}
