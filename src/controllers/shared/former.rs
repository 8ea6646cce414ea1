//! The objects that this installation took under a former selector. They stay as they are, and are counted in the
//! readiness, the log and a metric.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::responsibility::{Origin, Responsibility};
use crate::api::labels::{FINALIZED_BY, selector_string};
use crate::api::{Kind, Object};
use crate::runtime::store::{Store, StoreState};

/// The maximum number of former selectors in a sentence.
const NAMED: usize = 3;

/// Counts the objects of a kind.
pub struct Census {
    /// The kind, in the plural.
    pub kind: &'static str,
    /// Returns the current numbers; `None` during the initial list of the store.
    pub count: Box<dyn Fn() -> Option<Count> + Send + Sync>,
}

/// The number of objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of objects that the current selector matches.
    pub selected: usize,
    /// The number of other objects with this daemon's finalizer, by the selector that was in use when they were taken;
    /// `None` if they have no mark.
    pub former: BTreeMap<Option<String>, usize>,
    /// The number of objects that daemons with other Leases may manage.
    pub others: BTreeMap<Origin, usize>,
}

impl Count {
    /// The number of objects of former selectors.
    pub fn left(&self) -> usize {
        self.former.values().sum()
    }

    /// Counts the objects of this origin as objects of a former selector, because no daemon manages them any more.
    pub fn add(&mut self, origin: &Origin) {
        let Some(number) = self.others.remove(origin) else { return };
        let selector = match origin {
            Origin::Elected(rival) => Some(rival.selector.clone()),
            Origin::Unelected(selector) => Some(selector.clone()),
            Origin::Unmarked => None,
        };
        *self.former.entry(selector).or_default() += number;
    }
}

impl Census {
    /// A census of the objects of a store. `is_selected` says whether the current selector matches an object.
    pub fn new<T: Kind>(
        kind: &'static str,
        store: &Arc<Store<T>>,
        finalizer: &'static str,
        responsibility: &Responsibility,
        is_selected: impl Fn(&Object<T>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let (store, responsibility) = (Arc::clone(store), responsibility.clone());
        let count = move || {
            let mut count = Count::default();
            for object in store.objects() {
                let is_selected = is_selected(&object);
                count.selected += usize::from(is_selected);
                if let Some(former) = responsibility.former_selector(&object, finalizer, is_selected) {
                    *count.former.entry(Some(former.to_owned())).or_default() += 1;
                }
                if let Some(origin) = responsibility.origin(&object, finalizer, is_selected) {
                    *count.others.entry(origin).or_default() += 1;
                }
            }
            (store.state() != StoreState::Syncing).then_some(count)
        };
        Self { kind, count: Box::new(count) }
    }
}

/// A sentence about the objects of former selectors; `None` if there are no such objects.
pub fn sentence(selector: &BTreeMap<String, String>, counts: &[(&str, Count)]) -> Option<String> {
    let of_kinds = counts.iter().filter(|(_, count)| count.left() > 0).map(|(kind, count)| {
        format!("matches {} {kind}; {} carry this installation's finalizer", count.selected, count.left())
    });
    let of_kinds = of_kinds.collect::<Vec<_>>().join(", and ");
    let former: BTreeSet<Option<&str>> =
        counts.iter().flat_map(|(_, count)| count.former.keys().map(Option::as_deref)).collect();
    let marked: Vec<&str> = former.iter().copied().flatten().take(NAMED).collect();
    let unmarked = former.contains(&None::<&str>).then(|| format!("have no annotation {FINALIZED_BY}"));
    let taken = marked.first().map(|_| format!("were taken under {}", marked.join(" and ")));
    let taken: Vec<String> = taken.into_iter().chain(unmarked).collect();
    let release =
        marked.first().map(|first| format!(", or release them: `crownlabs release --selector {first}`"));
    (!taken.is_empty()).then(|| {
        format!(
            "selector {} {of_kinds} and {}. They stay as they are. Correct the selector; or, if the change is intended, change \
             their labels{}",
            selector_string(selector),
            taken.join(" or "),
            release.unwrap_or_default()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::shared::rivals::Rival;

    fn count(selected: usize, former: &[(&str, usize)]) -> Count {
        let former =
            former.iter().map(|(selector, number)| (Some((*selector).to_owned()), *number)).collect();
        Count { selected, former, ..Count::default() }
    }

    #[test]
    fn a_typo_is_named_with_the_objects_left_behind() {
        let selector = BTreeMap::from([("sel".to_owned(), "prodution".to_owned())]);
        let counts = [("Tenants", count(0, &[("sel=production", 3)])), ("Workspaces", count(0, &[]))];
        let said = sentence(&selector, &counts).expect("three are left");
        for part in [
            "selector sel=prodution matches 0 Tenants; 3 carry this installation's finalizer and were taken under sel=production.",
            "crownlabs release --selector sel=production",
        ] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        let counts = [("Tenants", count(0, &[])), ("Workspaces", count(7, &[]))];
        assert_eq!(sentence(&selector, &counts), None, "in a new cluster, a selector matches nothing");
    }

    #[test]
    fn objects_of_other_origins_are_named_once_they_are_added() {
        let rival = Rival { lease: "a/crownlabs".to_owned(), selector: "sel=production".to_owned() };
        let (elected, unmarked) = (Origin::Elected(rival), Origin::Unmarked);
        let others =
            [(elected.clone(), 3), (unmarked.clone(), 2), (Origin::Unelected("sel=b".to_owned()), 1)];
        let mut count = Count { others: others.into(), ..Count::default() };
        let selector = BTreeMap::from([("sel".to_owned(), "prodution".to_owned())]);
        let said = |count: &Count| sentence(&selector, &[("Tenants", count.clone())]);
        assert_eq!(said(&count), None, "their daemons may run");
        count.add(&unmarked);
        let unknown = said(&count).expect("a sentence");
        assert!(
            unknown.contains("2 carry this installation's finalizer and have no annotation"),
            "{unknown}"
        );
        assert!(unknown.ends_with("if the change is intended, change their labels"), "{unknown}");
        count.add(&elected);
        count.add(&elected);
        let known = said(&count).expect("a sentence");
        for part in [
            "; 5 carry",
            "were taken under sel=production or have no annotation",
            "--selector sel=production",
        ] {
            assert!(known.contains(part), "{part} is not in {known}");
        }
    }

    #[test]
    fn several_kinds_and_selectors_are_in_one_sentence() {
        let selector = BTreeMap::from([("sel".to_owned(), "new".to_owned())]);
        let counts =
            [("Tenants", count(2, &[("sel=a", 1), ("sel=b", 1)])), ("Workspaces", count(1, &[("sel=b", 4)]))];
        let said = sentence(&selector, &counts).expect("a sentence");
        assert!(
            said.starts_with(
                "selector sel=new matches 2 Tenants; 2 carry this installation's finalizer, and matches 1 Workspaces; 4 carry \
                 this installation's finalizer and were taken under sel=a and sel=b."
            ),
            "{said}"
        );
    }
}
