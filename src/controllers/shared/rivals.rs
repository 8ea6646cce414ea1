//! The other installations in the marks of Tenants and Workspaces. They manage the same objects, or did so earlier.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::responsibility::{Mark, Responsibility};
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;

/// The maximum number of rivals that are kept. Only administrators and daemons write marks.
const MOST: usize = 32;

/// Another installation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rival {
    /// Its Lease, `namespace/name`.
    pub lease: String,
    /// Its selector when it took the objects.
    pub selector: String,
}

/// The other installations in marks. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Rivals(Arc<Shared>);

#[derive(Default, derive_more::Debug)]
struct Shared {
    found: watch::Sender<BTreeSet<Rival>>,
    /// The installations whose Leases are free.
    gone: RwLock<BTreeSet<Rival>>,
    /// Called for each installation that no longer runs.
    #[debug(skip)]
    listeners: RwLock<Vec<Listener>>,
}

/// Takes an installation that no longer runs.
type Listener = Box<dyn Fn(&Rival) + Send + Sync>;

/// Collects the installations that the objects of a store name from now on. The objects of one that no longer runs are
/// added to the queue of the loop, which replaces their marks. If an installation replaces a mark of this one, it runs.
pub fn follow<T: Kind>(set: &StoreSet<'_>, store: &Arc<Store<T>>, responsibility: &Responsibility) {
    let (marked, queue) = (Arc::clone(store), Arc::clone(set.queue()));
    let ours = Responsibility { rivals: Rivals::default(), ..responsibility.clone() };
    responsibility.rivals.0.listeners.write().push(Box::new(move |gone| {
        for object in marked.objects().filter(|object| ours.rival(object).as_ref() == Some(gone)) {
            queue.add(ObjectKey::of(&*object), Priority::Change);
        }
    }));
    let responsibility = responsibility.clone();
    store.subscribe(move |change| {
        let found = change.new.as_deref().and_then(|object| responsibility.rival(object));
        let Some(rival) = found else { return };
        let lease = |object: &Object<T>| Mark::of(object)?.lease.map(str::to_owned);
        let before = change.old.as_deref().and_then(lease);
        if before.is_some() && before == responsibility.lease {
            responsibility.rivals.set_running(&rival);
        }
        responsibility.rivals.add(rival);
    });
}

impl Rivals {
    /// Adds an installation that a mark names.
    pub fn add(&self, rival: Rival) {
        self.0.found.send_if_modified(|found| found.len() < MOST && found.insert(rival));
    }

    /// The installations found so far. The receiver is notified of further ones.
    pub fn found(&self) -> watch::Receiver<BTreeSet<Rival>> {
        self.0.found.subscribe()
    }

    /// Records that an installation no longer runs, so that its marks are replaced.
    pub fn set_gone(&self, rival: &Rival) {
        self.0.gone.write().insert(rival.clone());
        self.0.listeners.read().iter().for_each(|listener| listener(rival));
    }

    /// Records that an installation runs again, and notifies the receivers of [`Rivals::found`].
    pub fn set_running(&self, rival: &Rival) {
        if self.0.gone.write().remove(rival) {
            self.0.found.send_modify(|_| {});
        }
    }

    /// Whether an installation no longer runs.
    pub fn has_gone(&self, rival: &Rival) -> bool {
        self.0.gone.read().contains(rival)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::kinds::NamespaceKind;
    use crate::runtime::queue::Action;
    use crate::runtime::store::StoreFactory;
    use crate::runtime::watch::Selection;

    #[tokio::test]
    async fn the_objects_of_an_installation_that_no_longer_runs_are_reconciled() {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("test", &mut factory);
        let namespaces = set.store::<NamespaceKind>(&Selection::ALL).get();
        let selector = BTreeMap::from([("sel".to_owned(), "x".to_owned())]);
        let lease = Some("a/crownlabs".to_owned());
        let ours = Responsibility { selector, lease, rivals: Rivals::default() };
        follow(&set, &namespaces, &ours);
        for (name, lease) in [("theirs", "b/crownlabs"), ("ours", "a/crownlabs"), ("others", "c/crownlabs")] {
            let object = json!({"metadata": {
                "name": name, "uid": name, "labels": {"sel": "x"},
                "annotations": {"crownlabs.polito.it/finalized-by": format!("sel=x (lease {lease})")},
            }});
            namespaces.apply_event(serde_json::from_value(object).expect("a namespace"));
        }
        let found = ours.rivals.found().borrow().clone();
        assert_eq!(
            found.iter().map(|rival| &*rival.lease).collect::<Vec<_>>(),
            ["b/crownlabs", "c/crownlabs"]
        );
        let queue = Arc::clone(set.queue());
        assert_eq!(queue.waiting(), 0);
        ours.rivals.set_gone(found.first().expect("two"));
        assert_eq!(queue.waiting(), 1);
        let job = queue.next().await.expect("the queue is open");
        assert_eq!(&*job.key.name, "theirs");
        queue.done(job, Action::AwaitChange);
    }

    #[test]
    fn an_installation_that_replaces_a_mark_of_this_one_runs() {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("test", &mut factory);
        let namespaces = set.store::<NamespaceKind>(&Selection::ALL).get();
        let selector = BTreeMap::from([("sel".to_owned(), "x".to_owned())]);
        let ours =
            Responsibility { selector, lease: Some("a/crownlabs".to_owned()), rivals: Rivals::default() };
        follow(&set, &namespaces, &ours);
        let version = std::cell::Cell::new(0_u32);
        let mark = |lease: &str| {
            version.set(version.get() + 1);
            let object = json!({"metadata": {
                "name": "shared", "uid": "u1", "labels": {"sel": "x"}, "resourceVersion": version.get().to_string(),
                "annotations": {"crownlabs.polito.it/finalized-by": format!("sel=x (lease {lease})")},
            }});
            namespaces.apply_event(serde_json::from_value(object).expect("a namespace"));
        };
        let theirs = Rival { lease: "b/crownlabs".to_owned(), selector: "sel=x".to_owned() };
        mark("b/crownlabs");
        ours.rivals.set_gone(&theirs);
        let mut found = ours.rivals.found();
        mark("a/crownlabs");
        assert!(ours.rivals.has_gone(&theirs) && !found.has_changed().expect("open"));
        mark("b/crownlabs");
        assert!(!ours.rivals.has_gone(&theirs) && found.has_changed().expect("open"));
        drop(found.borrow_and_update());
        // A former mark, not a replaced one.
        ours.rivals.set_gone(&theirs);
        mark("b/crownlabs");
        assert!(ours.rivals.has_gone(&theirs) && !found.has_changed().expect("open"));
    }

    #[test]
    fn the_number_of_rivals_has_a_bound() {
        let rivals = Rivals::default();
        for number in 0..2 * MOST {
            rivals.add(Rival { lease: format!("a/{number}"), selector: "a=b".to_owned() });
        }
        assert_eq!(rivals.found().borrow().len(), MOST);
    }
}
