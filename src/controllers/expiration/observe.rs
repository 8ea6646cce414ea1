//! The input of the plan and the report for the expiration of an Instance.

use jiff::Timestamp;

use super::Settings;
use crate::api::condition::EXPIRING;
use crate::api::lifetime::{Lifetime, LifetimeError};
use crate::api::promise::{End, Promise};
use crate::api::{labels, reason};
use crate::clients::mail::MailKind;
use crate::controllers::cleanup::ending::{Ending, EndingKind};
use crate::controllers::cleanup::promise::{Terms, accepted, later, standing, time};
use crate::controllers::cleanup::report::ANNOTATION;
pub use crate::controllers::cleanup::stores::Candidate as Observed;

/// The ending of an Instance that is deleted because of its age.
const KIND: EndingKind = EndingKind {
    condition: EXPIRING,
    warning: MailKind::ExpirationWarning,
    last: MailKind::Expired,
    warned: reason::EXPIRATION_WARNING,
    ended: reason::EXPIRED,
    end: End::Deleted,
};

/// The stored promise. A warning that only the annotations mention counts, too. It is either a warning of the Go
/// operator, or one of this loop, which stopped before it could write the status. A warning without a time counts from
/// `now`. A warning that is later than `now` by more than an interval does not count.
fn promise(observed: &Observed, terms: &Terms, now: Timestamp) -> Promise {
    let instance = &observed.instance;
    let stored = instance.status.expiration.as_deref().cloned().unwrap_or_default();
    let stored = observed.mailed.accepted(terms, KIND.warning, stored);
    let warned_at = instance.annotation(labels::EXPIRY_WARNED_AT);
    let is_warned = warned_at.is_some_and(|text| !text.is_empty())
        || instance.annotation(labels::EXPIRY_WARNED).is_some();
    let at = warned_at.and_then(|text| text.parse::<Timestamp>().ok()).unwrap_or(now);
    if stored.warnings > 0 || !is_warned || at > later(now, terms.interval) {
        return stored;
    }
    let witness = if stored.sending.is_some() { stored.witness.clone() } else { ANNOTATION.to_owned() };
    Promise { witness, undeliverable: None, ..accepted(terms, &stored, at) }
}

/// The ending of an Instance because of its age; `None` if it has none. Returns an error if the maximum age in the
/// Template cannot be read. Such an age counts as never.
pub fn ending<'o>(
    observed: &'o Observed,
    settings: &Settings,
    now: Timestamp,
) -> Result<Option<Ending<'o>>, LifetimeError> {
    let Some(template) = observed.template.as_ref().filter(|_| !observed.is_exempt) else { return Ok(None) };
    let after = Lifetime::parse(template.spec.max_age())?;
    if after == Lifetime::Never {
        return Ok(None);
    }
    let (config, since) = (&settings.config, observed.created(now));
    let terms = observed.terms(&KIND, after, config.notification_interval.get(), config.notifications, 1);
    let promise = standing(&terms, since, promise(observed, &terms, now), now);
    let promise = Promise { since: time(since), ..promise };
    let undeliverable = settings.undeliverable;
    Ok(Some(Ending { kind: KIND, candidate: observed, undeliverable, terms, since, promise }))
}
