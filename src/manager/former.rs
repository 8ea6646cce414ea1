//! Reports objects that were managed under a former selector, in the log, the readiness and a metric.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metrics::gauge;
use tracing::{info, warn};

use crate::controllers::setup::Notice;
use crate::controllers::shared::former::{Census, sentence};
use crate::runtime::metrics::precise;
use crate::runtime::readiness::Readiness;

/// The name in the readiness.
const NAME: &str = "selector";
/// The time between two checks of the stores.
const PERIOD: Duration = Duration::from_secs(15);
/// The same time before the stores are filled.
const FIRST: Duration = Duration::from_secs(1);

/// Checks the stores without sending a request. Reports the objects that `censuses` count, unless they have the present
/// selector, and other leftovers of a former configuration. Never returns.
pub async fn report(
    censuses: Vec<Census>,
    notices: Vec<Notice>,
    selector: BTreeMap<String, String>,
    readiness: Readiness,
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
        let counts: Vec<_> = counts.flatten().collect();
        for (kind, count) in &counts {
            gauge!("crownlabs_objects_of_former_selectors", "kind" => *kind)
                .set(precise(count.former.values().sum()));
        }
        // The sentence is incomplete until all kinds are listed.
        let is_whole = counts.len() == censuses.len();
        if is_whole {
            say(NAME, sentence(&selector, &counts));
            for notice in &notices {
                say(notice.name, (notice.sentence)());
            }
        }
        tokio::time::sleep(if is_whole { PERIOD } else { FIRST }).await;
    }
}
