//! Whether a Tenant has a personal namespace now, and when to look again (05 §7).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Settings;
use super::observe::Observed;

/// Whether the personal namespace is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nothing of it is made, changed or removed: the address is not confirmed yet.
    Undecided,
    /// It is, at least for this time more; `None` for as long as something is in it.
    Wanted(Option<Duration>),
    /// It is not: the Tenant has not logged in for long, and nothing is in it.
    Unwanted,
}

/// Whether the personal namespace is wanted. One with Instances stays, and where Tenants may have
/// Templates of their own, one with Templates.
pub fn presence(observed: &Observed, settings: &Settings, now: Timestamp) -> Presence {
    let config = &settings.config;
    if config.wait_user_verification && !observed.is_confirmed(settings) {
        return Presence::Undecided;
    }
    let keep_alive = SignedDuration::try_from(config.keep_alive.get()).unwrap_or(SignedDuration::MAX);
    // Nobody has logged in: as long ago as can be. In the future: not long ago.
    let left = observed
        .tenant
        .spec
        .last_login
        .as_ref()
        .map_or(SignedDuration::MIN, |login| keep_alive.saturating_sub(now.duration_since(login.0)));
    if !left.is_negative() {
        // Expired is what is older, not what is as old.
        let wake = left.saturating_add(SignedDuration::from_millis(1));
        return Presence::Wanted(Some(wake.unsigned_abs()));
    }
    let templates = config.personal_workspace.enabled && observed.templates > 0;
    if observed.instances > 0 || templates { Presence::Wanted(None) } else { Presence::Unwanted }
}

/// What `crownlabs plan` says of a Tenant without a personal namespace.
pub fn remark(observed: &Observed, settings: &Settings, now: Timestamp) -> Option<String> {
    let message = "the last login is too long ago for a personal namespace (spec.lastLogin, \
                   controllers.tenant.keepAlive): it is made at the next";
    (presence(observed, settings, now) == Presence::Unwanted).then(|| message.to_owned())
}
