//! The status, the condition and the events of an image list.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observe::{Observed, Query};
use super::plan::{AGREED, Decision, Effect, decide, registry};
use crate::api::condition::STALE;
use crate::api::image_list::ImageListKind;
use crate::api::reason::{IMAGE_LIST_NOT_WRITTEN, REGISTRY_EMPTY, REGISTRY_READ, Reason};
use crate::clients::registry::{LeftOut, Listing};
use crate::config::ImageListConfig;
use crate::runtime::apply::Failure;
use crate::runtime::clock::rfc3339;
use crate::runtime::conditions::{self, Observation, whole_seconds};
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::reconciler::{Outcome, Reconciled, Report};

/// The report of a reconcile.
pub fn report(done: &Reconciled<'_, Observed, ImageListConfig, Effect>) -> Report<ImageListKind> {
    let Reconciled { observed, settings: config, plan, outcome, now } = *done;
    let old = &observed.list.status;
    // A query that this reconcile has started may already have a result, but nothing of it is written yet.
    let has_acted = observed.exists() && plan.effects.is_empty();
    let news = news(observed, config, outcome, now).filter(|_| has_acted);
    let Some((reason, message, last_success)) = news else { return Report::unchanged(&observed.list) };
    let is_stale = reason != REGISTRY_READ;
    let known = old.conditions.iter().find(|condition| condition.type_ == STALE);
    let was_stale = known.is_some_and(|known| known.status == "True");
    let is_told = is_stale || was_stale;
    let is_new = known.is_none_or(|known| known.reason != reason || (known.status == "True") != is_stale);
    let type_ = if is_stale { EventType::Warning } else { EventType::Normal };
    let event = (is_told && is_new).then(|| EventNote::new(type_, reason, message.clone()));
    let mut status = old.clone();
    let generation = observed.list.metadata.generation;
    let observation = Observation::new(STALE, is_stale, reason, &*message);
    status.conditions = conditions::merge(&old.conditions, &[observation], &[], generation, now);
    status.last_success_time = last_success.filter(|_| is_stale).map(|time| Time(whole_seconds(time)));
    Report { log: Some(message), ..Report::new(status, event.into_iter().collect()) }
}

/// The reason, the message, and the time of the last read of the registry; `None` if nothing has happened.
fn news(
    observed: &Observed,
    config: &ImageListConfig,
    outcome: &Outcome<()>,
    now: Timestamp,
) -> Option<(Reason, String, Option<Timestamp>)> {
    let url = &registry(&observed.list, config)?.url;
    let query = observed.query.as_ref()?;
    match decide(observed, config, now) {
        Decision::Query | Decision::UnderWay => None,
        Decision::Current(listing, _) => {
            let ended = query.result.as_ref().map(|(ended, _)| *ended);
            match outcome.failures.iter().find(|failure| !failure.error.is_transient()) {
                Some(Failure { error, .. }) => {
                    let message =
                        format!("the images of the registry at {url} could not be written: {error}");
                    Some((IMAGE_LIST_NOT_WRITTEN, message, ended))
                }
                // The next reconcile writes it, or it is unknown whether it was written.
                None if !outcome.failures.is_empty() => None,
                None => {
                    Some((REGISTRY_READ, format!("the registry at {url} offers {}", offered(listing)), ended))
                }
            }
        }
        Decision::Doubted(_) => {
            let (last_success, as_of) = as_of(observed, query);
            let message = format!(
                "the registry at {url} is now empty: {as_of}, until {AGREED} queries in a row confirm it \
                 ({} so far)",
                query.empty
            );
            Some((REGISTRY_EMPTY, message, last_success))
        }
        Decision::Failed(error, _) => {
            let (last_success, as_of) = as_of(observed, query);
            let message = format!("the registry at {url} could not be read: {error}; {as_of}");
            Some((error.reason(), message, last_success))
        }
    }
}

/// When the registry was last read with the content of the list, also as part of a sentence.
fn as_of(observed: &Observed, query: &Query) -> (Option<Timestamp>, String) {
    // If this process does not know the time, the status may.
    let stored = observed.list.status.last_success_time.as_ref().map(|time| time.0);
    let last_success = query.last_success.or(stored);
    let as_of = match last_success {
        Some(time) => format!("the list dates from {}", rfc3339(time)),
        None if observed.list.spec.images.is_empty() => {
            "the list stays empty until it can be read".to_owned()
        }
        None => "the list is as it was before this daemon started".to_owned(),
    };
    (last_success, as_of)
}

/// The number of images in a registry, and the omitted ones.
fn offered(listing: &Listing) -> String {
    let Listing { images, left_out: LeftOut { repositories, tags } } = listing;
    let versions: usize = images.iter().map(|image| image.versions.len()).sum();
    let offered = format!("{} with {}", counted(images.len(), "image"), counted(versions, "tag"));
    if *repositories == 0 && *tags == 0 {
        return offered;
    }
    let (repositories, tags) = (counted(*repositories, "repository"), counted(*tags, "tag"));
    format!("{offered}; left out: {repositories} and {tags} with invalid names")
}

/// A number with its noun.
fn counted(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}
