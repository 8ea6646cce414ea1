//! Reports objects that were managed under a former selector, in the log, the readiness and a metric.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metrics::gauge;
use tracing::{info, warn};

use super::lease::Leases;
use crate::controllers::setup::Notice;
use crate::controllers::shared::former::{Census, Count, sentence};
use crate::controllers::shared::responsibility::Origin;
use crate::runtime::metrics::precise;
use crate::runtime::readiness::Readiness;

/// The name in the readiness.
const NAME: &str = "selector";
/// The time between two checks of the stores.
const PERIOD: Duration = Duration::from_secs(15);
/// The same time before the stores are filled.
const FIRST: Duration = Duration::from_secs(1);

/// Checks the stores. Reports the objects that `censuses` count, unless they have the present selector, and other
/// leftovers of a former configuration. If the selector matches nothing, objects of installations that no longer run are
/// included: `leases` reads the Leases of these. Otherwise, no requests are sent. Never returns.
pub async fn report(
    censuses: Vec<Census>,
    notices: Vec<Notice>,
    selector: BTreeMap<String, String>,
    readiness: Readiness,
    mut leases: Option<Leases>,
) {
    let mut said: BTreeSet<&'static str> = BTreeSet::new();
    let mut say = |name: &'static str, sentence: Option<String>| {
        match &sentence {
            Some(sentence) if said.insert(name) => warn!("{name}: {sentence}"),
            None if said.remove(name) => info!("{name}: no leftovers of a former configuration remain"),
            _ => {}
        }
        readiness.set_notice(name, sentence);
    };
    loop {
        let counts = censuses.iter().map(|census| Some((census.kind, (census.count)()?)));
        let mut counts: Vec<_> = counts.flatten().collect();
        // The sentence is incomplete until all kinds are listed.
        let is_whole = counts.len() == censuses.len();
        if is_whole {
            add_others(&mut counts, leases.as_mut()).await;
        }
        for (kind, count) in &counts {
            gauge!("crownlabs_objects_of_former_selectors", "kind" => *kind).set(precise(count.left()));
        }
        if is_whole {
            say(NAME, sentence(&selector, &counts));
            for notice in &notices {
                say(notice.name, (notice.sentence)());
            }
        }
        tokio::time::sleep(if is_whole { PERIOD } else { FIRST }).await;
    }
}

/// If the selector matches no object, counts the objects of other origins whose daemons do not run as objects of a
/// former selector: the selector may be wrong, and the Lease may have changed with it.
async fn add_others(counts: &mut [(&'static str, Count)], mut leases: Option<&mut Leases>) {
    if counts.iter().any(|(_, count)| count.selected > 0) {
        return;
    }
    let origins = counts.iter().flat_map(|(_, count)| count.others.keys().cloned());
    let origins: BTreeSet<Origin> = origins.collect();
    for origin in origins {
        let is_former = match (&origin, leases.as_deref_mut()) {
            (Origin::Elected(rival), Some(leases)) => leases.is_gone(rival).await,
            (Origin::Elected(_), None) => false,
            (Origin::Unelected(_) | Origin::Unmarked, _) => true,
        };
        if is_former {
            for (_, count) in counts.iter_mut() {
                count.add(&origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn objects_without_a_lease_are_counted_only_if_the_selector_matches_nothing() {
        for (selected, left) in [(0, 3), (1, 0)] {
            let others = [(Origin::Unmarked, 2), (Origin::Unelected("sel=x".to_owned()), 1)];
            let others = Count { others: others.into(), ..Count::default() };
            let mut counts = [("Tenants", others), ("Workspaces", Count { selected, ..Count::default() })];
            add_others(&mut counts, None).await;
            assert_eq!((counts[0].1.left(), counts[1].1.left()), (left, 0));
        }
    }
}
