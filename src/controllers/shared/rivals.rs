//! The other installations in the marks of Tenants and Workspaces. They manage the same objects, or did so earlier.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::responsibility::Responsibility;
use crate::api::Kind;
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
/// added to the queue of the loop, which replaces their marks.
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
        if let Some(rival) = change.new.as_deref().and_then(|object| responsibility.rival(object)) {
            responsibility.rivals.add(rival);
        }
    });
}

impl Rivals {
    fn add(&self, rival: Rival) {
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
    fn the_number_of_rivals_has_a_bound() {
        let rivals = Rivals::default();
        for number in 0..2 * MOST {
            rivals.add(Rival { lease: format!("a/{number}"), selector: "a=b".to_owned() });
        }
        assert_eq!(rivals.found().borrow().len(), MOST);
    }
}
