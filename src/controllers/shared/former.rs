//! The objects that this installation took under a former selector. They stay as they are, and are counted in the
//! readiness, the log and a metric.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::responsibility::Responsibility;
use crate::api::labels::selector_string;
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
    /// The number of other objects with this daemon's finalizer, by the selector that was in use when they were taken.
    pub former: BTreeMap<String, usize>,
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
                    *count.former.entry(former.to_owned()).or_default() += 1;
                }
            }
            (store.state() != StoreState::Syncing).then_some(count)
        };
        Self { kind, count: Box::new(count) }
    }
}

/// A sentence about the objects of former selectors; `None` if there are no such objects.
pub fn sentence(selector: &BTreeMap<String, String>, counts: &[(&str, Count)]) -> Option<String> {
    let of_kinds = counts.iter().filter(|(_, count)| !count.former.is_empty()).map(|(kind, count)| {
        let former: usize = count.former.values().sum();
        format!("matches {} {kind}; {former} carry this installation's finalizer", count.selected)
    });
    let of_kinds = of_kinds.collect::<Vec<_>>().join(", and ");
    let former: BTreeSet<&str> =
        counts.iter().flat_map(|(_, count)| count.former.keys().map(String::as_str)).collect();
    let named = former.iter().take(NAMED).copied().collect::<Vec<_>>().join(" and ");
    let first = former.first()?;
    Some(format!(
        "selector {} {of_kinds} and were taken under {named}. They stay as they are. Correct the selector; or, if the change is \
         intended, change their labels, or release them: crownlabs release --selector {first}",
        selector_string(selector)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(selected: usize, former: &[(&str, usize)]) -> Count {
        let former = former.iter().map(|(selector, number)| ((*selector).to_owned(), *number)).collect();
        Count { selected, former }
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
